"""The shape of a balanced tree: which places of an order belong to each node, and the bisections that fill them.

The shape depends only on the number of labels, so every task can work it out by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from longtail.arrays import Array
from longtail.labels.assembly import ranges


@dataclass(frozen=True)
class Shape:
    """A tree over places in an order of labels.

    Parameters
    ----------
    pointers, children : int64 arrays
        As in `LabelHierarchy`; a child below 0 is ``~place``.
    steps : list of int64 arrays of shape (n, 3)
        Bisections, one step after another: start, middle and stop of each part of the order that is bisected.
    """

    pointers: Array
    children: Array
    steps: list[Array]


@lru_cache(maxsize=4)
def balanced_shape(count: int, leaf_size: int, branching: int) -> Shape:
    """A tree with as few levels as possible, whose nodes have equal parts, up to one label."""
    begins, ends = np.array([[0], [count]])[:, :count]
    n_levels = _least_power(branching, -(-count // leaf_size))
    widths: list[Array] = []
    children: list[Array] = [np.zeros(0, dtype=np.int64)]
    steps: list[Array] = []
    n_nodes = 1
    for remaining in range(n_levels, -1, -1):
        sizes = ends - begins
        parts = _count_parts(sizes, leaf_size, remaining)
        is_leaf = parts == 1
        widths.append(np.where(is_leaf, sizes, parts))
        in_leaf = np.repeat(is_leaf, widths[-1])
        values = np.empty(len(in_leaf), dtype=np.int64)
        values[in_leaf] = ~ranges(begins[is_leaf], ends[is_leaf])
        n_inner = int(np.count_nonzero(~in_leaf))
        values[~in_leaf] = np.arange(n_nodes, n_nodes + n_inner)
        n_nodes += n_inner
        children.append(values)
        parts = parts[~is_leaf]
        begins, ends = _cut_evenly(begins[~is_leaf], ends[~is_leaf], parts)
        steps += _bisections(begins, ends, parts)
    pointers = np.concatenate([[0], np.cumsum(np.concatenate(widths))]).astype(np.int64)
    return Shape(pointers, np.concatenate(children), steps)


def _bisections(begins: Array, ends: Array, parts: Array) -> list[Array]:
    """The steps that divide each node into its parts; `begins` and `ends` give the place of each part."""
    steps = []
    last = np.cumsum(parts)
    first = last - parts
    while len(first):
        middle = (first + last + 1) // 2
        steps.append(np.stack([begins[first], begins[middle], ends[last - 1]], axis=1))
        first, last = np.concatenate([first, middle]), np.concatenate([middle, last])
        first, last = first[last - first > 1], last[last - first > 1]
    return steps


def _least_power(base: int, least: int) -> int:
    """The smallest exponent with ``base ** exponent >= least``."""
    power = 0
    while base**power < least:
        power += 1
    return power


def _count_parts(sizes: Array, leaf_size: int, levels: int) -> Array:
    """The smallest number of parts for nodes of these sizes that reaches `leaf_size` within `levels` levels."""
    needed, place = np.unique(-(-sizes // leaf_size), return_inverse=True)
    fewest = np.maximum(1, (needed ** (1 / max(1, levels))).astype(np.int64) - 1)
    while (short := fewest.astype(object) ** levels < needed).any():
        fewest[short.astype(bool)] += 1
    return fewest[place]


def _cut_evenly(begins: Array, ends: Array, parts: Array) -> tuple[Array, Array]:
    """Begins and ends of the parts of each range; the sizes of parts of a range differ by at most one."""
    small, larger = np.divmod(ends - begins, parts)
    place = ranges(np.zeros_like(parts), parts)
    first = np.repeat(begins, parts) + place * np.repeat(small, parts) + np.minimum(place, np.repeat(larger, parts))
    return first, first + np.repeat(small, parts) + (place < np.repeat(larger, parts))
