"""Label trees that change: labels leave and join, and large leaves are split."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from longtail.labels import LabelHierarchy, cluster_labels, grow_hierarchy


def unit_vectors(n_labels, seed=0):
    vectors = np.abs(np.random.default_rng(seed).normal(size=(n_labels, 8))).astype(np.float32)
    return sparse.csr_array(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def grow(tree, labels, present, vectors, leaf_size=None):
    return grow_hierarchy(tree, labels, present, lambda: vectors, leaf_size, 4, [0])


def test_an_unchanged_tree_stays_the_same():
    vectors = unit_vectors(30)
    tree = cluster_labels(vectors, leaf_size=4, branching=4)

    def never():
        raise AssertionError("vectors are not needed")

    found = grow_hierarchy(tree, np.arange(30), np.ones(30, bool), never, 4, 4, [0])
    assert found.hierarchy == tree
    np.testing.assert_array_equal(found.origins, np.arange(tree.n_nodes))


@pytest.mark.parametrize("seed", range(5))
def test_each_present_label_is_in_the_tree_and_nodes_know_where_they_come_from(seed):
    rng = np.random.default_rng(seed)
    tree = cluster_labels(unit_vectors(40), leaf_size=4, branching=3)
    labels = np.concatenate([rng.permutation(40)[:25], np.full(30, -1)])
    present = rng.random(55) < 0.8
    found = grow(tree, labels, present, unit_vectors(55, seed), leaf_size=4)
    np.testing.assert_array_equal(found.hierarchy.labels, np.flatnonzero(present))
    assert np.diff(found.hierarchy.pointers).min() >= 2
    known = found.origins[found.origins >= 0]
    assert len(np.unique(known)) == len(known)
    leaves = found.hierarchy.parents()[1][present]
    assert np.bincount(leaves[leaves >= 0]).max() <= 6
    below, before = found.hierarchy.label_order(), tree.label_order()
    for node in np.flatnonzero(found.origins >= 0).tolist():
        mine = labels[below[0][slice(*below[1][node])]]
        theirs = before[0][slice(*before[1][found.origins[node]])]
        assert set(mine[mine >= 0].tolist()) <= set(theirs.tolist())


def test_a_new_label_joins_the_leaf_with_the_most_similar_labels():
    tree = LabelHierarchy([0, 2, 4, 6], [1, 2, ~0, ~1, ~2, ~3], 4)
    vectors = sparse.csr_array(np.array([[1, 0], [1, 0], [0, 1], [0, 1], [0.9, 0.1], [0.2, 0.9]], dtype=np.float32))
    found = grow(tree, np.array([0, 1, 2, 3, -1, -1]), np.ones(6, bool), vectors)
    np.testing.assert_array_equal(found.hierarchy.parents()[1], [1, 1, 2, 2, 1, 2])


def test_names_of_nodes_stay():
    tree = LabelHierarchy([0, 2, 4, 6], [1, 2, ~0, ~1, ~2, ~3], 4, ["all", "left", "right"])
    found = grow(tree, np.array([0, 1, 2]), np.ones(3, bool), None)
    assert found.hierarchy.node_names == ("all", "left")
    assert found.hierarchy.path(2) == [0]


def test_a_tree_without_labels_gets_a_root():
    empty = LabelHierarchy([0], [], 0)
    found = grow(empty, np.full(3, -1), np.ones(3, bool), unit_vectors(3))
    np.testing.assert_array_equal(found.hierarchy.labels, [0, 1, 2])
    assert grow(empty, np.full(3, -1), np.zeros(3, bool), None).hierarchy.n_nodes == 0
