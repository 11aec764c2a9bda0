"""Ridge by conjugate gradients on the sparse matrix, for all labels of a block in lockstep.

All labels share one preconditioner: the diagonal of X'X + alpha I, plus a basis of the directions in which the scaled
matrix is largest, found once by subspace iteration. For text, a few directions hold most of the spread of the spectrum,
so they more than halve the number of iterations.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from longtail.arrays import Array
from longtail.native import kernels
from longtail.parallel import check_stop
from longtail.ridge.gram import column_squares
from longtail.ridge.problem import Problem
from longtail.ridge.solvers import PRECISION

_LARGEST_BASIS = 64
_ROUNDS = 5  # of subspace iteration: a rough basis is enough
_SETTLED = 4  # times tol: iteration continues while the last step, relative to all steps, is longer
_MISLED = 5  # times tol: a larger error, in energy, was hidden by rounding or by weak directions
_PROBED_LABELS = 8
_LANE = 8  # finished labels are dropped in groups of this size, to keep a block width that suits the kernels


def basis_size(n_rows: int, n_features: int, n_labels: int) -> int:
    """Number of directions worth finding: 0 for a few labels, which would not repay the cost."""
    return min(_LARGEST_BASIS, n_labels // 4, n_rows // 8, n_features // 8) // _LANE * _LANE


class Preconditioner(NamedTuple):
    """An approximate inverse of X'X + alpha I: ``R -> R * inverse + basis (gain * basis'R)``."""

    inverse: Array
    basis: Array
    gain: Array

    @classmethod
    def of(cls, problem: Problem, alpha: float, size: int) -> Preconditioner:
        """With a basis of `size` directions."""
        squares = column_squares(problem.X)
        if problem.mean is not None:
            squares = np.maximum(squares - problem.total * problem.mean**2, 0)
        if alpha == 0:
            # Scaling each feature would give the solution of smallest scaled norm instead of smallest norm.
            squares[:] = squares.mean() or 1.0
        # Above zero: a constant feature may have nothing else to divide by.
        diagonal = np.maximum(squares + alpha, np.finfo(np.float32).tiny)
        inverse = (1 / diagonal).astype(np.float32)
        if not size:
            return cls(inverse, np.zeros((len(inverse), 0), dtype=np.float32), np.zeros(0, dtype=np.float32))
        scale = np.sqrt(inverse)[:, None]

        def scaled(directions: Array) -> Array:
            turned = np.ascontiguousarray(directions * scale)
            return scale * (apply_gram(problem, turned) + np.float32(alpha) * turned)

        found = np.random.default_rng(0).standard_normal((len(scale), size), dtype=np.float32)
        for _ in range(_ROUNDS):
            found = linalg.qr(scaled(found), mode="economic", overwrite_a=True, check_finite=False)[0]
        values, vectors = linalg.eigh((found.T @ scaled(found)).astype(np.float64))
        # All directions found are shrunk to the smallest of them, where the rest of the spectrum begins.
        gain = (values.min() / np.maximum(values, np.finfo(np.float32).tiny) - 1).astype(np.float32)
        return cls(inverse, np.ascontiguousarray(scale * (found @ vectors.astype(np.float32))), gain)

    def correct(self, residual: Array) -> tuple[Array, Array]:
        """The part of the basis in the preconditioned residual, and in the energy of each label."""
        coordinates = self.basis.T @ residual
        scaled = self.gain[:, None] * coordinates
        return self.basis @ scaled, np.einsum("ij,ij->j", coordinates, scaled)


def apply_gram(problem: Problem, directions: Array) -> Array:
    """(X - 1m')'(X - 1m') directions, one direction per column."""
    projected = np.empty((problem.X.shape[0], directions.shape[1]), dtype=np.float32)
    out = np.empty_like(directions)
    apply_gram_into(problem, directions, projected, out)
    return out


def apply_gram_into(problem: Problem, directions: Array, projected: Array, out: Array) -> None:
    """The same, with buffers for the images on the rows and for the result."""
    X, Xt = problem.X, problem.Xt
    mean = None if problem.mean is None else problem.mean.astype(np.float32)
    ones = None if problem.roots is None else problem.roots.astype(np.float32)
    kernels.multiply(X.indptr, X.indices, X.data, directions, projected)
    if mean is not None:
        projected -= mean @ directions if ones is None else ones[:, None] * (mean @ directions)
    kernels.multiply(Xt.indptr, Xt.indices, Xt.data, projected, out)
    if mean is not None:
        out -= mean[:, None] * (projected.sum(axis=0) if ones is None else ones @ projected)[None, :]


class ConjugateGradients:
    """Solves blocks of labels until the residual is `tol` times the right-hand side.

    Both are measured after preconditioning, where a length is close to the error in the fitted values. `iterations`,
    `stopped` and `error` tell how many iterations were needed, whether `max_iter` stopped some before that, and the
    largest relative error that refinement in float64 has left.

    Every label has its own step sizes and leaves the block when it has converged, so its weights do not depend on the
    other labels of its block.
    """

    def __init__(self, problem: Problem, preconditioner: Preconditioner, tol: float, max_iter: int) -> None:
        self._problem, self._preconditioner = problem, preconditioner
        self._tol = tol
        self._largest_error = max(_MISLED * tol, PRECISION)
        self._max_iter = max_iter
        self.iterations = 0
        self.stopped = False
        self.error = 0.0

    def are_misled(self, alphas: Array) -> bool:
        """Whether rounding or weak directions mislead, tested on labels from the rarest to the most frequent."""
        if not len(alphas):
            return False
        order = np.argsort(np.diff(self._problem.Yt.indptr), kind="stable")
        few = order[np.linspace(0, len(order) - 1, min(_PROBED_LABELS, len(order))).astype(int)]
        weights, converged = self.solve_for(self._right(few, np.float32), alphas[few])
        iterations = self.iterations
        error = self._correction(few, weights, alphas[few])[1] if converged else 0.0
        self.iterations = iterations  # those of the solution, not of its correction
        return error > self._largest_error

    def _right(self, labels: Array, dtype: Any) -> Array:
        return self._problem.select(labels).right("primal", slice(0, len(labels)), dtype)

    def solve(self, block: slice, alphas: Array, refine: bool) -> Array:
        """The weights of a block of labels; `refine` them by residuals in float64 if labels have been misled."""
        weights, converged = self.solve_for(self._problem.right("primal", block, np.float32), alphas)
        if refine and converged:
            return self._refine(np.arange(block.start, block.stop), weights, alphas)
        return weights

    def _correction(self, labels: Array, weights: Array, alphas: Array) -> tuple[Array, float]:
        """The correction of the weights by their float64 residual, and its largest relative length in energy."""
        image = self._problem.image("primal", weights) + alphas[:, None] * weights
        change, _ = self.solve_for((self._right(labels, np.float64) - image).astype(np.float32), alphas)
        changed = self._problem.image("primal", change) + alphas[:, None] * change
        missing, whole = (np.einsum("ij,ij->i", *pair) for pair in ((change, changed), (weights, image)))
        return change, float(np.sqrt(np.divide(missing, whole, out=np.zeros_like(whole), where=whole > 0).max()))

    def _refine(self, labels: Array, weights: Array, alphas: Array) -> Array:
        """Correct the rounding of float32 while that helps."""
        weights = weights.astype(np.float64)
        change, error = self._correction(labels, weights, alphas)
        while error > self._largest_error:
            weights += change
            change, smaller = self._correction(labels, weights, alphas)
            if smaller > error / 2:
                self.error = max(self.error, min(error, smaller))
                break
            error = smaller
        return weights.astype(np.float32)

    def solve_for(self, right: Array, alphas: Array) -> tuple[Array, bool]:
        """Return the weights for right-hand sides Y'X, one label per row in both, and whether all reached `tol`."""
        residual = np.ascontiguousarray(right.T)
        weights = np.zeros_like(right)
        correction, extra = self._preconditioner.correct(residual)
        energy = np.einsum("i,ij,ij->j", self._preconditioner.inverse, residual, residual) + extra
        labels = np.flatnonzero(energy > 0)
        if len(labels) < len(energy):
            residual, correction = (np.ascontiguousarray(part[:, labels]) for part in (residual, correction))
            energy, alphas = energy[labels], alphas[labels]
        goal = self._tol**2 * energy
        gained = np.zeros_like(energy)
        converged = np.zeros(len(labels), dtype=bool)
        solution, direction = np.zeros_like(residual), np.zeros_like(residual)
        projected, image = self._room(residual)
        turn = np.zeros_like(energy)
        iteration = 0
        while iteration < self._max_iter and not converged.all():
            check_stop()
            kernels.cg_turn(turn, self._preconditioner.inverse, residual, correction, direction)
            iteration += 1
            apply_gram_into(self._problem, direction, projected, image)
            curvature, plain = np.empty((2, len(labels)), dtype=np.float32)
            kernels.cg_curvature(alphas, direction, image, curvature)
            step = np.divide(energy, curvature, out=np.zeros_like(energy), where=curvature > 0)
            kernels.cg_descend(step, self._preconditioner.inverse, direction, image, solution, residual, plain)
            correction, extra = self._preconditioner.correct(residual)
            reached = plain + extra
            gained += step * energy
            # A short residual can hide a large error in weak directions; the energy of the last step reveals it.
            settled = step * energy <= (_SETTLED * self._tol) ** 2 * gained
            done = ~converged & ((reached <= goal) & settled | (step == 0))
            weights[labels[done]] = solution[:, done].T
            converged |= done
            turn = np.divide(reached, energy, out=np.zeros_like(energy), where=energy > 0)
            energy = reached
            if np.count_nonzero(converged) >= _LANE:
                going = ~converged
                labels, goal, alphas = labels[going], goal[going], alphas[going]
                energy, turn, gained = energy[going], turn[going], gained[going]
                solution = np.ascontiguousarray(solution[:, going])
                residual = np.ascontiguousarray(residual[:, going])
                direction = np.ascontiguousarray(direction[:, going])
                correction = np.ascontiguousarray(correction[:, going])
                projected, image = self._room(residual)
                converged = converged[going]
        if not converged.all():
            self.stopped = True
            weights[labels[~converged]] = solution[:, ~converged].T
        self.iterations = max(self.iterations, iteration)
        return weights, bool(converged.all())

    def _room(self, residual: Array) -> tuple[Array, Array]:
        rows = np.empty((self._problem.X.shape[0], residual.shape[1]), dtype=np.float32)
        return rows, np.empty_like(residual)
