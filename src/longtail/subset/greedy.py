"""Greedy search for the labels with the largest gains, one after another, lazily or among a sample.

Gains are exact at all times: a choice changes only those of its neighbours. They never grow, so what a label gained
earlier bounds what it gains now, and most labels are never looked at again.
"""

from __future__ import annotations

import heapq
import math

import numpy as np

from longtail import progress
from longtail.arrays import Array
from longtail.subset.pairwise import PairwiseObjective

_MISSED = 0.1  # the share of the optimum, on average, that the sample of `stochastic_greedy` may cost


class _Gains:
    """The gains of all labels, and what was chosen."""

    def __init__(self, objective: PairwiseObjective, n_labels: int) -> None:
        self.now = objective.alone.copy()
        self.labels = np.empty(n_labels, dtype=np.int64)
        self.gained = np.empty(n_labels)
        self._shared = objective.shared
        self._count = 0

    def choose(self, label: int) -> None:
        self.labels[self._count] = label
        self.gained[self._count] = self.now[label]
        self._count += 1
        row = slice(self._shared.indptr[label], self._shared.indptr[label + 1])
        self.now[self._shared.indices[row]] -= self._shared.data[row]


def gains_of(objective: PairwiseObjective, labels: Array) -> Array:
    """What each label adds to those before it."""
    gains = _Gains(objective, len(labels))
    for label in labels.tolist():
        gains.choose(label)
    return gains.gained


def lazy_greedy(objective: PairwiseObjective, n_labels: int, last: Array) -> tuple[Array, Array]:
    """Choose `n_labels` labels, each with the largest gain of all that are left, ties to the lowest label.

    Parameters
    ----------
    objective : PairwiseObjective
    n_labels : int
    last : bool array
        Labels that are chosen only when no other is left.

    Returns
    -------
    labels, gains : arrays of n_labels
    """
    gains = _Gains(objective, n_labels)
    order = np.lexsort((-gains.now, last))
    # Bounds on gains, best first: of labels looked at before in a heap, of all others by what they are worth alone.
    fresh = zip(last[order].tolist(), (-gains.now[order]).tolist(), order.tolist(), strict=True)
    waiting: list[tuple[bool, float, int]] = []
    following = next(fresh, None)
    with progress.task("choosing labels", total=n_labels) as advance:
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
            gains.choose(label)
            advance(1)
    return gains.labels, gains.gained


def stochastic_greedy(
    objective: PairwiseObjective, n_labels: int, last: Array, generator: np.random.Generator
) -> tuple[Array, Array]:
    """Choose as `lazy_greedy` does, each time among a sample of the labels that are left (Mirzasoleiman et al. 2015).

    A sample has ln(10) times as many labels as there are for each choice, so that it holds one of the n_labels best
    nine times out of ten.
    """
    gains = _Gains(objective, n_labels)
    first, others = np.flatnonzero(~last), np.flatnonzero(last)
    size = math.ceil(len(first) / n_labels * math.log(1 / _MISSED))
    n_left = len(first)
    with progress.task("choosing labels", total=n_labels) as advance:
        for _ in range(min(n_labels, len(first))):
            places = generator.integers(n_left, size=size)
            now = gains.now[first[places]]
            best = places[now == now.max()]
            place = best[np.argmin(first[best])]
            gains.choose(int(first[place]))
            n_left -= 1
            first[place] = first[n_left]
            advance(1)
    for label in others[: max(0, n_labels - len(first))].tolist():
        gains.choose(label)
    return gains.labels, gains.gained
