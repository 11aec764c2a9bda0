"""The sums from which ridge can be solved without the rows, so that rows and labels can be added later.

The scatter matrix, X'Y and the column sums are sums over rows: adding those of new rows gives what a fit on all rows
together would have. They are kept in float64, and the scatter matrix about the mean, so that features far from zero
lose no digits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import blas

from longtail.arrays import Array
from longtail.ridge.centring import far_centre, shift_columns
from longtail.ridge.gram import add_outer, check_length, column_squares, column_sums, gram_matrix, transpose


@dataclass(frozen=True)
class Statistics:
    """Sums over the rows seen so far.

    Parameters
    ----------
    n_rows : int
    scatter : float64 array of shape (n_features, n_features)
        (X - 1m')'(X - 1m') with m the means of the features; only its upper triangle counts.
    cross : float64 csr_array of shape (n_labels, n_features)
        Y'X.
    feature_sums, label_counts : float64 arrays
    """

    n_rows: int
    scatter: Array
    cross: Any
    feature_sums: Array
    label_counts: Array

    @classmethod
    def of(cls, X: Any, Y: Any, n_jobs: int | None) -> Statistics:
        """Sum up the rows of `X` and `Y`."""
        check_length(X)
        n_rows, feature_sums = X.shape[0], column_sums(X)
        cross = sparse.csr_array(transpose(Y).astype(np.float64) @ X)
        cross.sort_indices()
        shifted = shift_columns(X, far_centre(feature_sums / n_rows, column_squares(X) / n_rows))
        scatter = gram_matrix(shifted, transpose(shifted), n_jobs, np.float64)
        add_outer(scatter, -n_rows, column_sums(shifted) / n_rows)
        return cls(n_rows, scatter, cross, feature_sums, column_sums(Y))

    @classmethod
    def of_gram(cls, n_rows: int, gram: Array, cross: Any, feature_sums: Array, label_counts: Array) -> Statistics:
        """From X'X about zero, as models of earlier versions hold it in float32; digits lost there stay lost."""
        scatter = gram.astype(np.float64)
        add_outer(scatter, -n_rows, feature_sums / n_rows)
        return cls(n_rows, scatter, cross.astype(np.float64), feature_sums, label_counts)

    @property
    def mean(self) -> Array:
        return self.feature_sums / self.n_rows

    def plus(self, other: Statistics) -> Statistics:
        """The sums over the rows of both; the one with fewer labels gets the missing ones, without any rows."""
        labels = max(len(self.label_counts), len(other.label_counts))
        n_rows = self.n_rows + other.n_rows
        cross = sparse.csr_array(_widen(self.cross, labels) + _widen(other.cross, labels))
        cross.sort_indices()
        scatter = self.scatter + other.scatter
        add_outer(scatter, self.n_rows * other.n_rows / n_rows, self.mean - other.mean)
        return Statistics(
            n_rows,
            scatter,
            cross,
            self.feature_sums + other.feature_sums,
            np.pad(self.label_counts, (0, labels - len(self.label_counts)))
            + np.pad(other.label_counts, (0, labels - len(other.label_counts))),
        )

    def parts(self) -> dict[str, int]:
        """Bytes of the sums, for a `MemoryPlan`."""
        return {"sums of features": self.scatter.nbytes, "sums of labels": 16 * self.cross.nnz}

    def problem(self, fit_intercept: bool) -> SummedProblem:
        if not fit_intercept:
            return SummedProblem(self, None, None, None)
        mean = self.mean
        centre = far_centre(mean, np.diagonal(self.scatter) / self.n_rows + mean**2)
        from_centre = mean if centre is None else mean - centre
        return SummedProblem(self, centre, from_centre, self.label_counts / self.n_rows)


def _widen(cross: Any, labels: int) -> Any:
    indptr = np.pad(cross.indptr, (0, labels - cross.shape[0]), mode="edge")
    return sparse.csr_array((cross.data, cross.indices, indptr), shape=(labels, cross.shape[1]))


@dataclass(frozen=True)
class SummedProblem:
    """Stands in for `Problem` where only the sums are left; has the primal side alone."""

    statistics: Statistics
    centre: Array | None
    mean: Array | None
    label_mean: Array | None

    @property
    def n_rows(self) -> int:
        return self.statistics.n_rows

    def gram(self, side: str, dtype: Any, n_jobs: int | None) -> Array:
        """A fresh copy of X'X, centred where there is an intercept; only the upper triangle counts."""
        gram = self.statistics.scatter.astype(dtype)
        if self.mean is None:
            add_outer(gram, self.n_rows, self.statistics.mean)
        return gram

    def right(self, side: str, block: slice, dtype: Any) -> Array:
        sums: Array = self.statistics.cross[block].toarray()
        if self.mean is not None:
            sums -= self.statistics.label_counts[block, None] * self.statistics.mean
        return sums.astype(dtype, copy=False)

    def image(self, side: str, vectors: Array) -> Array:
        """X'X times each row of `vectors`, in float64."""
        out: Array = blas.dsymm(1.0, self.statistics.scatter.T, vectors.T, lower=True).T
        if self.mean is None:
            mean = self.statistics.mean
            out += self.n_rows * (vectors @ mean)[:, None] * mean
        return out

    def weights(self, side: str, solution: Array) -> Array:
        return solution
