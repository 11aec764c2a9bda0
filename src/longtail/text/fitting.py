"""`fit_features`: the features of a corpus, whether it holds texts or feature vectors."""

from __future__ import annotations

import logging
from typing import Any

from sklearn.base import clone

from longtail.data import Corpus, GroupedCorpus
from longtail.errors import InvalidInput
from longtail.text.features import TextFeatures
from longtail.text.scaling import RowScaling

_log = logging.getLogger(__name__)
_FEW_TEXTS = 50


def fit_features(
    corpus: Corpus | GroupedCorpus, features: TextFeatures | RowScaling | None = None
) -> tuple[TextFeatures | RowScaling, Any]:
    """Fit features to the rows of a corpus and transform the rows.

    Parameters
    ----------
    corpus : Corpus or GroupedCorpus
    features : TextFeatures, RowScaling or None
        Not fitted; a copy is fitted. None takes tf-idf of the words that occur in at least two texts or, where the
        corpus holds feature vectors, scales these to unit length.

    Returns
    -------
    features : the fitted features
    X : csr_array of shape (n_rows, n_features)

    Examples
    --------
    >>> corpus = Corpus.from_lists(["red apples", "red roses"], [["fruit"], ["flower"]])
    >>> fit_features(corpus)[1].shape, fit_features(corpus, TextFeatures(min_df=1))[1].shape
    ((2, 1), (2, 3))
    """
    if features is None and corpus.texts is not None:
        features = TextFeatures(min_df=min(2, corpus.n_rows))
    fitted = RowScaling() if features is None else clone(features)
    takes_texts = isinstance(fitted, TextFeatures)
    if takes_texts and corpus.n_rows < _FEW_TEXTS and fitted.get_params()["min_df"] == 2:
        _log.info("words that occur in a single text are left out; with few texts, min_df=1 may be better")
    rows = corpus.texts if takes_texts else corpus.features
    if rows is None:
        wanted, found = ("texts", "features") if takes_texts else ("features", "texts")
        raise InvalidInput(f"{type(fitted).__name__} takes {wanted}; the corpus has only {found}")
    X = fitted.fit_transform(rows)
    _log.info("features: %s, of which a row has %.0f on average", f"{X.shape[1]:,}", X.nnz / max(1, X.shape[0]))
    return fitted, X
