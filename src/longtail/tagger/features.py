"""`FeatureOptions`: how rows become features, before it is known whether they are texts."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone

from longtail.data import Corpus, GroupedCorpus
from longtail.errors import InvalidInput
from longtail.text import RowScaling, TextFeatures

_log = logging.getLogger(__name__)

_FEW_TEXTS = 50


@dataclass(frozen=True)
class FeatureOptions:
    """Parameters of `TextFeatures` and `RowScaling`, whichever the rows need; None leaves a parameter to them.

    Parameters
    ----------
    ngrams, min_df, max_features
        Of `TextFeatures`. By default `min_df` is 2, or 1 for a single text.
    log : bool
        Of `RowScaling`.
    normalize : bool
        Whether `RowScaling` scales rows to unit length.
    """

    ngrams: tuple[int, int] | None = None
    min_df: int | float | None = None
    max_features: int | None = None
    log: bool = False
    normalize: bool = True

    def idle(self, has_texts: bool) -> str | None:
        """The first parameter that is given but has no effect on texts, or on rows of features."""
        if has_texts:
            return "log" if self.log else None if self.normalize else "normalize"
        return next((name for name in ("ngrams", "min_df", "max_features") if getattr(self, name)), None)

    def fit_transform(self, corpus: Corpus | GroupedCorpus) -> tuple[TextFeatures | RowScaling, Any]:
        """Fitted features, and the feature matrix of the corpus."""
        has_texts = corpus.texts is not None
        if (name := self.idle(has_texts)) is not None:
            wanted, found = ("features", "texts") if has_texts else ("texts", "features")
            raise InvalidInput(f"{name} is for {wanted}; the corpus has {found}", code="idle_parameter", name=name)
        if not has_texts:
            return _fitted(RowScaling(log=self.log, unit=self.normalize), corpus)
        min_df = min(2, corpus.n_rows) if self.min_df is None else self.min_df
        features = TextFeatures(self.ngrams or (1, 1), min_df=min_df, max_features=self.max_features)
        fitted = _fitted(features, corpus)
        if self.min_df is None and corpus.n_rows < _FEW_TEXTS:
            _log.info("words that occur in only one text are dropped; set min_df to 1 to keep them")
        return fitted


def fit_features(features: Any, corpus: Corpus | GroupedCorpus) -> tuple[Any, Any]:
    """Fit `features`, which may be `FeatureOptions` or None, to a corpus; returns them and the feature matrix."""
    if features is None or isinstance(features, FeatureOptions):
        fitted, X = (features or FeatureOptions()).fit_transform(corpus)
    else:
        fitted, X = _fitted(clone(features), corpus)
    _log.info("features: %s, of which a row has %.0f on average", f"{X.shape[1]:,}", X.nnz / max(1, X.shape[0]))
    return fitted, X


def _fitted(features: Any, corpus: Corpus | GroupedCorpus) -> tuple[Any, Any]:
    return features, features.fit_transform(inputs_of(corpus, features))


def inputs_of(corpus: Corpus | GroupedCorpus, features: Any) -> Any:
    """What `features` takes of a corpus: its texts or its feature rows."""
    takes_texts = isinstance(features, TextFeatures)
    rows = corpus.texts if takes_texts else corpus.features
    if rows is None:
        wanted, found = ("texts", "only features") if takes_texts else ("features", "only texts")
        raise InvalidInput(f"the model takes {wanted}; the corpus has {found}")
    return rows
