"""`fit_features`: the features of a corpus, whether it holds texts or feature vectors."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone

from longtail.data import Corpus, GroupedCorpus
from longtail.errors import InvalidInput
from longtail.store import same_state
from longtail.text.features import TextFeatures
from longtail.text.scaling import RowScaling

_log = logging.getLogger(__name__)
_FEW_TEXTS = 50
_OF_TEXTS = ("ngrams", "min_df", "max_features", "subwords")


@dataclass(frozen=True)
class FeatureOptions:
    """Parameters of `TextFeatures` or of `RowScaling`, whichever the rows need; None leaves a parameter to them.

    Parameters
    ----------
    ngrams, min_df, max_features
        Of `TextFeatures`. By default `min_df` is 2, or 1 for a single text.
    subwords : int or None
        Of `TextFeatures`; 0 turns subwords off.
    log : bool
        Of `RowScaling`.
    normalize : bool
        Whether `RowScaling` scales rows to unit length.
    """

    ngrams: tuple[int, int] | None = None
    min_df: int | float | None = None
    max_features: int | None = None
    subwords: int | None = None
    log: bool = False
    normalize: bool = True

    def idle(self, has_texts: bool) -> str | None:
        """The first parameter that is given but has no effect on texts, or on feature vectors."""
        if has_texts:
            return "log" if self.log else None if self.normalize else "normalize"
        return next((name for name in _OF_TEXTS if getattr(self, name) is not None), None)

    def features_for(self, corpus: Corpus | GroupedCorpus) -> TextFeatures | RowScaling:
        """The features for a corpus, not fitted."""
        has_texts = corpus.texts is not None
        if (name := self.idle(has_texts)) is not None:
            wanted, found = ("features", "texts") if has_texts else ("texts", "features")
            raise InvalidInput(f"{name} is for {wanted}; the corpus has {found}", code="idle_parameter", name=name)
        if not has_texts:
            return RowScaling(log=self.log, unit=self.normalize)
        if self.min_df is None and corpus.n_rows < _FEW_TEXTS:
            _log.info("words that occur in only one text are dropped; min_df=1 (--min-df 1) keeps them")
        min_df = min(2, corpus.n_rows) if self.min_df is None else self.min_df
        return TextFeatures(
            self.ngrams or (1, 1), min_df=min_df, max_features=self.max_features, subwords=self.subwords or None
        )


def fit_features(features: Any, corpus: Corpus | GroupedCorpus) -> tuple[Any, Any]:
    """Fit features to the rows of a corpus and transform the rows.

    Parameters
    ----------
    features : TextFeatures, RowScaling, FeatureOptions or None
        Not fitted; a copy is fitted. None uses the defaults of `FeatureOptions`.
    corpus : Corpus or GroupedCorpus

    Returns
    -------
    features : the fitted features
    X : csr_array of shape (n_rows, n_features)

    Examples
    --------
    >>> corpus = Corpus.from_lists(["red apples", "red roses"], [["fruit"], ["flower"]])
    >>> fit_features(None, corpus)[1].shape, fit_features(TextFeatures(min_df=1), corpus)[1].shape
    ((2, 1), (2, 3))
    """
    if isinstance(corpus, Corpus) and corpus.made_by is not None:
        if features is not None and features != FeatureOptions():
            raise InvalidInput("the corpus is prepared: its features are made already; prepare it with other options")
        return corpus.made_by, corpus.features
    if features is None or isinstance(features, FeatureOptions):
        fitted: Any = (features or FeatureOptions()).features_for(corpus)
    else:
        fitted = clone(features)
    X = fitted.fit_transform(inputs_of(corpus, fitted))
    _log.info("features: %s, of which a row has %.0f on average", f"{X.shape[1]:,}", X.nnz / max(1, X.shape[0]))
    return fitted, X


def rows_of(corpus: Corpus | GroupedCorpus, features: Any) -> Any:
    """The rows of a corpus as fitted features make them; those of a prepared corpus are made already."""
    made_by = corpus.made_by if isinstance(corpus, Corpus) else None
    if made_by is None:
        return features.transform(inputs_of(corpus, features))
    if made_by is not features and not same_state(made_by.to_state(), features.to_state()):
        raise InvalidInput(
            "the corpus is prepared with other features than those of the model; prepare it like the training rows "
            "(longtail prepare --like)",
            code="other_features",
        )
    return corpus.features


def inputs_of(corpus: Corpus | GroupedCorpus, features: Any) -> Any:
    """The texts or feature vectors of a corpus, whichever `features` takes."""
    takes_texts = features.takes_texts
    rows = corpus.texts if takes_texts else corpus.features
    if rows is None:
        wanted, found = ("texts", "only features") if takes_texts else ("features", "only texts")
        raise InvalidInput(f"the model takes {wanted}; the corpus has {found}")
    return rows
