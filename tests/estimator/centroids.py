"""A learner in a few lines: a label's score is the similarity of a row to the mean of the label's rows."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from longtail.estimator import Estimator, column_counts, register
from longtail.parameters import Constraint, Number
from longtail.store import State, saved_params


@register
class Centroids(Estimator):
    _fitted_by = "centroids_"
    _parameters: ClassVar[dict[str, Constraint]] = {"smoothing": Number(low=0)}

    def __init__(self, smoothing: float = 1.0) -> None:
        self.smoothing = smoothing

    def _fit(self, X: Any, Y: Any, weights: Any) -> None:
        self.n_features_in_, self.n_labels_ = X.shape[1], Y.shape[1]
        sums = (Y.T @ X).toarray()
        self.centroids_ = (sums / (column_counts(Y)[:, None] + self.smoothing + 1e-9)).astype(np.float32)

    def _scores(self, X: Any) -> Any:
        return np.asarray(X @ self.centroids_.T, dtype=np.float32)

    def to_state(self) -> State:
        check_is_fitted(self)
        return State(type(self).__name__, saved_params(self), {}, {"centroids": self.centroids_})

    @classmethod
    def from_state(cls, state: State) -> Self:
        model = cls._from_params(state)
        model.centroids_ = state.array("centroids", np.float32, (None, None))
        model.n_labels_, model.n_features_in_ = model.centroids_.shape
        return model
