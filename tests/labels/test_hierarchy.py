"""`LabelHierarchy`: what is a tree and what is not, and what a tree can be asked."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from longtail.errors import InvalidInput, ModelFormatError
from longtail.labels import LabelHierarchy

from .trees import hierarchies


@pytest.fixture
def tree():
    """The root has nodes 1 and 2 and label 0; node 1 the labels 3 and 4, node 2 node 3; that the labels 1 and 5."""
    return LabelHierarchy([0, 3, 5, 6, 8], [1, 2, ~0, ~3, ~4, 3, ~1, ~5], n_labels=7)


@pytest.mark.parametrize(
    ("pointers", "children", "fault"),
    [
        ([], [], "the pointers do not run from 0 to the number of children, 0"),
        ([1, 2], [~0, ~1], "do not run from 0"),
        ([0, 1], [~0, ~1], "do not run from 0 to the number of children, 2"),
        ([0, 2, 2], [1, ~0], "node 1 has no children"),
        ([0, 0], [], "node 0 has no children"),
        ([0, 3, 1, 4], [1, 2, ~0, ~1], "node 1 has no children"),
        ([0, 2**63 - 1, -(2**63), 2], [1, ~0], "node 1 has no children"),
        ([0, 2, 3], [~0, 2, ~1], "node 0 has the child node 2; expected node 1"),
        ([0, 2, 3], [0, ~0, ~1], "node 0 has the child node 0; expected node 1"),
        ([0, 2, 3, 4], [2, 1, ~0, ~1], "node 0 has the child node 2; expected node 1"),
        ([0, 2, 3], [~0, ~1, ~2], "there are 2 nodes, but 0 have a parent"),
        ([0, 2], [~0, 1], "there are 1 nodes, but 1 have a parent"),
        ([0, 1, 2], [~0, 1], "node 1 has the child node 1, which comes before it"),
        ([0, 1, 2, 4], [~0, ~1, 1, 2], "node 2 has the child node 1, which comes before it"),
        ([0, 2], [~0, ~3], "node 0 has the label 3; expected labels below 3"),
        ([0, 1], [-(2**63)], "expected labels below 3"),
        ([0, 2, 4], [1, ~2, ~1, ~2], "label 2 occurs more than once, in nodes 0 and 1"),
    ],
)
def test_what_is_no_tree_is_refused_with_the_node_at_fault(pointers, children, fault):
    with pytest.raises(InvalidInput, match=fault):
        LabelHierarchy(pointers, children, 3)
    with pytest.raises(ModelFormatError, match=fault):
        LabelHierarchy.loaded(np.array(pointers, dtype=np.int64), np.array(children, dtype=np.int64), 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.0, 1.0], [~0], 1), "pointers of a label hierarchy has dtype float64"),
        (([0, 1], [[~0]], 1), r"children of a label hierarchy has dtype int64 and shape \(1, 1\)"),
        (([0, 1], [~0], -1), "n_labels is -1"),
        (([0, 1], [~0], True), "n_labels is True"),
        (([0, 1], [~0], 1, ["a", "b"]), "2 names for 1 nodes"),
    ],
)
def test_arrays_of_the_wrong_kind_are_refused(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        LabelHierarchy(*arguments)


def test_a_promise_of_many_labels_costs_nothing():
    assert LabelHierarchy([0, 1], [~(2**60)], n_labels=2**61).labels.tolist() == [2**60]


def test_levels_leaves_and_parents(tree):
    assert (tree.n_nodes, tree.n_leaves, tree.depth) == (4, 2, 3)
    assert tree.levels.tolist() == [0, 1, 3, 4]
    assert tree.labels.tolist() == [0, 1, 3, 4, 5]
    nodes, labels = tree.parents()
    assert nodes.tolist() == [-1, 0, 0, 2]
    assert labels.tolist() == [0, 3, -1, 1, 1, 3, -1]
    assert repr(tree) == "LabelHierarchy(5 of 7 labels, 4 nodes, 2 leaves, depth 3)"


@given(hierarchies())
def test_parents_lead_every_label_to_the_root_along_its_path(tree):
    nodes, labels = tree.parents()
    for label in tree.labels.tolist():
        path = tree.path(label)
        assert path[0] == 0
        assert path[-1] == labels[label]
        assert [nodes[node] for node in path] == [-1, *path[:-1]]
        assert len(path) <= tree.depth


@given(hierarchies())
def test_the_labels_below_a_node_stand_together_in_the_order(tree):
    order, bounds = tree.label_order()
    assert sorted(order.tolist()) == tree.labels.tolist()
    for node, (start, stop) in enumerate(bounds.tolist()):
        assert {label for label in tree.labels.tolist() if node in tree.path(label)} == set(order[start:stop].tolist())


@pytest.mark.parametrize("label", [-1, 7, 2])
def test_a_label_that_is_not_there_has_no_path(tree, label):
    with pytest.raises(InvalidInput, match=f"label {label}"):
        tree.path(label)


@given(hierarchies(), st.randoms())
def test_a_restricted_tree_has_the_labels_asked_for_and_no_needless_nodes(tree, random):
    mask = np.array([random.random() < 0.6 for _ in range(tree.n_labels)], dtype=bool)
    smaller = tree.restricted_to(mask)
    assert smaller.labels.tolist() == [label for label in tree.labels.tolist() if mask[label]]
    assert smaller.n_labels == tree.n_labels
    if len(smaller.labels) > 1:
        assert np.diff(smaller.pointers).min() >= 2
    order, bounds = tree.label_order()
    groups = [frozenset(label for label in order[start:stop].tolist() if mask[label]) for start, stop in bounds]
    order, bounds = smaller.label_order()
    kept = [frozenset(order[start:stop].tolist()) for start, stop in bounds]
    assert set(kept) == {group for group in groups if len(group) > 1 or group == frozenset(smaller.labels.tolist())} - {
        frozenset()
    }
    assert len(set(kept)) == len(kept)
    assert smaller.restricted_to(mask) == smaller


def test_a_restricted_tree_keeps_the_names_of_its_nodes():
    tree = LabelHierarchy([0, 2, 4, 5], [1, 2, ~0, ~1, ~2], 3, ["all", "animals", "stones"])
    assert tree.restricted_to(np.array([True, True, True])).node_names == ("all", "animals")
    assert tree.restricted_to(np.array([True, True, False])).node_names == ("animals",)
    assert tree.restricted_to(np.array([False, False, True])).node_names == ("all",)
    assert tree.restricted_to(np.array([False, False, False])).node_names == ()


@pytest.mark.parametrize("mask", [[True], [0, 1, 2, 3, 4, 5, 6], [[True] * 7]])
def test_a_mask_must_be_one_answer_per_label(tree, mask):
    with pytest.raises(InvalidInput, match=r"expected bool and \(7,\)"):
        tree.restricted_to(mask)


def test_trees_are_equal_when_all_their_parts_are(tree):
    same = LabelHierarchy(tree.pointers.copy(), tree.children.copy(), 7)
    assert tree == same
    assert tree != LabelHierarchy(tree.pointers, tree.children, 8)
    assert tree != LabelHierarchy(tree.pointers, tree.children, 7, ["a", "b", "c", "d"])
    assert tree != "a tree"


def test_the_printed_tree_can_be_cut_short(tree):
    names = ["zero", "one", "two", "three", "four", "five", "six"]
    assert tree.format(names, max_depth=3, max_labels=1).splitlines() == [
        "node 0: 5 labels",
        "├─ node 1: 2 labels",
        "│  ├─ three",
        "│  └─ ... and 1 more",
        "├─ node 2: 2 labels",
        "│  └─ node 3: 2 labels",
        "└─ zero",
    ]
    assert tree.format(max_depth=1) == "node 0: 5 labels"
    assert LabelHierarchy([0], [], 3).format() == "no labels"


def test_the_printed_tree_shows_the_terms_of_its_nodes():
    tree = LabelHierarchy([0, 2, 4, 6], [1, 2, ~0, ~1, ~2, ~3], 4)
    vectors = sparse.csr_array(np.array([[3, 1, 0], [2, 1, 0], [0, 0, 1], [0, 2, 2]]))
    lines = tree.format(vectors=vectors, feature_names=["fur", "eyes", "scales"], n_terms=2).splitlines()
    assert lines[0] == "node 0: 4 labels (fur, eyes)"
    assert lines[1] == "├─ node 1: 2 labels (fur, eyes)"
    assert lines[4] == "└─ node 2: 2 labels (scales, eyes)"
    with pytest.raises(InvalidInput, match="both vectors and feature_names"):
        tree.format(vectors=vectors)


def test_a_deep_tree_is_printed_and_walked_without_recursion():
    depth = 3000
    tree = LabelHierarchy(np.arange(depth + 1), [*range(1, depth), ~0], 1)
    assert tree.depth == depth
    lines = tree.format().splitlines()
    assert len(lines) == depth + 1
    assert max(map(len, lines)) < 400
    assert len(tree.path(0)) == depth
    assert tree.restricted_to(np.array([True])).n_nodes == 1
    assert json.loads(json.dumps(tree.to_dict()))["nodes"][-1]["labels"] == [0]


def test_a_tree_too_deep_to_walk_is_refused():
    depth = 10_001
    with pytest.raises(InvalidInput, match="more than 10000 levels"):
        LabelHierarchy(np.arange(depth + 1), [*range(1, depth), ~0], 1)


def test_json_values_say_the_whole_tree(tree):
    told = json.loads(json.dumps(tree.to_dict(list("abcdefg"))))
    assert told["n_labels"] == 7
    assert [node["parent"] for node in told["nodes"]] == [None, 0, 0, 2]
    assert [node["nodes"] for node in told["nodes"]] == [[1, 2], [], [3], []]
    assert [node["labels"] for node in told["nodes"]] == [["a"], ["d", "e"], [], ["b", "f"]]


def test_label_names_must_fit(tree):
    for use in (tree.format, tree.to_dict):
        with pytest.raises(InvalidInput, match="1 label names, but the hierarchy has 7 labels"):
            use(["a"])
