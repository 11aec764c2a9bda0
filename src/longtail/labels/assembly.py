"""Trees given by parents, converted to the breadth-first form of `LabelHierarchy`.

Parents are easy to edit (drop, move, insert); the breadth-first form is easy to traverse.
"""

from __future__ import annotations

import numpy as np

from longtail.arrays import Array


def breadth_first(parents: Array) -> tuple[Array, Array]:
    """Items in breadth-first order from those without a parent (-1), siblings in ascending order.

    Returns
    -------
    order : the items reached; items on or below a cycle are not reached
    levels : where each level starts in `order`, and at the end the length of `order`

    Examples
    --------
    >>> order, levels = breadth_first(np.array([2, 2, -1, 0]))
    >>> order.tolist(), levels.tolist()
    ([2, 0, 1, 3], [0, 1, 3, 4])
    """
    n = len(parents)
    by_parent = np.argsort(parents, kind="stable")
    starts = np.searchsorted(parents[by_parent], np.arange(-1, n + 1))
    level = by_parent[: starts[1]]
    found = [level]
    while len(level):
        level = by_parent[ranges(starts[level + 1], starts[level + 2])]
        found.append(level)
    sizes = [len(part) for part in found[:-1]]
    return np.concatenate(found).astype(np.int64), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def ranges(starts: Array, stops: Array) -> Array:
    """The concatenation of integer ranges.

    >>> ranges(np.array([5, 0]), np.array([7, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    sizes = stops - starts
    ends = np.cumsum(sizes)
    return np.repeat(starts - ends + sizes, sizes) + np.arange(ends[-1] if len(ends) else 0)


def count_below(parents: Array, own: Array, order: Array, levels: Array) -> Array:
    """The sum of `own` over each item and all items below it."""
    counts = own.astype(np.int64)
    for start, stop in zip(levels[-2:0:-1], levels[:1:-1], strict=True):
        level = order[start:stop]
        np.add.at(counts, parents[level], counts[level])
    return counts


def assemble(node_parents: Array, label_parents: Array) -> tuple[Array, Array, Array]:
    """The breadth-first form of a tree given by parents.

    Parameters
    ----------
    node_parents : the parent of each node, -1 for the single root; without cycles
    label_parents : the node of each label, -1 for labels that are not in the tree

    Returns
    -------
    pointers, children : as in `LabelHierarchy`; the children of a node are first nodes, then labels, both ascending
    order : the old number of each node
    """
    order, _ = breadth_first(node_parents)
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.arange(len(order))
    labels = np.flatnonzero(label_parents >= 0)
    owners = np.concatenate([number[node_parents[order[1:]]], number[label_parents[labels]]])
    values = np.concatenate([np.arange(1, len(order)), ~labels])
    children = values[np.argsort(owners, kind="stable")].astype(np.int64)
    pointers = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=len(order)))]).astype(np.int64)
    return pointers, children, order
