"""Change a label tree: labels leave, new ones join the nearest leaf, and leaves that are too large are split."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.labels.cluster import cluster_rows
from longtail.labels.hierarchy import LabelHierarchy, prune_tree

TOO_LARGE = 1.5  # times the leaf size, from which a leaf is split


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
        A leaf with more than 1.5 times as many labels is split; None splits none.
    branching : int
        Maximum number of parts of a leaf that is split.
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
    parents = np.full(len(old_labels), -1, dtype=np.int64)
    known = present & (old_labels >= 0)
    parents[known] = old_parents[old_labels[known]]
    homeless = np.flatnonzero(present & (parents < 0))
    if not hierarchy.n_nodes:
        node_parents, parents[homeless] = np.full(min(1, len(homeless)), -1), 0
    elif len(homeless):
        parents[homeless] = _nearest_leaf(vectors(), parents, homeless, hierarchy.n_nodes)
    added = 0
    if leaf_size is not None:
        extended = _split(node_parents, parents, vectors, leaf_size, branching, seed, n_jobs)
        added, node_parents = len(extended) - len(node_parents), extended
    names = hierarchy.node_names
    if names is not None:
        names = [*names, *(f"new node {number + 1}" for number in range(added))]
    found, origins = prune_tree(node_parents, parents, names)
    return Growth(found, np.where(origins < hierarchy.n_nodes, origins, -1))


def _nearest_leaf(vectors: Any, parents: Array, labels: Array, n_nodes: int) -> Array:
    """The node with labels whose centroid is most similar to each label; ties go to the first."""
    settled = np.flatnonzero(parents >= 0)
    if not len(settled):
        return np.zeros(len(labels), dtype=np.int64)
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
    vectors: Callable[[], Any],
    leaf_size: int,
    branching: int,
    seed: list[int],
    n_jobs: int | None,
) -> Array:
    """Move the labels of leaves that are too large to new nodes below them; returns the parents of all nodes."""
    sizes = np.bincount(parents[parents >= 0], minlength=len(node_parents))
    is_leaf = np.bincount(node_parents[node_parents >= 0], minlength=len(node_parents)) == 0
    added, n_nodes = [node_parents], len(node_parents)
    for node in np.flatnonzero(is_leaf & (sizes > TOO_LARGE * leaf_size)).tolist():
        labels = np.flatnonzero(parents == node)
        pointers, places = cluster_rows(
            vectors(), labels, leaf_size, min(branching, len(labels)), [*seed, node], n_jobs
        )
        numbers = np.concatenate([[node], np.arange(n_nodes, n_nodes + len(pointers) - 2)])
        owners = np.repeat(numbers, np.diff(pointers))
        inner = places >= 0
        added.append(owners[inner])
        parents[~places[~inner]] = owners[~inner]
        n_nodes += len(numbers) - 1
    return np.concatenate(added)
