"""`Problem`: features and labels as the solvers of ridge want them, centred where there is an intercept.

Two sides of the same problem: primal, with the Gram matrix X'X and right-hand sides X'Y, and dual, with XX' and Y. A
solution of the dual side becomes weights by X'. What is asked for in float64 is summed in float64.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from longtail.arrays import Array
from longtail.native import kernels
from longtail.ridge.centring import far_centre, shift_columns
from longtail.ridge.gram import (
    add_outer,
    check_length,
    column_squares,
    column_sums,
    gram_matrix,
    label_sums,
    transpose,
)


@dataclass(frozen=True)
class Problem:
    """Features and labels, and what has to be taken off to centre them.

    `X` and `Xt` are the features and their transpose, `Yt` the transposed labels, all CSR. With an intercept, features
    are measured from `centre` where that is not None, and `mean` (from there) and `label_mean` are the column means;
    without one all three are None.
    """

    X: Any
    Xt: Any
    Yt: Any
    centre: Array | None
    mean: Array | None
    label_mean: Array | None

    @classmethod
    def build(cls, X: Any, Y: Any, fit_intercept: bool) -> Problem:
        check_length(X)
        if not fit_intercept:
            return cls(X, transpose(X), transpose(Y), None, None, None)
        n_rows = X.shape[0]
        centre = far_centre(column_sums(X) / n_rows, column_squares(X) / n_rows)
        X = shift_columns(X, centre)
        return cls(X, transpose(X), transpose(Y), centre, column_sums(X) / n_rows, column_sums(Y) / n_rows)

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    def select(self, labels: Array) -> Problem:
        """The same with only the given labels."""
        label_mean = None if self.label_mean is None else self.label_mean[labels]
        return replace(self, Yt=self.Yt[labels], label_mean=label_mean)

    def gram(self, side: str, dtype: Any, n_jobs: int | None) -> Array:
        """The centred X'X or XX'; only the upper triangle is filled."""
        if side == "primal":
            gram = gram_matrix(self.X, self.Xt, n_jobs, dtype)
            if self.mean is not None:
                add_outer(gram, -self.n_rows, self.mean)
            return gram
        gram = gram_matrix(self.Xt, self.X, n_jobs, dtype)
        if self.mean is not None:
            # (X - 1m')(X - 1m')' = XX' - u1' - 1u' + m'm 11' with u = Xm
            projected = (self.X @ self.mean).astype(dtype)
            gram -= projected[:, None]
            gram -= projected[None, :]
            gram += dtype(self.mean @ self.mean)
        return gram

    def right(self, side: str, block: slice, dtype: Any) -> Array:
        """The centred Y'X or Y' for a block of labels, dense, one label per row."""
        if side == "dual":
            dense: Array = self.Yt[block].toarray().astype(dtype, copy=False)
            if self.label_mean is not None:
                dense -= self.label_mean[block, None].astype(dtype)
            return dense
        sums = label_sums(self.X, self.Yt, block, dtype)
        if self.mean is not None and self.label_mean is not None:
            sums -= (self.n_rows * self.label_mean[block, None]).astype(dtype) * self.mean.astype(dtype)
        return sums

    def fitted(self, weights: Array) -> Array:
        """The centred X times weights with one label per row, in float64, one label per row."""
        out = self.X @ weights.T.astype(np.float64)
        if self.mean is not None:
            out -= self.mean @ weights.T
        return np.asarray(out.T)

    def image(self, side: str, vectors: Array) -> Array:
        """The centred X'X or XX' times each row of `vectors`, in float64."""
        vectors = vectors.astype(np.float64, copy=False)
        return self._turned(self.fitted(vectors)) if side == "primal" else self.fitted(self._turned(vectors))

    def _turned(self, duals: Array) -> Array:
        out = self.Xt @ duals.T
        if self.mean is not None:
            out -= self.mean[:, None] * duals.sum(axis=1)
        return np.asarray(out.T)

    def weights(self, side: str, solution: Array) -> Array:
        """Weights from a solution of either side, one label per row: what the dual side gives is turned by X'."""
        if side == "primal":
            return solution
        if solution.dtype == np.float64:
            return self._turned(solution)
        out = np.empty((self.Xt.shape[0], len(solution)), dtype=np.float32)
        kernels.multiply(self.Xt.indptr, self.Xt.indices, self.Xt.data, np.ascontiguousarray(solution.T), out)
        if self.mean is not None:
            # The duals of centred targets sum to zero, but only to rounding.
            out -= self.mean.astype(np.float32)[:, None] * solution.sum(axis=1)
        return out.T
