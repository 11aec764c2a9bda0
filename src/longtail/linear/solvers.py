"""Ways to solve ridge for a block of labels at a time (Onishi & Hayashi 2025, eq. for W).

Minimise ||XW - Y||^2 + alpha ||W||^2. Each solver is prepared once from the features and then asked for the weights
of one block of labels after another, one label per row: `PrimalCholesky` factors X'X + alpha I, `DualCholesky`
XX' + alpha I, and `Spectral` keeps an eigendecomposition, which serves every alpha. `conjugate` has one more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy import linalg

from longtail.linear.gram import centre_gram, column_sums, gram_matrix, label_sums, transpose
from longtail.native import kernels

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Problem:
    """Features and labels as the solvers want them.

    `X` and `Xt` are the features and their transpose, `Yt` the transposed labels, all CSR; `mean` and `label_mean`
    are the column means to centre by, or None without an intercept.
    """

    X: Any
    Xt: Any
    Yt: Any
    mean: Array | None
    label_mean: Array | None

    @classmethod
    def build(cls, X: Any, Y: Any, fit_intercept: bool) -> Problem:
        mean = label_mean = None
        if fit_intercept:
            mean = (column_sums(X) / X.shape[0]).astype(np.float32)
            label_mean = (column_sums(Y) / X.shape[0]).astype(np.float32)
        return cls(X, transpose(X), transpose(Y), mean, label_mean)

    def select(self, labels: Array) -> Problem:
        """The same with only the given labels."""
        label_mean = None if self.label_mean is None else self.label_mean[labels]
        return replace(self, Yt=self.Yt[labels], label_mean=label_mean)

    def cross(self, block: slice) -> Array:
        """Y'X of the centred matrices for a block of labels, one label per row."""
        sums = label_sums(self.X, self.Yt, block)
        if self.mean is not None and self.label_mean is not None:
            sums -= np.float32(self.X.shape[0]) * self.label_mean[block, None] * self.mean[None, :]
        return sums

    def targets(self, block: slice) -> Array:
        """The centred targets Y' of a block of labels, one label per row, dense."""
        dense: Array = self.Yt[block].toarray()
        if self.label_mean is not None:
            dense -= self.label_mean[block, None]
        return dense


class Solver(Protocol):
    threaded: bool  # whether blocks may be solved by our threads (else BLAS brings its own)

    def solve(self, block: slice, alphas: Array) -> Array:
        """Weights of the labels of `block`, one label per row; `alphas` holds the alpha of each."""


def factor(gram: Array, alpha: float) -> Array | None:
    """The Cholesky factor of gram + alpha I from its upper triangle, in place, or None where there is none."""
    gram.flat[:: len(gram) + 1] += np.float32(alpha)
    # A C-ordered upper triangle is the lower triangle of its transpose, which LAPACK factors without a copy.
    factor, failed = linalg.lapack.spotrf(gram.T, lower=True, overwrite_a=True, clean=False)
    if failed:
        return None
    pivots = np.diagonal(factor)
    # Below this the solution has lost all digits a ranking needs.
    if pivots.size and pivots.min() ** 2 < 1e-6 * pivots.max() ** 2:
        return None
    return np.asarray(factor)


def solve_factored(factor: Array, right: Array) -> Array:
    """Solve for each row of `right`, in place where LAPACK allows."""
    solution, _ = linalg.lapack.spotrs(factor, right.T, lower=True, overwrite_b=True)
    return np.ascontiguousarray(solution.T)


class PrimalCholesky:
    """W = (X'X + alpha I)^-1 X'Y; wants few features. `problem` may also be one of which only the sums are left."""

    threaded = False

    def __init__(self, problem: Any, alpha: float, n_jobs: int | None, gram: Array | None = None) -> None:
        self._problem = problem
        if gram is None:
            gram = primal_gram(problem, n_jobs)
        self._factor = factor(gram, alpha)
        self.failed = self._factor is None

    def solve(self, block: slice, alphas: Array) -> Array:
        assert self._factor is not None
        return solve_factored(self._factor, self._problem.cross(block))


class DualCholesky:
    """W = X'(XX' + alpha I)^-1 Y; wants few rows."""

    threaded = False

    def __init__(self, problem: Problem, alpha: float, n_jobs: int | None, gram: Array | None = None) -> None:
        self._problem = problem
        if gram is None:
            gram = dual_gram(problem, n_jobs)
        self._factor = factor(gram, alpha)
        self.failed = self._factor is None

    def solve(self, block: slice, alphas: Array) -> Array:
        assert self._factor is not None
        return dual_to_primal(self._problem, solve_factored(self._factor, self._problem.targets(block)))


def primal_gram(problem: Problem, n_jobs: int | None) -> Array:
    """The centred X'X (upper triangle)."""
    gram = gram_matrix(problem.X, problem.Xt, n_jobs)
    if problem.mean is not None:
        centre_gram(gram, problem.X.shape[0], problem.mean)
    return gram


def dual_gram(problem: Problem, n_jobs: int | None) -> Array:
    """The centred XX' (upper triangle): (X - 1m')(X - 1m')' = XX' - u1' - 1u' + m'm 11' with u = Xm."""
    gram = gram_matrix(problem.Xt, problem.X, n_jobs)
    if problem.mean is not None:
        projected = (problem.X @ problem.mean).astype(np.float32)
        gram -= projected[:, None]
        gram -= projected[None, :]
        gram += np.float32(problem.mean @ problem.mean)
    return gram


def dual_to_primal(problem: Problem, duals: Array) -> Array:
    """X'A for dual coefficients A, given and returned with one label per row.

    The duals of centred targets sum to zero over rows, so centring X changes nothing here.
    """
    out = np.empty((problem.X.shape[1], len(duals)), dtype=np.float32)
    Xt = problem.Xt
    kernels.multiply(Xt.indptr, Xt.indices, Xt.data, np.ascontiguousarray(duals.T), out)
    return np.ascontiguousarray(out.T)


class Spectral:
    """One eigendecomposition of X'X or XX', whichever is smaller; serves any alpha, and one alpha per label."""

    threaded = False

    def __init__(self, problem: Any, n_jobs: int | None, side: str, gram: Array | None = None) -> None:
        self.side = side
        self.problem = problem
        if gram is None:
            gram = primal_gram(problem, n_jobs) if side == "primal" else dual_gram(problem, n_jobs)
        # In float64: single precision is no faster here and loses the small eigenvalues.
        values, vectors = linalg.eigh(gram.T.astype(np.float64), lower=True, overwrite_a=True, check_finite=False)
        del gram
        self.values = np.maximum(values, 0).astype(np.float32)
        self.vectors = np.ascontiguousarray(vectors, dtype=np.float32)

    def coordinates(self, block: slice) -> Array:
        """The right-hand sides of a block of labels in the eigenbasis, one label per row."""
        right = self.problem.cross(block) if self.side == "primal" else self.problem.targets(block)
        return right @ self.vectors

    def shrink(self, alphas: Array) -> Array:
        """1 / (eigenvalue + alpha), one row per alpha; directions without any weight are dropped where alpha is 0."""
        shifted = self.values[None, :] + alphas[:, None]
        floor = np.finfo(np.float32).eps * self.values.max(initial=0)
        return np.divide(1, shifted, out=np.zeros_like(shifted), where=shifted > floor)

    def solve(self, block: slice, alphas: Array) -> Array:
        solution = (self.coordinates(block) * self.shrink(alphas)) @ self.vectors.T
        return solution if self.side == "primal" else dual_to_primal(self.problem, solution)
