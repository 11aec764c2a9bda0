"""Change a label tree: labels leave, new ones join the nearest leaf, which is split if it is too large then."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count, islice
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.labels.cluster import cluster_rows
from longtail.labels.hierarchy import LabelHierarchy, prune_tree

TOO_LARGE = 1.5  # times the leaf size, from which the labels of a node that grows are split


class Growth(NamedTuple):
    """A changed tree.

    Parameters
    ----------
    hierarchy : LabelHierarchy
    origins : int64 array of n_nodes
        The node of the old tree that each node was, or -1.
    """

    hierarchy: LabelHierarchy
    origins: Array


def grow_hierarchy(
    hierarchy: LabelHierarchy,
    old_labels: Array,
    present: Array,
    vectors: Callable[[], Any],
    leaf_size: int | None,
    branching: int,
    seed: list[int],
    n_jobs: int | None = None,
) -> Growth:
    """The tree over other labels that changes as little as possible.

    Parameters
    ----------
    hierarchy : LabelHierarchy
        The old tree.
    old_labels : int64 array
        For each label its number in the old tree, or -1 if it is new.
    present : bool array
        Which labels are to be in the tree.
    vectors : callable
        Returns the label vectors, one row for each label; called only if they are needed.
    leaf_size : int or None
        A node that new labels join and that then has more than 1.5 times as many labels of its own gets child nodes
        for them; None splits no node.
    branching : int
        Maximum number of these child nodes.
    seed : list of int
        Random seed of the clustering.
    n_jobs : int or None

    Examples
    --------
    >>> tree = LabelHierarchy(pointers=[0, 2, 4, 6], children=[1, 2, ~0, ~1, ~2, ~3], n_labels=4)
    >>> vectors = np.array([[1, 0], [1, 0], [0, 1], [0, 1], [0.1, 1]], dtype=np.float32)
    >>> found = grow_hierarchy(
    ...     tree, np.array([0, 1, 2, 3, -1]), np.ones(5, bool), lambda: sparse.csr_array(vectors), None, 2, [0]
    ... )
    >>> print(found.hierarchy.format())
    node 0: 5 labels
    ├─ node 1: 2 labels
    │  ├─ 0
    │  └─ 1
    └─ node 2: 3 labels
       ├─ 2
       ├─ 3
       └─ 4
    """
    node_parents, old_parents = hierarchy.parents()
    names = hierarchy.node_names
    parents = np.full(len(old_labels), -1, dtype=np.int64)
    known = np.flatnonzero(present & (old_labels >= 0))
    parents[known] = old_parents[old_labels[known]]
    homeless = np.flatnonzero(present & (parents < 0))
    n_old = hierarchy.n_nodes if len(homeless) < np.count_nonzero(present) else 0
    if n_old and len(homeless):
        parents[homeless] = _nearest_leaf(vectors(), parents, homeless)
    elif len(homeless):  # nothing is left of the old tree
        node_parents, names = np.full(1, -1), None
        parents[homeless] = 0
    if leaf_size is not None and len(homeless):
        grown = np.unique(parents[homeless])
        node_parents = _split(node_parents, parents, grown, vectors, leaf_size, branching, seed, n_jobs)
    if names is not None:
        taken = set(names)
        unused = (name for number in count(1) if (name := f"new node {number}") not in taken)
        names = [*names, *islice(unused, len(node_parents) - n_old)]
    found, origins = prune_tree(node_parents, parents, names)
    return Growth(found, np.where(origins < n_old, origins, -1))


def _nearest_leaf(vectors: Any, parents: Array, labels: Array) -> Array:
    """The node with labels whose centroid is most similar to each label; ties go to the first."""
    settled = np.flatnonzero(parents >= 0)
    leaves, places = np.unique(parents[settled], return_inverse=True)
    shape = (len(leaves), vectors.shape[0])
    sums = sparse.csr_array((np.ones(len(settled), np.float32), (places, settled)), shape=shape) @ vectors
    lengths = np.sqrt(np.asarray(sums.multiply(sums).sum(axis=1)).ravel())
    nearest = np.empty(len(labels), dtype=np.int64)
    for start in range(0, len(labels), 1024):  # the products are dense
        some = labels[start : start + 1024]
        products = (vectors[some] @ sums.T).toarray() / np.maximum(lengths, 1e-12)
        nearest[start : start + 1024] = leaves[np.argmax(products, axis=1)]
    return nearest


def _split(
    node_parents: Array,
    parents: Array,
    grown: Array,
    vectors: Callable[[], Any],
    leaf_size: int,
    branching: int,
    seed: list[int],
    n_jobs: int | None,
) -> Array:
    """Move the labels of those nodes that are too large to new nodes below them; returns the parents of all nodes."""
    order = np.argsort(parents, kind="stable")
    starts, stops = (np.searchsorted(parents[order], grown, side) for side in ("left", "right"))
    added, n_nodes = [node_parents], len(node_parents)
    for place in np.flatnonzero(stops - starts > TOO_LARGE * leaf_size).tolist():
        node, labels = int(grown[place]), order[starts[place] : stops[place]]
        rows = np.arange(len(labels))
        pointers, places = cluster_rows(vectors()[labels], rows, leaf_size, branching, [*seed, node], n_jobs)
        numbers = np.concatenate([[node], np.arange(n_nodes, n_nodes + len(pointers) - 2)])
        owners = np.repeat(numbers, np.diff(pointers))
        inner = places >= 0
        added.append(owners[inner])
        parents[labels[~places[~inner]]] = owners[~inner]
        n_nodes += len(numbers) - 1
    return np.concatenate(added)
