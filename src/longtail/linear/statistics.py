"""The sums from which ridge can be solved without the rows, so that rows and labels can be added later.

X'X, X'Y and the column sums are sums over rows: adding the sums of new rows gives exactly what a fit on all rows
together would have, up to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from longtail.linear.gram import centre_gram, column_sums, gram_matrix, transpose

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Statistics:
    """Sums over the rows seen so far.

    Parameters
    ----------
    n_rows : int
    gram : float32 array of shape (n_features, n_features)
        X'X; only its upper triangle counts.
    cross : csr_array of shape (n_labels, n_features)
        Y'X.
    feature_sums, label_counts : float64 arrays
    """

    n_rows: int
    gram: Array
    cross: Any
    feature_sums: Array
    label_counts: Array

    @classmethod
    def of(cls, X: Any, Y: Any, n_jobs: int | None) -> Statistics:
        """Sum up the rows of `X` and `Y`."""
        Xt = transpose(X)
        cross = sparse.csr_array(transpose(Y) @ X)
        cross.sort_indices()
        return cls(X.shape[0], gram_matrix(X, Xt, n_jobs), cross, column_sums(X), column_sums(Y))

    def plus(self, other: Statistics) -> Statistics:
        """The sums over the rows of both; the one with fewer labels gets the missing ones, without any rows."""
        labels = max(len(self.label_counts), len(other.label_counts))
        cross = sparse.csr_array(_widen(self.cross, labels) + _widen(other.cross, labels))
        cross.sort_indices()
        return Statistics(
            self.n_rows + other.n_rows,
            self.gram + other.gram,
            cross,
            self.feature_sums + other.feature_sums,
            np.pad(self.label_counts, (0, labels - len(self.label_counts)))
            + np.pad(other.label_counts, (0, labels - len(other.label_counts))),
        )

    def problem(self, fit_intercept: bool) -> SummedProblem:
        mean = label_mean = None
        if fit_intercept:
            mean = (self.feature_sums / self.n_rows).astype(np.float32)
            label_mean = (self.label_counts / self.n_rows).astype(np.float32)
        return SummedProblem(self, mean, label_mean)


def _widen(cross: Any, labels: int) -> Any:
    indptr = np.pad(cross.indptr, (0, labels - cross.shape[0]), mode="edge")
    return sparse.csr_array((cross.data, cross.indices, indptr), shape=(labels, cross.shape[1]))


@dataclass(frozen=True)
class SummedProblem:
    """Stands in for `Problem` where only the sums are left; serves the primal solvers."""

    statistics: Statistics
    mean: Array | None
    label_mean: Array | None

    def largest(self, side: str) -> float:
        return float(np.diagonal(self.statistics.gram).max(initial=0))

    def gram(self) -> Array:
        """A fresh copy of the Gram matrix, centred where there is an intercept."""
        gram = self.statistics.gram.copy()
        if self.mean is not None:
            centre_gram(gram, self.statistics.n_rows, self.mean)
        return gram

    def cross(self, block: slice) -> Array:
        sums: Array = self.statistics.cross[block].toarray()
        if self.mean is not None and self.label_mean is not None:
            sums -= np.float32(self.statistics.n_rows) * self.label_mean[block, None] * self.mean[None, :]
        return sums
