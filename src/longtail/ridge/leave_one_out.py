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
from longtail.parallel import blas_threads, map_blocks, split
from longtail.ridge.problem import Problem
from longtail.ridge.solvers import Factor, Spectral

_ROWS = 512  # solved for at once


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
        self._problem, self._side = problem, side
        self.gram = problem.gram(side, np.float32, n_jobs)
        self._lefts: list[Array] = []
        self.leverage = np.empty((len(rows), len(alphas)), dtype=np.float32)
        self.failed = False
        with progress.task("factoring", total=len(alphas)) as advance:
            for which, alpha in enumerate(alphas):
                found = left_of(problem, side, rows, self.gram.copy(), float(alpha), n_jobs)
                if found is None:
                    self.failed = True
                    return
                self._lefts.append(found[0])
                self.leverage[:, which] = found[1]
                advance(1)

    def left(self, which: int) -> Array:
        return self._lefts[which]

    def right(self, block: slice) -> Array:
        return self._problem.right(self._side, block, np.float32)


def left_of(
    problem: Problem, side: str, rows: Array, gram: Array, alpha: float, n_jobs: int | None
) -> tuple[Array, Array] | None:
    """The left factor of the fitted values at one alpha, and the leverages; None if `gram` is not precise enough.

    `gram` is overwritten.
    """
    # Fitted values are right-hand sides projected: x(G + alpha)^-1 X'y, or k(K + alpha)^-1 y with k a row of K.
    known = _centred_rows(problem, rows, np.float32) if side == "primal" else _symmetric_rows(gram, rows)
    factor = Factor.of(gram, alpha, n_jobs)
    if factor.failed:
        return None
    blocks = split(len(rows), _ROWS)
    solved = map_blocks(lambda block: factor.solve(known[block].copy()), blocks, n_jobs)
    with blas_threads(1):
        left = np.concatenate([known[:0], *solved])
        hardest, leans = factor.hardest(known, left)
        if leans:
            right = _exact_row(problem, side, rows[[hardest]])
            if not factor.is_precise(problem, side, right, left[[hardest]]):
                return None
    return left, np.einsum("ij,ij->i", left, known) if side == "primal" else left[np.arange(len(left)), rows]


def _exact_row(problem: Problem, side: str, row: Array) -> Array:
    """The right-hand side of one row in float64."""
    if side == "primal":
        return _centred_rows(problem, row, np.float64)
    return problem.image("dual", np.eye(1, problem.n_rows, int(row[0])))


def remaining(path: Path, problem: Problem, rows: Array | None = None) -> tuple[Array, Array]:
    """The leverage h of each of the rows (None: all) and alpha, including the intercept, and 1 - h."""
    leverage = path.leverage
    if problem.mean is not None and problem.roots is None:
        leverage = leverage + np.float32(1 / problem.n_rows)
    elif problem.mean is not None and problem.roots is not None:
        roots = problem.roots if rows is None else problem.roots[rows]
        leverage = leverage + (roots**2 / problem.total).astype(np.float32)[:, None]
    return leverage, np.maximum(1 - leverage, np.finfo(np.float32).eps)


def _centred_rows(problem: Problem, rows: Array, dtype: Any) -> Array:
    dense: Array = problem.X[rows].toarray().astype(dtype, copy=False)
    if problem.mean is not None:
        dense -= problem.mean.astype(dtype) * _ones_of(problem, rows).astype(dtype)
    return dense


def _ones_of(problem: Problem, rows: Array) -> Array:
    """The 1 of "X - 1m'" for some rows, as a column."""
    return np.ones((1, 1)) if problem.roots is None else problem.roots[rows, None]


def _symmetric_rows(upper: Array, rows: Array) -> Array:
    """Rows of a symmetric matrix with only the upper triangle filled."""
    columns = np.arange(len(upper))
    below = columns[None, :] < rows[:, None]
    return np.where(below, upper[:, rows].T, upper[rows])


def leave_one_out(
    path: Path, problem: Problem, rows: Array, n_alphas: int, block: slice
) -> Iterator[tuple[int, Array]]:
    """Yield (index of the alpha, scores) of `rows` for a block of labels, each scored by the model without its row.

    A row of weight 2 is left out as a whole.
    """
    leverage, left = remaining(path, problem, rows)
    ones = _ones_of(problem, rows).astype(np.float32)
    place = np.full(problem.n_rows, -1)
    place[rows] = np.arange(len(rows))
    right = path.right(block)
    starts = problem.Yt.indptr[block.start : block.stop + 1]
    positive_rows = place[problem.Yt.indices[starts[0] : starts[-1]]]
    positive_labels = np.repeat(np.arange(block.stop - block.start), np.diff(starts))[positive_rows >= 0]
    values = problem.Yt.data[starts[0] : starts[-1]][positive_rows >= 0]
    positive_rows = positive_rows[positive_rows >= 0]
    for which in range(n_alphas):
        scores = (path.left(which) @ right.T).astype(np.float32, copy=False)
        if problem.label_mean is not None:
            scores += (problem.label_mean[block] * ones).astype(np.float32, copy=False)
        scores[positive_rows, positive_labels] -= leverage[positive_rows, which] * values
        scores /= left[:, which, None]
        if problem.roots is not None:
            scores /= ones
        yield which, scores
