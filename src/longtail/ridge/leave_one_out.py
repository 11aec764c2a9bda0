"""Exact leave-one-out predictions of ridge over a path of alphas, without refits.

The model trained without a row predicts (yhat - h y) / (1 - h) for it, with h the row's leverage. Both come from one
eigendecomposition for all alphas, or from one Cholesky factor per alpha if alphas and rows are few.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from longtail import progress
from longtail.arrays import Array
from longtail.parallel import split
from longtail.ridge.problem import Problem
from longtail.ridge.solvers import Factor, Spectral


class Path(Protocol):
    """Fitted values along the path: ``left(which) @ right(block).T`` for the chosen rows."""

    leverage: Array  # rows x alphas, without the share of the intercept

    def left(self, which: int) -> Array: ...

    def right(self, block: slice) -> Array: ...


class SpectralPath:
    """The path from one eigendecomposition."""

    def __init__(self, spectral: Spectral, rows: Array, alphas: Array) -> None:
        self._spectral = spectral
        problem = spectral.problem
        if spectral.side == "primal":
            self._left = _centred_rows(problem, rows, np.float64) @ spectral.vectors
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
    """The path from one Cholesky factor per alpha; `failed` if single precision is not enough."""

    def __init__(self, problem: Problem, side: str, rows: Array, alphas: Array, n_jobs: int | None) -> None:
        self._problem = problem
        self._side = side
        self._rows = rows
        self._n_jobs = n_jobs
        self.gram = problem.gram(side, np.float32, n_jobs)
        # Fitted values are right-hand sides projected: x(G + alpha)^-1 X'y, or k(K + alpha)^-1 y with k a row of K.
        known = _centred_rows(problem, rows, np.float32) if side == "primal" else _symmetric_rows(self.gram, rows)
        self._lefts: list[Array] = []
        self.leverage = np.empty((len(rows), len(alphas)), dtype=np.float32)
        with progress.task("factoring", total=len(alphas)) as advance:
            self.failed = not all(self._add(known, which, alpha, advance) for which, alpha in enumerate(alphas))

    def _add(self, known: Array, which: int, alpha: float, advance: progress.Advance) -> bool:
        """Go one step along the path; False if that is not precise enough."""
        factor = Factor.of(self.gram.copy(), float(alpha), self._n_jobs)
        if factor.failed:
            return False
        left = factor.solve(known.copy())
        hardest, leans = factor.hardest(known, left)
        if leans:
            right = self._exact_row(self._rows[[hardest]])
            if not factor.is_precise(self._problem, self._side, right, left[[hardest]]):
                return False
        primal = self._side == "primal"
        own = np.einsum("ij,ij->i", left, known) if primal else left[np.arange(len(left)), self._rows]
        self.leverage[:, which] = own
        self._lefts.append(left)
        advance(1)
        return True

    def _exact_row(self, row: Array) -> Array:
        """The right-hand side of one row in float64."""
        if self._side == "primal":
            return _centred_rows(self._problem, row, np.float64)
        return self._problem.image("dual", np.eye(1, self._problem.n_rows, int(row[0])))

    def left(self, which: int) -> Array:
        return self._lefts[which]

    def right(self, block: slice) -> Array:
        return self._problem.right(self._side, block, np.float32)


def remaining(path: Path, problem: Problem) -> tuple[Array, Array]:
    """The leverage h of each row and alpha, including the intercept, and 1 - h."""
    leverage = path.leverage
    if problem.mean is not None:
        leverage = leverage + np.float32(1 / problem.n_rows)
    return leverage, np.maximum(1 - leverage, np.finfo(np.float32).eps)


def _centred_rows(problem: Problem, rows: Array, dtype: Any) -> Array:
    dense: Array = problem.X[rows].toarray().astype(dtype, copy=False)
    if problem.mean is not None:
        dense -= problem.mean.astype(dtype)
    return dense


def _symmetric_rows(upper: Array, rows: Array) -> Array:
    """Rows of a symmetric matrix with only the upper triangle filled."""
    columns = np.arange(len(upper))
    below = columns[None, :] < rows[:, None]
    return np.where(below, upper[:, rows].T, upper[rows])


def leave_one_out(
    path: Path, problem: Problem, rows: Array, n_alphas: int, size: int
) -> Iterator[tuple[slice, int, Array]]:
    """Yield (block of labels, index of the alpha, scores) of `rows`, each scored by the model trained without it."""
    leverage, left = remaining(path, problem)
    place = np.full(problem.n_rows, -1)
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
            scores /= left[:, which, None]
            yield block, which, scores
