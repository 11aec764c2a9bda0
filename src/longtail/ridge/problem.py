"""What the solvers of ridge solve: from the rows (`Problem`), or from sums over rows (`Statistics`).

Every problem has two sides: primal, with the Gram matrix X'X and right-hand sides X'Y, and dual, with XX' and Y. X'
turns a solution of the dual side into weights. Everything requested in float64 is summed in float64.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import blas

from longtail import progress
from longtail.arrays import Array
from longtail.native import kernels
from longtail.parallel import map_blocks, resolve_jobs
from longtail.ridge.gram import (
    add_outer,
    balanced_blocks,
    centre_of,
    check_length,
    column_means,
    column_sums,
    far_centre,
    gram_rows,
    label_sums,
    scale_rows,
    shift_columns,
    transpose,
)


@dataclass(frozen=True)
class Problem:
    """Features and labels, and what to subtract to centre them.

    `X` and `Xt` are the features and their transpose, `Yt` the transposed labels, all CSR. With an intercept, `mean`
    and `label_mean` are the column means; if `centre` is not None, features and `mean` are measured from it. Without an
    intercept all three are None.

    If rows have weights, features, labels and the 1 of "X - 1m'" are multiplied by `roots`, the roots of the weights,
    and the means are weighted: the squared error of a row then counts as often as its weight says.
    """

    X: Any
    Xt: Any
    Yt: Any
    centre: Array | None
    mean: Array | None
    label_mean: Array | None
    roots: Array | None = None

    @classmethod
    def build(cls, X: Any, Y: Any, fit_intercept: bool, weights: Array | None = None) -> Problem:
        check_length(X)
        centre = centre_of(X) if fit_intercept else None
        X = shift_columns(X, centre)
        mean = column_means(X, weights) if fit_intercept else None
        label_mean = column_means(Y, weights) if fit_intercept else None
        roots = None if weights is None else np.sqrt(weights)
        if roots is not None:
            X, Y = scale_rows(X, roots), scale_rows(Y, roots)
            check_length(X)
        return cls(X, transpose(X), transpose(Y), centre, mean, label_mean, roots)

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    @cached_property
    def total(self) -> float:
        """The number of rows, or the sum of their weights."""
        return self.n_rows if self.roots is None else float(np.square(self.roots, dtype=np.float64).sum())

    def select(self, labels: Array) -> Problem:
        """The same problem for some of the labels."""
        label_mean = None if self.label_mean is None else self.label_mean[labels]
        return replace(self, Yt=self.Yt[labels], label_mean=label_mean)

    @property
    def n_labels(self) -> int:
        return int(self.Yt.shape[0])

    @cached_property
    def _fitted_mean(self) -> Array:
        """The mean row, measured along each row."""
        return np.asarray(self.X @ self.mean)

    def factored(self, side: str) -> tuple[Any, Any]:
        """The matrix M whose M'M is the Gram matrix of a side, before centring, and its transpose."""
        return (self.X, self.Xt) if side == "primal" else (self.Xt, self.X)

    def gram(self, side: str, dtype: Any, n_jobs: int | None) -> Array:
        """The centred X'X or XX'; only the upper triangle counts."""
        matrix, transposed = self.factored(side)
        width = matrix.shape[1]
        out = np.zeros((width, width), dtype=dtype)

        def fill(rows: slice) -> int:
            self.gram_rows(side, rows, out[rows])
            return rows.stop - rows.start

        blocks = balanced_blocks(matrix, transposed, pieces=8 * resolve_jobs(n_jobs))
        with progress.task("Gram matrix", total=width) as advance:
            for done in map_blocks(fill, blocks, n_jobs):
                advance(done)
        return out

    def gram_rows(self, side: str, rows: slice, out: Array) -> None:
        """Write some rows of the centred X'X or XX' to `out`; only what is right of the diagonal counts."""
        gram_rows(*self.factored(side), rows, out)
        if self.mean is None:
            return
        if side == "primal":
            add_outer(out, -self.total * self.mean[rows], self.mean)
            return
        # (X - 1m')(X - 1m')' = XX' - u1' - 1u' + m'm 11' with u = Xm
        projected = self._fitted_mean.astype(out.dtype)
        if self.roots is not None:
            ones = self.roots.astype(out.dtype)
            add_outer(out, -projected[rows], ones)
            add_outer(out, ones[rows], float(self.mean @ self.mean) * ones - projected)
            return
        out -= projected[rows, None]
        out -= projected[None, :]
        out += out.dtype.type(self.mean @ self.mean)

    def right(self, side: str, block: slice, dtype: Any) -> Array:
        """The centred Y'X or Y' for a block of labels, dense, one label per row."""
        if side == "dual":
            dense: Array = self.Yt[block].toarray().astype(dtype, copy=False)
            if self.label_mean is not None:
                dense -= self.label_mean[block, None].astype(dtype) * self._factors(dtype)
            return dense
        sums = label_sums(self.X, self.Yt, block, dtype)
        if self.mean is not None and self.label_mean is not None:
            sums -= (self.total * self.label_mean[block, None]).astype(dtype) * self.mean.astype(dtype)
        return sums

    def _factors(self, dtype: Any) -> Any:
        """The ones of all rows as a factor that costs nothing without weights."""
        return dtype(1) if self.roots is None else self.roots.astype(dtype)

    def fitted(self, weights: Array) -> Array:
        """The centred X times weights with one label per row, in float64, one label per row."""
        out = self.X @ weights.T.astype(np.float64)
        if self.mean is not None:
            out -= (self.mean @ weights.T) * (1 if self.roots is None else self.roots[:, None])
        return np.asarray(out.T)

    def image(self, side: str, vectors: Array) -> Array:
        """The centred X'X or XX' times each row of `vectors`, in float64."""
        vectors = vectors.astype(np.float64, copy=False)
        return self._turned(self.fitted(vectors)) if side == "primal" else self.fitted(self._turned(vectors))

    def _turned(self, duals: Array) -> Array:
        out = self.Xt @ duals.T
        if self.mean is not None:
            out -= self.mean[:, None] * self._summed(duals)
        return np.asarray(out.T)

    def weights(self, side: str, solution: Array) -> Array:
        """Weights from a solution of either side, one label per row."""
        if side == "primal":
            return solution
        if solution.dtype == np.float64:
            return self._turned(solution)
        out = np.empty((self.Xt.shape[0], len(solution)), dtype=np.float32)
        kernels.multiply(self.Xt.indptr, self.Xt.indices, self.Xt.data, np.ascontiguousarray(solution.T), out)
        if self.mean is not None:
            # The duals of centred targets sum to zero, but only to rounding.
            out -= self.mean.astype(np.float32)[:, None] * self._summed(solution)
        return out.T

    def _summed(self, duals: Array) -> Array:
        """The sum over rows of each label's duals, times the ones."""
        return np.asarray(duals.sum(axis=1) if self.roots is None else duals @ self.roots)


@dataclass(frozen=True)
class Statistics:
    """Sums over the rows seen so far. Ridge can be solved from them without the rows, so rows and labels can be added.

    Each is a sum over rows: adding the sums of new rows gives those of all rows together. They are kept in float64, and
    the scatter matrix is about the mean, so that features far from zero lose no digits.

    Parameters
    ----------
    n_rows : int or float
        The number of rows, or the sum of their weights.
    scatter : float64 array of shape (n_features, n_features)
        (X - 1m')'(X - 1m') with m the means of the features; only its upper triangle counts.
    cross : float64 csr_array of shape (n_labels, n_features)
        Y'X.
    feature_sums, label_counts : float64 arrays
    """

    n_rows: float
    scatter: Array
    cross: Any
    feature_sums: Array
    label_counts: Array

    @classmethod
    def of(cls, X: Any, Y: Any, n_jobs: int | None, weights: Array | None = None) -> Statistics:
        """Sum up the rows of `X` and `Y`, each as often as its weight says."""
        check_length(X)
        weighted = Y if weights is None else scale_rows(Y, weights)
        total = X.shape[0] if weights is None else float(weights.sum(dtype=np.float64))
        cross = sparse.csr_array(transpose(weighted).astype(np.float64) @ X)
        cross.sort_indices()
        shifted = shift_columns(X, centre_of(X))
        mean, roots = column_means(shifted, weights), None if weights is None else np.sqrt(weights)
        scaled = shifted if roots is None else scale_rows(shifted, roots)
        centred = Problem(scaled, transpose(scaled), None, None, mean, None, roots)
        scatter = centred.gram("primal", np.float64, n_jobs)
        return cls(total, scatter, cross, column_sums(X, weights), column_sums(Y, weights))

    @classmethod
    def of_gram(cls, n_rows: float, gram: Array, cross: Any, feature_sums: Array, label_counts: Array) -> Statistics:
        """From X'X about zero in float32, as models of earlier versions store it; digits lost there stay lost."""
        scatter = gram.astype(np.float64)
        add_outer(scatter, -feature_sums, feature_sums / n_rows)
        return cls(n_rows, scatter, cross.astype(np.float64), feature_sums, label_counts)

    @property
    def mean(self) -> Array:
        return self.feature_sums / self.n_rows

    def plus(self, other: Statistics) -> Statistics:
        """The sums over the rows of both; missing labels count as labels without rows."""
        labels = max(len(self.label_counts), len(other.label_counts))
        n_rows = self.n_rows + other.n_rows
        cross = sparse.csr_array(_widen(self.cross, labels) + _widen(other.cross, labels))
        cross.sort_indices()
        scatter = self.scatter + other.scatter
        apart = self.mean - other.mean
        add_outer(scatter, self.n_rows * other.n_rows / n_rows * apart, apart)
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
    """A `Problem` of which only the sums are left; it has only the primal side."""

    statistics: Statistics
    centre: Array | None
    mean: Array | None
    label_mean: Array | None

    @property
    def n_rows(self) -> int:
        return math.ceil(self.statistics.n_rows)

    @property
    def n_labels(self) -> int:
        return len(self.statistics.label_counts)

    def gram(self, side: str, dtype: Any, n_jobs: int | None) -> Array:
        """A fresh copy of X'X, centred if there is an intercept; only the upper triangle counts."""
        gram = self.statistics.scatter.astype(dtype)
        if self.mean is None:
            add_outer(gram, self.statistics.feature_sums, self.statistics.mean)
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
            out += self.statistics.n_rows * (vectors @ mean)[:, None] * mean
        return out

    def weights(self, side: str, solution: Array) -> Array:
        return solution
