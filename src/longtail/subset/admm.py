"""Linearised ADMM that writes labels as sparse combinations of others, using only products of label columns.

For each label y: minimise |z|_1 + alpha |e|_2 subject to y = A z + e. The residual e and the multiplier of the
constraint are combinations of y and the columns of A, so no array has as many rows as the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail.arrays import Array

# The penalty of a label in units of alpha / |y|. On Bibtex, 0.1 and 0.3 take a third of the iterations of 1.
_PENALTY = 0.2
_CHECK_EVERY = 10


@dataclass(frozen=True)
class Program:
    """A block of labels, one per column, given by their products with the columns of A.

    Parameters
    ----------
    gram : array or sparse array of shape (k, k)
        A'A.
    targets : array of shape (k, n_labels)
        A'y.
    squares : array of shape (n_labels,)
        y'y, above 0.
    allowed : array of bool, shape (k, n_labels)
        The columns of A that a label may use.
    alpha : float
        Weight of the residual.
    curvature : array of shape (k, 1)
        A diagonal D such that D - `gram` has no negative eigenvalue, see `row_sums`.
    """

    gram: Any
    targets: Array
    squares: Array
    allowed: Array
    alpha: float
    curvature: Array

    def take(self, columns: Array) -> Program:
        """The program of some of its labels."""
        targets, allowed = self.targets[:, columns], self.allowed[:, columns]
        return Program(self.gram, targets, self.squares[columns], allowed, self.alpha, self.curvature)

    def products(self, vectors: Combination) -> Array:
        """A'v."""
        return vectors.y * self.targets - vectors.gram_a

    def with_targets(self, vectors: Combination) -> Array:
        """y'v."""
        return vectors.y * self.squares - _dot(vectors.a, self.targets)

    def norms(self, vectors: Combination) -> Array:
        """Lengths of v."""
        squares = vectors.y * self.with_targets(vectors) - _dot(vectors.a, self.products(vectors))
        return np.sqrt(np.maximum(squares, 0))

    def objectives(self, z: Array, norms: Array) -> Array:
        return np.abs(z).sum(axis=0) + self.alpha * norms

    def lower_bounds(self, multiplier: Combination) -> Array:
        """Lower bounds on the optimum from a multiplier, scaled to be feasible in the dual."""
        strongest = np.abs(np.where(self.allowed, self.products(multiplier), 0)).max(axis=0, initial=0)
        excess = np.maximum(np.maximum(self.norms(multiplier) / self.alpha, strongest), 1)
        return self.with_targets(multiplier) / excess


@dataclass(frozen=True)
class Combination:
    """The vectors ``y * Y - A @ a``, one per column, with ``gram @ a`` beside `a`."""

    y: Array
    a: Array
    gram_a: Array

    def plus(self, other: Combination, factor: Array) -> Combination:
        """``self + factor * other``, with one factor per column."""
        y, a, gram_a = self.y + factor * other.y, self.a + factor * other.a, self.gram_a + factor * other.gram_a
        return Combination(y, a, gram_a)

    def times(self, factor: Array) -> Combination:
        return Combination(factor * self.y, factor * self.a, factor * self.gram_a)

    def take(self, columns: Array) -> Combination:
        return Combination(self.y[columns], self.a[:, columns], self.gram_a[:, columns])


@dataclass(frozen=True)
class Iterate:
    """The state of ADMM: coefficients z, residual y - A z, its relaxed copy e, multiplier, and penalty."""

    z: Array
    residual: Combination  # y - A z
    left: Combination  # e
    multiplier: Combination
    penalty: Array

    def take(self, columns: Array) -> Iterate:
        residual, left, multiplier = (part.take(columns) for part in (self.residual, self.left, self.multiplier))
        return Iterate(self.z[:, columns], residual, left, multiplier, self.penalty[columns])


def start(program: Program) -> Iterate:
    """The starting point: z = 0, e = y, and a multiplier of 0."""
    zeros = np.zeros_like(program.targets)
    whole = Combination(np.ones(len(program.squares)), zeros, zeros)
    penalty = _PENALTY * program.alpha / np.sqrt(program.squares)
    return Iterate(zeros, whole, whole, whole.times(np.zeros(len(program.squares))), penalty)


def step(program: Program, at: Iterate, growth: float = 1.0) -> Iterate:
    """One iteration: soft-thresholded gradient step in z, proximal map of alpha |e|, multiplier, penalty."""
    whole = at.residual.plus(at.multiplier, 1 / at.penalty)
    moved = at.z + program.products(whole.plus(at.left, -np.ones_like(at.penalty))) / program.curvature
    shrunk = np.maximum(np.abs(moved) - 1 / (at.penalty * program.curvature), 0)
    z = np.where(program.allowed, np.copysign(shrunk, moved), 0)
    residual = Combination(np.ones_like(at.penalty), z, program.gram @ z)
    whole = residual.plus(at.multiplier, 1 / at.penalty)
    # The part that the proximal map removes is the next multiplier, so its norm is at most alpha.
    norms = np.maximum(program.norms(whole), np.finfo(np.float64).tiny)
    taken = np.minimum(at.penalty, program.alpha / norms)
    left, multiplier = whole.times(1 - taken / at.penalty), whole.times(taken)
    return Iterate(z, residual, left, multiplier, growth * at.penalty)


def solve(program: Program, tolerance: float, max_iterations: int) -> tuple[Array, Array, Array, Array, Array]:
    """Iterate each label until its relative duality gap is at most `tolerance`.

    Returns
    -------
    z, norms, objectives, bounds, iterations
        Per label, the best feasible point with ``e = y - A z`` and the best lower bound of all iterations: ADMM does
        not improve monotonically.
    """
    n_labels = len(program.squares)
    best, norms = np.zeros_like(program.targets), np.sqrt(program.squares)
    objectives, bounds = program.alpha * norms, np.zeros(n_labels)
    iterations = np.zeros(n_labels, dtype=np.int64)
    open_labels, at = np.arange(n_labels), start(program)
    for iteration in range(1, max_iterations + 1):
        at = step(program, at)
        if iteration % _CHECK_EVERY and iteration != max_iterations:
            continue
        iterations[open_labels] = iteration
        reached = program.norms(at.residual)
        values = program.objectives(at.z, reached)
        better = np.flatnonzero(values < objectives[open_labels])
        labels = open_labels[better]
        best[:, labels], norms[labels], objectives[labels] = at.z[:, better], reached[better], values[better]
        bounds[open_labels] = np.maximum(bounds[open_labels], program.lower_bounds(at.multiplier))
        wide = np.flatnonzero((objectives - bounds > tolerance * objectives)[open_labels])
        if len(wide) == 0:
            break
        if len(wide) < len(open_labels):
            open_labels, program, at = open_labels[wide], program.take(wide), at.take(wide)
    return best, norms, objectives, bounds, iterations


def row_sums(gram: Any) -> Array:
    """A diagonal D, as a column, such that D minus the non-negative `gram` has no negative eigenvalue.

    With one step length for all, that of the most frequent label, rare labels hardly move: on Delicious the gap is 4 %
    after 1,000 iterations, and 0.01 % after 160 with this diagonal.
    """
    sums = np.asarray(gram.sum(axis=1), dtype=np.float64).reshape(-1, 1)
    # For an empty column of A any step will do.
    return np.where(sums > 0, sums, 1.0)


def _dot(left: Array, right: Array) -> Array:
    return np.einsum("ij,ij->j", left, right)
