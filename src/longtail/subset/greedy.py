"""Greedy selection: one label after another, each with the largest gain of all, or of a sample.

The gains of all labels are kept exact, since selecting a label changes those of its neighbours only. Gains never grow,
so an earlier gain bounds the present one, and the lazy search skips most labels.
"""

from __future__ import annotations

import heapq
import math

import numpy as np

from longtail import progress
from longtail.arrays import Array
from longtail.subset.pairwise import PairwiseObjective

_MISSED = 0.1  # expected share of the optimum that `stochastic_greedy` may lose by sampling


class _Gains:
    """The present gains of all labels, and the selected labels with their gains."""

    def __init__(self, objective: PairwiseObjective, n_labels: int) -> None:
        self.now = objective.alone.copy()
        self.labels = np.empty(n_labels, dtype=np.int64)
        self.gained = np.empty(n_labels)
        self._shared = objective.shared
        self._count = 0

    def select(self, label: int) -> None:
        self.labels[self._count] = label
        self.gained[self._count] = self.now[label]
        self._count += 1
        row = slice(self._shared.indptr[label], self._shared.indptr[label + 1])
        self.now[self._shared.indices[row]] -= self._shared.data[row]


def gains_of(objective: PairwiseObjective, labels: Array) -> Array:
    """The gain of each label given those before it."""
    gains = _Gains(objective, len(labels))
    for label in labels.tolist():
        gains.select(label)
    return gains.gained


def lazy_greedy(objective: PairwiseObjective, n_labels: int, last: Array) -> tuple[Array, Array]:
    """Select `n_labels` labels, each with the largest gain of all that remain, ties to the lowest label.

    Parameters
    ----------
    objective : PairwiseObjective
    n_labels : int
    last : bool array
        Labels that are selected only when no other remains.

    Returns
    -------
    labels, gains : arrays of n_labels
    """
    gains = _Gains(objective, n_labels)
    order = np.lexsort((-gains.now, last))
    # Upper bounds on gains: labels seen before wait in a heap, all others in the order of their own values.
    fresh = zip(last[order].tolist(), (-gains.now[order]).tolist(), order.tolist(), strict=True)
    waiting: list[tuple[bool, float, int]] = []
    following = next(fresh, None)
    with progress.task("selecting labels", total=n_labels) as advance:
        for _ in range(n_labels):
            while True:
                if following is not None and (not waiting or following < waiting[0]):
                    comes_last, bound, label = following
                    following = next(fresh, None)
                else:
                    comes_last, bound, label = heapq.heappop(waiting)
                gain = float(gains.now[label])
                if gain == -bound:
                    break
                heapq.heappush(waiting, (comes_last, -gain, label))
            gains.select(label)
            advance(1)
    return gains.labels, gains.gained


def stochastic_greedy(
    objective: PairwiseObjective, n_labels: int, last: Array, generator: np.random.Generator
) -> tuple[Array, Array]:
    """Select as `lazy_greedy` does, but each label among a sample of those that remain (Mirzasoleiman et al. 2015).

    A sample has ln(10) times as many labels as there are per selection, so nine samples out of ten contain one of the
    `n_labels` best.
    """
    gains = _Gains(objective, n_labels)
    first, others = np.flatnonzero(~last), np.flatnonzero(last)
    size = math.ceil(len(first) / n_labels * math.log(1 / _MISSED))
    n_left = len(first)
    with progress.task("selecting labels", total=n_labels) as advance:
        for _ in range(min(n_labels, len(first))):
            places = generator.integers(n_left, size=size)
            now = gains.now[first[places]]
            best = places[now == now.max()]
            place = best[np.argmin(first[best])]
            gains.select(int(first[place]))
            n_left -= 1
            first[place] = first[n_left]
            advance(1)
    for label in others[: max(0, n_labels - len(first))].tolist():
        gains.select(label)
    return gains.labels, gains.gained
