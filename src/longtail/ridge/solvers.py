"""Direct solvers of ridge for one block of labels at a time (Onishi & Hayashi 2025, eq. for W).

They minimise ||XW - Y||^2 + alpha ||W||^2, one label per row. `Factor` is a Cholesky factor of X'X + alpha I or
XX' + alpha I; `Spectral` keeps an eigendecomposition, which serves every alpha.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import linalg

from longtail.arrays import Array
from longtail.ridge.cholesky import factor_in_place

PRECISION = 1e-4  # largest relative error of fitted values that rounding may cause
_SMALLEST_PIVOT = 16  # in units of rounding, relative to the diagonal entry: a smaller pivot is only rounding


def leaning(right: Array, solution: Array, diagonal: Array) -> Array:
    """How much each solution, one per row, depends on weak directions of the matrix, where rounding shows first."""
    energy = np.einsum("ij,ij->i", right, solution)
    size = np.einsum("ij,ij,j->i", solution, solution, diagonal)
    return np.divide(size, energy, out=np.zeros_like(size), where=energy > 0)


@dataclass(frozen=True)
class Factor:
    """The Cholesky factor of gram + alpha I, in the upper triangle of a C-ordered matrix; `failed` if there is none.

    `diagonal` is that of gram + alpha I.
    """

    upper: Array
    diagonal: Array
    alpha: float
    failed: bool

    @classmethod
    def of(cls, gram: Array, alpha: float, n_jobs: int | None) -> Self:
        """Factor in place; only the upper triangle of `gram` counts."""
        gram.flat[:: len(gram) + 1] += gram.dtype.type(alpha)
        diagonal = np.diagonal(gram).copy()
        found = factor_in_place(gram, n_jobs)
        smallest = _SMALLEST_PIVOT * np.finfo(gram.dtype).eps * diagonal
        return cls(gram, diagonal, alpha, not found or bool((np.diagonal(gram) ** 2 < smallest).any()))

    def solve(self, right: Array) -> Array:
        """Solve for each row of `right`, in place if LAPACK allows."""
        [potrs] = linalg.get_lapack_funcs(("potrs",), (self.upper,))
        solution, _ = potrs(self.upper.T, right.T, lower=True, overwrite_b=True)
        return np.ascontiguousarray(solution.T)

    def hardest(self, right: Array, solution: Array) -> tuple[int, float]:
        """The row whose solution depends most on weak directions, and how much; 0 if all are zero."""
        ratio = leaning(right, solution, self.diagonal)
        row = int(np.argmax(ratio)) if len(ratio) else 0
        return row, float(ratio.max(initial=0))

    def is_precise(self, problem: Any, side: str, right: Array, solution: Array) -> bool:
        """Whether one step of refinement in float64 leaves the fitted values of a one-row `solution` as they are.

        `right` is its right-hand side in float64.
        """
        image = problem.image(side, solution)
        residual = right - image - self.alpha * solution
        change = self.solve(residual.astype(self.upper.dtype))
        changed = problem.image(side, change)
        if side == "primal":
            error, length = np.vdot(change, changed), np.vdot(solution, image)
        else:
            # Fitted values come from the weights, which have a rounding error of their own.
            rounded = problem.fitted(problem.weights(side, solution)) - image - changed
            error, length = np.vdot(rounded, rounded), np.vdot(image, image)
        return bool(error <= PRECISION**2 * length)


class Spectral:
    """One eigendecomposition of X'X or XX', whichever is smaller; serves any alpha, and one alpha per label.

    In float64 throughout: ill-conditioned problems end up here, and single precision would be no faster.
    """

    def __init__(self, problem: Any, side: str, values: Array, vectors: Array) -> None:
        self.problem, self.side = problem, side
        self.values, self.vectors = values, vectors

    @classmethod
    def of(cls, problem: Any, side: str, n_jobs: int | None) -> Self:
        return cls(problem, side, *eigenvectors(problem.gram(side, np.float64, n_jobs)))

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


def eigenvectors(gram: Array) -> tuple[Array, Array]:
    """The eigenvalues, which are at least 0, and eigenvectors; only the upper triangle of `gram` counts."""
    values, vectors = linalg.eigh(gram.T, lower=True, overwrite_a=True, check_finite=False)
    return np.maximum(values, 0), vectors
