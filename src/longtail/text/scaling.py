"""`RowScaling`: ready-made features, scaled to rows of unit length."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from longtail.errors import InvalidInput
from longtail.parameters import Choice, Constraint, check_parameters
from longtail.store import State, rebuilt, saved_params
from longtail.validation import as_features


class RowScaling(BaseEstimator):
    """Scale the rows of a feature matrix; `fit` learns only the number of features.

    Parameters
    ----------
    log : bool
        Replace each value v by ln(1 + v) first; values must not be negative then.
    unit : bool
        Divide each row by its Euclidean length; empty rows stay empty.

    Examples
    --------
    >>> RowScaling().fit_transform([[3.0, 4.0]]).toarray()
    array([[0.6, 0.8]], dtype=float32)
    """

    _parameters: ClassVar[dict[str, Constraint]] = {"log": Choice((True, False)), "unit": Choice((True, False))}

    takes_texts = False
    n_features_in_: int

    def __init__(self, log: bool = False, unit: bool = True) -> None:
        self.log = log
        self.unit = unit

    @property
    def n_features_out_(self) -> int:
        """The width of a row."""
        return self.n_features_in_

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the parameters and store the number of features."""
        check_parameters(self, self._parameters)
        self.n_features_in_ = as_features(X).shape[1]
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        X = as_features(X)
        return self.fit(X).transform(X)

    def transform(self, X: Any) -> Any:
        """The scaled rows as CSR float32."""
        X = as_features(X, n_features=self.n_features_in_, owner=type(self).__name__)
        values = X.data
        if self.log:
            if values.size and values.min() < 0:
                raise InvalidInput("log scaling needs values of at least 0, but a feature value is negative")
            values = np.log1p(values)
        if self.unit:
            rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
            squares = np.bincount(rows, weights=values.astype(np.float64) ** 2, minlength=X.shape[0])
            lengths = np.sqrt(np.where(squares > 0, squares, 1))
            values = (values / lengths[rows]).astype(np.float32)
        return sparse.csr_array((values, X.indices, X.indptr), shape=X.shape)

    def to_state(self) -> State:
        return State("RowScaling", saved_params(self), {"n_features": self.n_features_in_})

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild the fitted scaling, or raise `ModelFormatError`."""
        model: Self = rebuilt(state, cls)
        model.n_features_in_ = state.size("n_features")
        return model
