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

from longtail.errors import InvalidInput
from longtail.linear.gram import centre_gram, column_sums, gram_matrix, label_sums, transpose
from longtail.native import kernels
from longtail.parallel import map_blocks, split

Array = np.ndarray[Any, np.dtype[Any]]

_LONGEST = 1e17  # of all features together: its square, and what solvers make of it, must stay within 32-bit floats


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
        length = float(np.linalg.norm(X.data.astype(np.float64)))
        if length > _LONGEST:
            raise InvalidInput(f"the features are too large for 32-bit sums (length {length:.1e}); scale the features")
        if fit_intercept:
            mean = (column_sums(X) / X.shape[0]).astype(np.float32)
            label_mean = (column_sums(Y) / X.shape[0]).astype(np.float32)
        return cls(X, transpose(X), transpose(Y), mean, label_mean)

    def largest(self, side: str) -> float:
        """The largest squared length of a column of X, or of a row where the side is dual."""
        squares = column_sums(self.X * self.X) if side == "primal" else column_sums(self.Xt * self.Xt)
        return float(squares.max(initial=0))

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


def factor(gram: Array, alpha: float, largest: float) -> Array | None:
    """The Cholesky factor of gram + alpha I from its upper triangle, in place.

    None where there is none, or none worth having: `largest`, the largest entry of the Gram matrix before it was
    centred, tells how much rounding there is in all of it.
    """
    gram.flat[:: len(gram) + 1] += np.float32(alpha)
    # A C-ordered upper triangle is the lower triangle of its transpose, which LAPACK factors without a copy.
    lower, failed = linalg.lapack.spotrf(gram.T, lower=True, overwrite_a=True, clean=False)
    if failed:
        return None
    pivots = np.diagonal(lower)
    if pivots.size and pivots.min() ** 2 < 128 * np.finfo(np.float32).eps * largest:
        return None
    return np.asarray(lower)


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
        self._factor = factor(gram, alpha, problem.largest("primal"))
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
        self._factor = factor(gram, alpha, problem.largest("dual"))
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
    """(X - 1m')'A for dual coefficients A, given and returned with one label per row."""
    Xt = problem.Xt
    if duals.dtype == np.float64:
        out = Xt.astype(np.float64) @ duals.T
    else:
        out = np.empty((Xt.shape[0], len(duals)), dtype=np.float32)
        kernels.multiply(Xt.indptr, Xt.indices, Xt.data, np.ascontiguousarray(duals.T), out)
    if problem.mean is not None:
        # The duals of centred targets sum to zero, but only to rounding, which large means would blow up.
        out -= problem.mean[:, None] * duals.sum(axis=1)[None, :]
    return np.ascontiguousarray(out.T, dtype=np.float32)


class Spectral:
    """One eigendecomposition of X'X or XX', whichever is smaller; serves any alpha, and one alpha per label.

    In float64 throughout: it is also what ill-conditioned problems are left to, and single precision is no faster here.
    """

    threaded = False

    def __init__(self, problem: Any, n_jobs: int | None, side: str, gram: Array | None = None) -> None:
        self.side = side
        self.problem = problem
        if gram is None:
            gram = double_gram(problem, side, n_jobs)
        values, self.vectors = linalg.eigh(
            gram.T.astype(np.float64, copy=False), lower=True, overwrite_a=True, check_finite=False
        )
        self.values = np.maximum(values, 0)

    def coordinates(self, block: slice) -> Array:
        """The right-hand sides of a block of labels in the eigenbasis, one label per row."""
        right = self.problem.cross(block) if self.side == "primal" else self.problem.targets(block)
        return right @ self.vectors

    def shrink(self, alphas: Array) -> Array:
        """1 / (eigenvalue + alpha), one row per alpha; where alpha is 0, directions without any weight are dropped."""
        alphas = np.asarray(alphas, dtype=np.float64)[:, None]
        shifted = self.values[None, :] + alphas
        floor = np.where(alphas > 0, 0, np.finfo(np.float32).eps * self.values.max(initial=0))
        return np.divide(1, shifted, out=np.zeros_like(shifted), where=shifted > floor)

    def solve(self, block: slice, alphas: Array) -> Array:
        solution = (self.coordinates(block) * self.shrink(alphas)) @ self.vectors.T
        if self.side == "dual":
            return dual_to_primal(self.problem, solution)
        return np.ascontiguousarray(solution, dtype=np.float32)


def double_gram(problem: Problem, side: str, n_jobs: int | None) -> Array:
    """The centred X'X or XX' in float64, in full."""
    left, right = (problem.Xt, problem.X) if side == "primal" else (problem.X, problem.Xt)
    right = right.astype(np.float64)
    out = np.empty((left.shape[0], left.shape[0]))

    def fill(block: slice) -> None:
        out[block] = (left[block].astype(np.float64) @ right).toarray()

    for _ in map_blocks(fill, split(left.shape[0], 256), n_jobs):
        pass
    if problem.mean is not None:
        mean = column_sums(problem.X) / problem.X.shape[0]
        if side == "primal":
            out -= problem.X.shape[0] * mean[:, None] * mean[None, :]
        else:
            projected = problem.X @ mean
            out -= projected[:, None]
            out -= projected[None, :]
            out += mean @ mean
    return out
