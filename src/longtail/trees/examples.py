"""Which rows each block of siblings learns from, worked out where the block is trained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from longtail.arrays import Array
from longtail.labels import LabelHierarchy
from longtail.trees.weights import BLOCK_CHILDREN
from longtail.work import Piece, Results, Rows, Stacked

_MASKED_SHARE = 16  # more values than this share of all that are possible are marked instead of sorted


class Block(NamedTuple):
    """Up to 256 siblings: `n_children` children of `node`, starting with `first`."""

    node: int
    first: int
    n_children: int


class Examples(NamedTuple):
    """The rows of a block of siblings.

    Parameters
    ----------
    rows : int64 array
        All rows with a label below the node, ascending, then additional negatives.
    pointers : int64 array
        Row i belongs to the siblings ``slots[pointers[i]:pointers[i + 1]]``.
    slots : int32 array
    costs : float32 array
        The cost of missing each.
    """

    rows: Array
    pointers: Array
    slots: Array
    costs: Array


def layout_of(hierarchy: LabelHierarchy, label_costs: Array) -> dict[str, Array]:
    """The arrays of a tree that finding examples needs."""
    order, bounds = hierarchy.label_order()
    blocks = -(-np.diff(hierarchy.pointers) // BLOCK_CHILDREN)
    return {
        "pointers": hierarchy.pointers,
        "children": hierarchy.children,
        "order": order,
        "bounds": bounds,
        "first_block": np.concatenate([[0], np.cumsum(blocks)]).astype(np.int64),
        "label_costs": label_costs,
    }


def block_of(layout: Piece, number: int) -> Block:
    """The block with a number, in the order of storage."""
    node = int(np.searchsorted(layout["first_block"], number, side="right")) - 1
    first = (number - int(layout["first_block"][node])) * BLOCK_CHILDREN
    children = int(layout["pointers"][node + 1] - layout["pointers"][node])
    return Block(node, first, min(BLOCK_CHILDREN, children - first))


def examples_of(
    layout: Piece,
    members: Results,
    negatives: Sequence[Piece],
    block: Block,
    n_rows: int,
    relevance: Rows | None = None,
) -> Examples:
    """The examples of a block.

    If a row has several labels below a child, missing the child costs as much as the most expensive of them.
    `negatives` are further rows by node, as `visits_by_node` returns them. `relevance` is the label matrix if it has
    values below 1, which lower the cost of missing a label.
    """
    start, stop = layout["bounds"][block.node].tolist()
    labels = np.asarray(layout["order"][start:stop])
    indptr, rows, _ = Stacked(members).take(labels)
    own, places = _numbered(rows, n_rows)
    first, last = layout["pointers"][block.node : block.node + 2].tolist()
    children = np.asarray(layout["children"][first:last])
    inner = children >= 0
    sizes = np.ones(len(children), dtype=np.int64)
    sizes[inner] = np.diff(layout["bounds"][children[inner]], axis=1)[:, 0]
    slots = np.repeat(np.repeat(np.arange(len(children)) - block.first, sizes), np.diff(indptr))
    costs = np.repeat(layout["label_costs"][labels], np.diff(indptr))
    if relevance is not None:
        costs = costs * values_at(relevance, rows, np.repeat(labels, np.diff(indptr)))
    if block.n_children < len(children):
        chosen = (slots >= 0) & (slots < block.n_children)
        places, slots, costs = places[chosen], slots[chosen], costs[chosen]
    keys, costs = _with_largest_cost(places * block.n_children + slots, costs, len(own) * block.n_children)
    places, slots = np.divmod(keys, block.n_children)
    pointers = np.concatenate([[0], np.cumsum(np.bincount(places, minlength=len(own)))])
    found = [rows_visiting(visits, block.node) for visits in negatives]
    extra = np.setdiff1d(np.concatenate([np.zeros(0, np.int64), *found]), own)
    if len(extra):
        own, pointers = np.concatenate([own, extra]), np.append(pointers, np.full(len(extra), len(keys)))
    return Examples(own, pointers.astype(np.int64, copy=False), slots.astype(np.int32), costs)


def _numbered(values: Array, limit: int) -> tuple[Array, Array]:
    """The distinct values, ascending, and the place of each value among them; all are below the limit."""
    if len(values) * _MASKED_SHARE < limit:
        distinct, places = np.unique(values, return_inverse=True)
        return distinct.astype(np.int64), places
    is_there = np.zeros(limit, dtype=bool)
    is_there[values] = True
    return np.flatnonzero(is_there), (np.cumsum(is_there) - 1)[values]


def _with_largest_cost(keys: Array, costs: Array, limit: int) -> tuple[Array, Array]:
    """Distinct keys, ascending, and the largest cost of each; all keys are below the limit."""
    if len(keys) and (costs != costs[0]).any():
        keys, places = np.unique(keys, return_inverse=True)
        largest = np.zeros(len(keys), dtype=np.float32)
        np.maximum.at(largest, places, costs)
        return keys, largest
    cost = costs[0] if len(costs) else 0
    if len(keys) * _MASKED_SHARE < limit:
        keys = np.unique(keys)
    else:
        is_there = np.zeros(limit, dtype=bool)
        is_there[keys] = True
        keys = np.flatnonzero(is_there)
    return keys, np.full(len(keys), cost, dtype=np.float32)


def visits_by_node(rows: Array, nodes: Array) -> dict[str, Array]:
    """Pairs of row and node, ordered by node: ``rows[starts[i]:starts[i + 1]]`` visit ``nodes[i]``."""
    order = np.lexsort((rows, nodes))
    distinct, starts = np.unique(nodes[order], return_index=True)
    return {"nodes": distinct, "starts": np.append(starts, len(order)).astype(np.int64), "rows": rows[order]}


def rows_visiting(visits: Piece, node: int) -> Array:
    """The rows that visit a node."""
    place = int(np.searchsorted(visits["nodes"], node))
    if place == len(visits["nodes"]) or visits["nodes"][place] != node:
        return np.zeros(0, np.int64)
    return np.asarray(visits["rows"][visits["starts"][place] : visits["starts"][place + 1]])


def values_at(matrix: Rows, rows: Array, columns: Array) -> Array:
    """The stored values of some cells, by a binary search in each row.

    >>> matrix = Rows(np.array([0, 2, 3]), np.array([1, 4, 0]), np.array([0.5, 1, 0.2]), 5)
    >>> values_at(matrix, np.array([1, 0, 0]), np.array([0, 4, 1])).tolist()
    [0.2, 1.0, 0.5]
    """
    low, high = matrix.indptr[rows], matrix.indptr[np.asarray(rows, dtype=np.int64) + 1] - 1
    while (low < high).any():
        middle = (low + high) // 2
        before = matrix.indices[middle] < columns
        low, high = np.where(before, middle + 1, low), np.where(before, high, middle)
    return np.asarray(matrix.data[low])
