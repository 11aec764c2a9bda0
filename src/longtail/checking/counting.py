"""Counts of numbers as distributions, and rows that are equal by their digests; small per row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from longtail.arrays import Array
from longtail.checking.finding import Bin, Distribution, Spread

# Single values as far as they matter, then ranges that double.
_ENDS = (0, 1, 2, 4, 9, 19, 49, 99)


def distribution(counts: Mapping[int, int]) -> Distribution:
    """The distribution of numbers, from how often each occurs.

    >>> found = distribution({1: 2, 3: 1})
    >>> found.spread.median, [(each.name, each.count) for each in found.bins]
    (1.0, [('1', 2), ('2', 0), ('3-4', 1)])
    """
    values = np.array(sorted(value for value, times in counts.items() if times), dtype=np.int64)
    if not len(values):
        return Distribution(None)
    times = np.array([counts[value] for value in values.tolist()], dtype=np.int64)
    before = np.cumsum(times)
    total = int(before[-1])
    middle = [values[np.searchsorted(before, place, side="right")] for place in ((total - 1) // 2, total // 2)]
    spread = Spread(int(values[0]), float(sum(middle)) / 2, float((values * times).sum() / total), int(values[-1]))
    return Distribution(spread, tuple(_bins(values, times)))


def _bins(values: Array, times: Array) -> Iterable[Bin]:
    largest = int(values[-1])
    ends = [*_ENDS]
    while ends[-1] < largest:
        ends.append(10 * (ends[-1] + 1) - 1)
    started = False
    for low, high in zip([-1, *ends], ends, strict=False):
        inside = (values > low) & (values <= high)
        started = started or bool(inside.any())
        if started and low < largest:
            yield Bin(low + 1, high, int(times[inside].sum()))


def distribution_of(numbers: Array) -> Distribution:
    """The distribution of an array of whole numbers that are not negative."""
    values, times = np.unique(numbers, return_counts=True)
    return distribution(dict(zip(values.tolist(), times.tolist(), strict=True)))


class Groups(NamedTuple):
    """Things with equal digests: those of group i are ``members[starts[i]:stops[i]]``; each group has at least two."""

    members: Array
    starts: Array
    stops: Array

    def sizes(self) -> Array:
        return self.stops - self.starts

    def chosen(self, keep: Any) -> Groups:
        """The groups of a mask or of numbers."""
        return Groups(self.members, self.starts[keep], self.stops[keep])

    def largest(self, most: int) -> list[Array]:
        """The members of the largest groups, those that begin first among groups of one size."""
        if not len(self.starts):
            return []
        order = np.lexsort((self.members[self.starts], -self.sizes()))[:most]
        return [self.members[self.starts[group] : self.stops[group]] for group in order.tolist()]


def equal_groups(digests: Array) -> Groups:
    """The groups of things with the same digest.

    >>> groups = equal_groups(np.array([7, 5, 7, 6, 5, 7]))
    >>> [members.tolist() for members in groups.largest(5)]
    [[0, 2, 5], [1, 4]]
    """
    order = np.argsort(digests, kind="stable")
    in_order = digests[order]
    starts = np.flatnonzero(np.concatenate([[True], in_order[1:] != in_order[:-1]])) if len(order) else order
    stops = np.append(starts[1:], len(order))
    several = stops - starts > 1
    return Groups(order, starts[several], stops[several])


def differing(groups: Groups, values: Array) -> Array:
    """Whether the members of a group have different values, for each group."""
    ordered = values[groups.members]
    # The number of changes of value up to each place; members of one group stand side by side.
    changes = np.concatenate([[0], np.cumsum(ordered[1:] != ordered[:-1])]) if len(ordered) else ordered
    result: Array = changes[groups.stops - 1] != changes[groups.starts]
    return result
