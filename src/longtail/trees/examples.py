"""Which rows each block of siblings learns from, worked out where the block is trained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from longtail.arrays import Array
from longtail.labels import LabelHierarchy
from longtail.trees.weights import BLOCK_CHILDREN
from longtail.work import Piece, Results, Stacked

_MASKED_SHARE = 16  # a node with more than this share of the rows marks them instead of sorting them


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


def examples_of(layout: Piece, members: Results, negatives: Sequence[Piece], block: Block, n_rows: int) -> Examples:
    """The examples of a block.

    If a row has several labels below a child, missing the child costs as much as the most expensive of them.
    `negatives` are further rows by node, as `visits_by_node` returns them.
    """
    stacked = Stacked(members)
    start, stop = layout["bounds"][block.node].tolist()
    own = _distinct(stacked.take(np.asarray(layout["order"][start:stop]))[1], n_rows)
    first = int(layout["pointers"][block.node])
    children = np.asarray(layout["children"][first : first + block.first + block.n_children])
    inner = children >= 0
    sizes = np.ones(len(children), dtype=np.int64)
    sizes[inner] = np.diff(layout["bounds"][children[inner]], axis=1)[:, 0]
    skipped = int(sizes[: block.first].sum())
    sizes = sizes[block.first :]
    labels = np.asarray(layout["order"][start + skipped : start + skipped + int(sizes.sum())])
    indptr, rows, _ = stacked.take(labels)
    slots = np.repeat(np.repeat(np.arange(block.n_children), sizes), np.diff(indptr))
    keys, costs = _with_largest_cost(
        rows.astype(np.int64) * block.n_children + slots, np.repeat(layout["label_costs"][labels], np.diff(indptr))
    )
    rows_of_keys, slots = np.divmod(keys, block.n_children)
    pointers = np.searchsorted(rows_of_keys, own).astype(np.int64)
    found = [_of_node(visits, block.node) for visits in negatives]
    extra = np.setdiff1d(np.concatenate([np.zeros(0, np.int64), *found]), own)
    if len(extra):
        own, pointers = np.concatenate([own, extra]), np.append(pointers, np.full(len(extra), len(keys)))
    return Examples(own, np.append(pointers, len(keys)), slots.astype(np.int32), costs)


def _distinct(rows: Array, n_rows: int) -> Array:
    if len(rows) * _MASKED_SHARE < n_rows:
        return np.unique(rows).astype(np.int64)
    is_there = np.zeros(n_rows, dtype=bool)
    is_there[rows] = True
    return np.flatnonzero(is_there)


def _with_largest_cost(keys: Array, costs: Array) -> tuple[Array, Array]:
    """Distinct keys, ascending, and the largest cost of each."""
    if not len(keys) or (costs == costs[0]).all():
        keys = np.unique(keys)
        return keys, np.full(len(keys), costs[0] if len(costs) else 0, dtype=np.float32)
    keys, places = np.unique(keys, return_inverse=True)
    largest = np.zeros(len(keys), dtype=np.float32)
    np.maximum.at(largest, places, costs)
    return keys, largest


def visits_by_node(rows: Array, nodes: Array) -> dict[str, Array]:
    """Pairs of row and node, ordered by node: ``rows[starts[i]:starts[i + 1]]`` visit ``nodes[i]``."""
    order = np.lexsort((rows, nodes))
    distinct, starts = np.unique(nodes[order], return_index=True)
    return {"nodes": distinct, "starts": np.append(starts, len(order)).astype(np.int64), "rows": rows[order]}


def _of_node(visits: Piece, node: int) -> Array:
    place = int(np.searchsorted(visits["nodes"], node))
    if place == len(visits["nodes"]) or visits["nodes"][place] != node:
        return np.zeros(0, np.int64)
    return np.asarray(visits["rows"][visits["starts"][place] : visits["starts"][place + 1]])
