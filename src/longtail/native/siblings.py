"""NumPy twin of the training of sibling classifiers: the same steps in the same order, row by row."""

from __future__ import annotations

from math import ceil

import numpy as np

from longtail.arrays import Array
from longtail.parallel import check_stop

_MOST_SIBLINGS = 64
_WORTH_A_LOOK = 4


def block_widths(n_siblings: int) -> list[int]:
    """The number of columns of each block of siblings: as few blocks of at most 64 as possible, of equal size.

    >>> block_widths(100), block_widths(64), block_widths(3)
    ([56, 48], [64], [8])
    """
    if n_siblings == 0:
        return []
    blocks = ceil(n_siblings / _MOST_SIBLINGS)
    each = _whole_lanes(ceil(n_siblings / blocks))
    return [_whole_lanes(min(each, n_siblings - first)) for first in range(0, n_siblings, each)]


def _whole_lanes(n: int) -> int:
    return ceil(n / 8) * 8


class _Shuffler:
    """The xorshift64* generator of the kernel."""

    _BITS = 2**64 - 1

    def __init__(self, seed: int) -> None:
        self._state = (seed * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) & self._BITS or 1

    def shuffle(self, order: list[int]) -> None:
        for i in range(len(order), 1, -1):
            j = self._below(i)
            order[i - 1], order[j] = order[j], order[i - 1]

    def _below(self, bound: int) -> int:
        state = self._state
        state ^= state >> 12
        state ^= (state << 25) & self._BITS
        state ^= state >> 27
        self._state = state
        return int((((state * 0x2545F4914F6CDD1D) & self._BITS) >> 32) * bound) >> 32


class _Problem:
    """A block of siblings over the rows of a node."""

    def __init__(self, rows: list[tuple[Array, Array]], n_features: int, signs: Array, costs: Array, logistic: bool):
        self.rows, self.signs, self.costs, self.logistic = rows, signs, costs, logistic
        self.weights = np.zeros((n_features, signs.shape[1]), dtype=np.float32)
        self.intercepts = np.zeros(signs.shape[1], dtype=np.float32)

    def scores(self, row: int, bias: float) -> Array:
        features, values = self.rows[row]
        scores: Array = values @ self.weights[features] + self.intercepts * np.float32(bias)
        return scores

    def add(self, row: int, change: Array, bias: float) -> None:
        features, values = self.rows[row]
        self.weights[features] += values[:, None] * change
        self.intercepts += change * np.float32(bias)

    def primal(self, margin: Array, cost: Array) -> Array:
        if self.logistic:
            return np.asarray(cost * np.logaddexp(0, -margin))
        return np.asarray(cost * np.maximum(1 - margin, 0) ** 2)

    def dual(self, dual: Array, cost: Array) -> Array:
        if not self.logistic:
            return np.asarray(dual - dual * dual / (4 * cost))
        share = np.clip(dual / cost, 0, 1)
        inside = np.clip(share, 1e-30, 1), np.clip(1 - share, 1e-30, 1)
        return np.asarray(-cost * (share * np.log(inside[0]) + (1 - share) * np.log(inside[1])))

    def step(self, dual: Array, margin: Array, cost: Array, square: float) -> Array:
        if not self.logistic:
            ridge = np.float32(0.5) / cost
            slope = margin - 1 + ridge * dual
            return np.maximum(dual - slope / (ridge + np.float32(square)), 0).astype(np.float32)
        share = np.clip(dual / cost, 1e-12, 0.9999999)
        t = np.clip(np.where(dual > 0, np.log(share / (1 - share)), -margin), -30, 30)
        for _ in range(6):
            p = 1 / (1 + np.exp(-t))
            value = t + (cost * p - dual) * square + margin
            t = np.clip(t - np.clip(value / (cost * p * (1 - p) * square + 1), -4, 4), -30, 30)
        return (cost / (1 + np.exp(-t))).astype(np.float32)


def train_siblings(
    indptr: Array,
    indices: Array,
    data: Array,
    n_features: int,
    rows: Array,
    positive_pointers: Array,
    positive_siblings: Array,
    positive_costs: Array,
    negative_cost: float,
    n_siblings: int,
    bias: float,
    logistic: bool,
    tolerance: float,
    max_sweeps: int,
    seed: int,
    threshold: float,
    top: int,
    duals: Array | None,
) -> tuple[Array, Array, Array, Array, Array, float, int]:
    """Train the linear classifiers of the children of a node.

    Parameters
    ----------
    indptr, indices, data : arrays
        All rows of features (int64, int32, float32).
    n_features : int
    rows : int64 array
        The rows of the node.
    positive_pointers, positive_siblings, positive_costs : arrays
        For each row of the node the siblings it belongs to, and the cost C of each such pair; siblings outside
        0..n_siblings are skipped.
    negative_cost : float
        The cost C of all other pairs of row and sibling.
    n_siblings : int
        At most 256.
    bias : float
        Value of a constant feature that every row has.
    logistic : bool
        Use the logistic loss instead of the squared hinge.
    tolerance : float
        Stop at this relative gap between primal and dual objective.
    max_sweeps : int
    seed : int
        Random seed for the order of the rows.
    threshold, top : float and int
        Keep weights whose magnitude is above `threshold`, and at most `top` of each sibling unless `top` is 0.
    duals : float32 array or None
        Initial dual variables, updated in place: for each block of `block_widths`, rows x width. Rows that are new
        since an earlier training have zeros and come last.

    Returns
    -------
    features, pointers, siblings, weights : arrays
        The weights that were kept, feature by feature.
    intercepts : float32 array
    gap : float
        Relative gap of all siblings together; exact if it ended the training, else as of the last sweep.
    sweeps : int
    """
    parts = [slice(int(indptr[row]), int(indptr[row + 1])) for row in rows]
    present = np.unique(np.concatenate([np.zeros(0, indices.dtype), *(indices[part] for part in parts)]))
    local = [(np.searchsorted(present, indices[part]), data[part]) for part in parts]
    squares = [float((values.astype(np.float64) ** 2).sum() + bias * bias) for _, values in local]
    owners = np.repeat(np.arange(len(parts)), np.diff(positive_pointers))
    kept: list[tuple[Array, Array, Array]] = []
    intercepts: list[Array] = []
    total_gap = total_primal = 0.0
    most_sweeps = first = lanes = 0
    for width in block_widths(n_siblings):
        own = min(width, n_siblings - first)
        signs = np.full((len(parts), width), -1, dtype=np.float32)
        costs = np.full((len(parts), width), 1e-30, dtype=np.float32)
        costs[:, :own] = negative_cost
        slots = positive_siblings - first
        inside = (slots >= 0) & (slots < width)
        signs[owners[inside], slots[inside]] = 1
        costs[owners[inside], slots[inside]] = positive_costs[inside]
        problem = _Problem(local, len(present), signs, costs, logistic)
        if duals is None:
            block_duals = np.zeros((len(parts), width), dtype=np.float32)
        else:
            block_duals = duals[len(parts) * lanes : len(parts) * (lanes + width)].reshape(len(parts), width)
        gap, primal, sweeps = _descend(problem, block_duals, squares, bias, tolerance, max_sweeps, seed, negative_cost)
        total_gap, total_primal, most_sweeps = total_gap + gap, total_primal + primal, max(most_sweeps, sweeps)
        magnitudes = np.abs(problem.weights[:, :own])
        floor = np.full(own, threshold, dtype=np.float32)
        if 0 < top < len(present):
            floor = np.maximum(floor, -np.partition(-magnitudes, top, axis=0)[top])
        found, sibling = np.nonzero(magnitudes > floor)
        kept.append((found, sibling + first, problem.weights[found, sibling]))
        intercepts.append(problem.intercepts[:own] * np.float32(bias))
        first, lanes = first + own, lanes + width
    features, siblings, weights = (
        np.concatenate([part[i] for part in kept]) if kept else np.zeros(0, np.int64) for i in range(3)
    )
    order = np.lexsort((siblings, features))
    distinct, starts = np.unique(features[order], return_index=True)
    return (
        present[distinct].astype(np.int32),
        np.append(starts, len(order)).astype(np.int64),
        siblings[order].astype(np.uint8),
        weights[order].astype(np.float32),
        np.concatenate([np.zeros(0, np.float32), *intercepts]).astype(np.float32),
        total_gap / total_primal if total_primal > 0 else 0.0,
        most_sweeps,
    )


def _descend(
    problem: _Problem,
    duals: Array,
    squares: list[float],
    bias: float,
    tolerance: float,
    max_sweeps: int,
    seed: int,
    negative_cost: float,
) -> tuple[float, float, int]:
    cold = not duals.any()
    if not cold:
        for row in range(len(squares)):
            problem.add(row, duals[row] * problem.signs[row], bias)
    # Rows that were added come last, without duals. With some, the gap is large.
    same_rows = len(duals) > 0 and bool(duals[-1].any())
    order = list(range(len(squares)))
    shuffler = _Shuffler(seed)
    gap = primal = 0.0
    sweeps = 0

    def visit(rows: list[int], changing: bool) -> tuple[float, float]:
        losses, terms = 0.0, 0.0
        for row in rows:
            check_stop()
            sign, cost = problem.signs[row], problem.costs[row]
            margin = sign * problem.scores(row, bias)
            losses += float(problem.primal(margin, cost).sum(dtype=np.float64))
            now = duals[row]
            if changing:
                now = problem.step(duals[row], margin, cost, squares[row])
                if np.abs(now - duals[row]).max() > 1e-6 * negative_cost:
                    problem.add(row, (now - duals[row]) * sign, bias)
                    duals[row] = now
            terms += float(problem.dual(now, cost).sum(dtype=np.float64))
        square = float((problem.weights.astype(np.float64) ** 2).sum() + (problem.intercepts**2).sum())
        value = losses + square / 2
        return value - terms + square / 2, value

    while sweeps < max_sweeps:
        if gap <= _WORTH_A_LOOK * tolerance * primal if sweeps > 0 else same_rows:
            gap, primal = visit(list(range(len(squares))), changing=False)
            if gap <= tolerance * primal:
                break
        shuffler.shuffle(order)
        gap, primal = visit(order, changing=True)
        sweeps += 1
    return gap, primal, sweeps
