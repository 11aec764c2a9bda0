"""Exact leave-one-out predictions of ridge over a path of alphas, without refits.

The prediction for a row by the model trained without it is (yhat - h y) / (1 - h), with h the row's leverage. Both
come from one eigendecomposition for all alphas, or from one Cholesky factor per alpha where alphas and rows are few.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from longtail import progress
from longtail.linear.solvers import Problem, Spectral, dual_gram, factor, primal_gram, solve_factored
from longtail.parallel import split

Array = np.ndarray[Any, np.dtype[Any]]


class Path(Protocol):
    """Fitted values along the path: ``left(which) @ right(block).T`` for the rows asked for."""

    leverage: Array  # rows x alphas, without the intercept's share

    def left(self, which: int) -> Array: ...

    def right(self, block: slice) -> Array: ...


class SpectralPath:
    """The path from one eigendecomposition."""

    def __init__(self, spectral: Spectral, rows: Array, alphas: Array) -> None:
        self._spectral = spectral
        problem = spectral.problem
        if spectral.side == "primal":
            self._left = _centred_rows(problem, rows) @ spectral.vectors
            squares = self._left**2
        else:
            vectors = spectral.vectors[rows]
            self._left = vectors * spectral.values
            squares = vectors * self._left
        self._shrink = spectral.shrink(alphas)
        self.leverage = (squares @ self._shrink.T).astype(np.float32)

    def left(self, which: int) -> Array:
        return self._left * self._shrink[which]

    def right(self, block: slice) -> Array:
        return self._spectral.coordinates(block)


class FactoredPath:
    """The path from one Cholesky factor per alpha; `failed` where the Gram matrix is too ill-conditioned for it."""

    def __init__(self, problem: Problem, side: str, rows: Array, alphas: Array, n_jobs: int | None) -> None:
        self._problem = problem
        self._side = side
        self.gram = primal_gram(problem, n_jobs) if side == "primal" else dual_gram(problem, n_jobs)
        # Fitted values are right-hand sides projected: x(G + alpha)^-1 X'y, or k(K + alpha)^-1 y with k a row of K.
        known = _centred_rows(problem, rows) if side == "primal" else _symmetric_rows(self.gram, rows)
        self._lefts: list[Array] = []
        self.leverage = np.empty((len(rows), len(alphas)), dtype=np.float32)
        self.failed = False
        largest = problem.largest(side)
        with progress.task("factoring", total=len(alphas)) as advance:
            self._factor_each(known, rows, alphas, largest, advance)

    def _factor_each(self, known: Array, rows: Array, alphas: Array, largest: float, advance: progress.Advance) -> None:
        for which, alpha in enumerate(alphas):
            factored = factor(self.gram.copy(), float(alpha), largest)
            if factored is None:
                self.failed = True
                return
            left = solve_factored(factored, known.copy())
            own = np.einsum("ij,ij->i", left, known) if self._side == "primal" else left[np.arange(len(rows)), rows]
            self.leverage[:, which] = own
            self._lefts.append(left)
            advance(1)

    def left(self, which: int) -> Array:
        return self._lefts[which]

    def right(self, block: slice) -> Array:
        return self._problem.cross(block) if self._side == "primal" else self._problem.targets(block)


def _centred_rows(problem: Problem, rows: Array) -> Array:
    dense: Array = problem.X[rows].toarray()
    if problem.mean is not None:
        dense -= problem.mean
    return dense


def _symmetric_rows(upper: Array, rows: Array) -> Array:
    """Rows of a symmetric matrix of which only the upper triangle is filled."""
    columns = np.arange(len(upper))
    below = columns[None, :] < rows[:, None]
    return np.where(below, upper[:, rows].T, upper[rows])


def leave_one_out(
    path: Path, problem: Problem, rows: Array, n_alphas: int, size: int
) -> Iterator[tuple[slice, int, Array]]:
    """Yield (block of labels, number of the alpha, scores) of `rows`, each by the model trained without it."""
    leverage = path.leverage
    if problem.mean is not None:
        leverage = leverage + np.float32(1 / problem.X.shape[0])
    remaining = np.maximum(1 - leverage, np.finfo(np.float32).eps)
    place = np.full(problem.X.shape[0], -1)
    place[rows] = np.arange(len(rows))
    for block in split(problem.Yt.shape[0], size):
        right = path.right(block)
        starts = problem.Yt.indptr[block.start : block.stop + 1]
        positive_rows = place[problem.Yt.indices[starts[0] : starts[-1]]]
        positive_labels = np.repeat(np.arange(block.stop - block.start), np.diff(starts))[positive_rows >= 0]
        positive_rows = positive_rows[positive_rows >= 0]
        for which in range(n_alphas):
            scores = (path.left(which) @ right.T).astype(np.float32, copy=False)
            if problem.label_mean is not None:
                scores += problem.label_mean[block]
            scores[positive_rows, positive_labels] -= leverage[positive_rows, which]
            scores /= remaining[:, which, None]
            yield block, which, scores
