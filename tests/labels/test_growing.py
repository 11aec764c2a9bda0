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


def test_a_node_is_split_only_if_new_labels_join_it():
    wide = LabelHierarchy([0, 2, 12, 22], [1, 2, *(~label for label in range(20))], 20)
    stays = grow(wide, np.arange(20), np.ones(20, bool), None, leaf_size=4)
    assert stays.hierarchy == wide
    vectors = sparse.csr_array(np.repeat(np.eye(2, dtype=np.float32), [10, 11], axis=0))
    found = grow(wide, np.append(np.arange(20), -1), np.ones(21, bool), vectors, leaf_size=4).hierarchy
    assert len({found.parents()[1][label] for label in range(10)}) == 1
    assert np.bincount(found.parents()[1][10:]).max() <= 4


def test_labels_that_join_a_node_above_others_get_nodes_of_their_own():
    tree = LabelHierarchy([0, 3, 5], [1, ~0, ~1, ~2, ~3], 4, ["all", "left"])
    vectors = sparse.csr_array(np.eye(2, dtype=np.float32)[[0, 0, 1, 1, *[0] * 20]])
    found = grow(tree, np.array([0, 1, 2, 3, *[-1] * 20]), np.ones(24, bool), vectors, leaf_size=5)
    names = found.hierarchy.node_names
    assert np.bincount(found.hierarchy.parents()[1]).max() <= 5
    assert names[0] == "all"
    assert {"left", "new node 1", "new node 2"} < set(names)
    assert sorted(found.origins[found.origins >= 0].tolist()) == [0, 1]
    more = grow(found.hierarchy, np.array([*range(24), *[-1] * 20]), np.ones(44, bool), unit_vectors(44), leaf_size=5)
    assert len(set(more.hierarchy.node_names)) == more.hierarchy.n_nodes


@pytest.mark.parametrize("names", [None, ["all", "left", "right"]])
def test_labels_that_replace_all_others_get_a_tree(names):
    tree = LabelHierarchy([0, 2, 4, 6], [1, 2, ~0, ~1, ~2, ~3], 4, names)
    found = grow(tree, np.full(60, -1), np.ones(60, bool), unit_vectors(60), leaf_size=5)
    assert np.diff(found.hierarchy.pointers).max() <= 5
    assert (found.origins < 0).all()
    nothing = grow(tree, np.arange(4), np.zeros(4, bool), None, leaf_size=5).hierarchy
    assert nothing.n_nodes == 0
    again = grow(nothing, np.append(np.arange(4), [-1] * 3), np.array([False] * 4 + [True] * 3), unit_vectors(7), 5)
    np.testing.assert_array_equal(again.hierarchy.labels, [4, 5, 6])
