"""Solvers of ridge for one block of labels at a time (Onishi & Hayashi 2025, eq. for W).

They minimise ||XW - Y||^2 + alpha ||W||^2. Each solver is prepared once from the features and then solves block after
block, one label per row: `Cholesky` factors X'X + alpha I or XX' + alpha I; `Spectral` keeps an eigendecomposition,
which serves every alpha; `conjugate` has a third, iterative one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from scipy import linalg

from longtail.arrays import Array
from longtail.memory import MemoryPlan

_log = logging.getLogger(__name__)

PRECISION = 1e-4  # largest relative error of fitted values that rounding may cause
_SMALLEST_PIVOT = 16  # in units of rounding, relative to the diagonal entry: a smaller pivot is only rounding


class Solver(Protocol):
    threaded: bool  # whether our threads solve blocks; otherwise BLAS uses its own

    def solve(self, block: slice, alphas: Array) -> Array:
        """Weights of the labels of `block`, one label per row; `alphas` holds the alpha of each."""


def leaning(right: Array, solution: Array, diagonal: Array) -> Array:
    """How much each solution, one per row, depends on weak directions of the matrix, where rounding shows first."""
    energy = np.einsum("ij,ij->i", right, solution)
    size = np.einsum("ij,ij,j->i", solution, solution, diagonal)
    return np.divide(size, energy, out=np.zeros_like(size), where=energy > 0)


class Factor:
    """The Cholesky factor of gram + alpha I, computed in place from the upper triangle; `failed` if there is none."""

    def __init__(self, gram: Array, alpha: float) -> None:
        self._alpha = alpha
        self._dtype = gram.dtype
        gram.flat[:: len(gram) + 1] += gram.dtype.type(alpha)
        self._diagonal = np.diagonal(gram).copy()
        (potrf, self._potrs) = linalg.get_lapack_funcs(("potrf", "potrs"), (gram,))
        # A C-ordered upper triangle is the lower triangle of its transpose, which LAPACK factors without a copy.
        self._lower, failed = potrf(gram.T, lower=True, overwrite_a=True, clean=False)
        smallest = _SMALLEST_PIVOT * np.finfo(gram.dtype).eps * self._diagonal
        self.failed = bool(failed) or bool((np.diagonal(self._lower) ** 2 < smallest).any())

    def solve(self, right: Array) -> Array:
        """Solve for each row of `right`, in place if LAPACK allows."""
        solution, _ = self._potrs(self._lower, right.T, lower=True, overwrite_b=True)
        return np.ascontiguousarray(solution.T)

    def hardest(self, right: Array, solution: Array) -> tuple[int, float]:
        """The row whose solution depends most on weak directions, and how much; 0 if all are zero."""
        ratio = leaning(right, solution, self._diagonal)
        row = int(np.argmax(ratio)) if len(ratio) else 0
        return row, float(ratio.max(initial=0))

    def is_precise(self, problem: Any, side: str, right: Array, solution: Array) -> bool:
        """Whether one step of refinement in float64 leaves the fitted values of a one-row `solution` as they are.

        `right` is its right-hand side in float64.
        """
        image = problem.image(side, solution)
        residual = right - image - self._alpha * solution
        change = self.solve(residual.astype(self._dtype))
        changed = problem.image(side, change)
        if side == "primal":
            error, length = np.vdot(change, changed), np.vdot(solution, image)
        else:
            # Fitted values come from the weights, which have a rounding error of their own.
            rounded = problem.fitted(problem.weights(side, solution)) - image - changed
            error, length = np.vdot(rounded, rounded), np.vdot(image, image)
        return bool(error <= PRECISION**2 * length)


class Cholesky:
    """W = (X'X + alpha I)^-1 X'Y (primal, wants few features), or X'(XX' + alpha I)^-1 Y (dual, wants few rows).

    If it starts in float32, it stays there while that is precise enough, which is checked on the hardest labels. From
    the first block that needs more it uses float64, and an eigendecomposition if there is no factor. `plan` returns the
    memory plan of "float64" and "spectral", which is checked before that memory is allocated.
    """

    threaded = False

    def __init__(
        self,
        problem: Any,
        side: str,
        alpha: float,
        precision: str,
        n_jobs: int | None,
        plan: Callable[[str], MemoryPlan],
        gram: Array | None = None,
    ) -> None:
        self._problem, self._side, self._alpha, self._n_jobs, self._plan = problem, side, alpha, n_jobs, plan
        self._dtype: Any = np.float32 if precision == "float32" else np.float64
        self._spectral: Spectral | None = None
        self._warned = False
        self._passed = 0.0  # largest dependence on weak directions of a solution that was still precise
        self._factor: Factor | None = Factor(problem.gram(side, self._dtype, n_jobs) if gram is None else gram, alpha)
        if self._factor.failed:
            self._be_more_precise()

    def solve(self, block: slice, alphas: Array) -> Array:
        if self._spectral is not None:
            return self._spectral.solve(block, alphas)
        assert self._factor is not None
        right = self._problem.right(self._side, block, self._dtype)
        solution = self._factor.solve(right.copy())
        if not self._warned and not self._is_precise(block, right, solution):
            if self._dtype == np.float32:
                self._be_more_precise()
                return self.solve(block, alphas)
            self._warned = True
            _log.warning("the features are too ill-conditioned even for double precision; scale or centre them")
        return np.ascontiguousarray(self._problem.weights(self._side, solution), dtype=np.float32)

    def _is_precise(self, block: slice, right: Array, solution: Array) -> bool:
        assert self._factor is not None
        hardest, leans = self._factor.hardest(right, solution)
        # A check visits all rows, so a block is checked only if it is harder than those that have passed.
        if leans <= self._passed:
            return True
        label = block.start + hardest
        exact = self._problem.right(self._side, slice(label, label + 1), np.float64)
        precise = self._factor.is_precise(self._problem, self._side, exact, solution[[hardest]])
        if precise:
            self._passed = leans
        return precise

    def _be_more_precise(self) -> None:
        self._factor = None
        if self._dtype == np.float32:
            _log.info("the features are too ill-conditioned for single precision; factoring in double precision")
            self._plan("float64").check()
            self._dtype, self._passed = np.float64, 0.0
            self._factor = Factor(self._problem.gram(self._side, np.float64, self._n_jobs), self._alpha)
            if not self._factor.failed:
                return
            self._factor = None
        _log.info("the Gram matrix is too ill-conditioned for Cholesky; using its eigendecomposition")
        self._plan("spectral").check()
        self._spectral = Spectral(self._problem, self._side, self._n_jobs)


class Spectral:
    """One eigendecomposition of X'X or XX', whichever is smaller; serves any alpha, and one alpha per label.

    In float64 throughout: ill-conditioned problems end up here, and single precision would be no faster.
    """

    threaded = False

    def __init__(self, problem: Any, side: str, n_jobs: int | None) -> None:
        self.side = side
        self.problem = problem
        gram = problem.gram(side, np.float64, n_jobs)
        values, self.vectors = linalg.eigh(gram.T, lower=True, overwrite_a=True, check_finite=False)
        self.values = np.maximum(values, 0)

    def coordinates(self, block: slice) -> Array:
        """The right-hand sides of a block of labels in the eigenbasis, one label per row."""
        return np.asarray(self.problem.right(self.side, block, np.float64) @ self.vectors)

    def shrink(self, alphas: Array) -> Array:
        """1 / (eigenvalue + alpha), one row per alpha; if alpha is 0, directions that are only rounding are dropped."""
        alphas = np.asarray(alphas, dtype=np.float64)[:, None]
        shifted = self.values[None, :] + alphas
        rounding = max(self.problem.n_rows, len(self.values)) * np.finfo(np.float64).eps
        floor = np.where(alphas > 0, 0, rounding * self.values.max(initial=0))
        return np.divide(1, shifted, out=np.zeros_like(shifted), where=shifted > floor)

    def solve(self, block: slice, alphas: Array) -> Array:
        solution = (self.coordinates(block) * self.shrink(alphas)) @ self.vectors.T
        return np.ascontiguousarray(self.problem.weights(self.side, solution), dtype=np.float32)
