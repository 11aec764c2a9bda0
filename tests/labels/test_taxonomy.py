"""Taxonomies from outside: what they mean, what is refused, and that they come back as they went out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from longtail.errors import DataFormatError, InvalidInput
from longtail.labels import LabelHierarchy, cluster_labels, from_parents, read_taxonomy, to_parents, write_taxonomy

from .trees import hierarchies

NAMES = ["cat", "dog", "animals", "oak"]


@pytest.fixture
def write(tmp_path):
    def write(text):
        path = tmp_path / "taxonomy.tsv"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


def ways(tree, names):
    """Each label with the names of the nodes above it."""
    return {names[label]: [tree.node_names[node] for node in tree.path(label)] for label in tree.labels.tolist()}


def test_a_class_that_is_a_label_gets_itself_as_a_child():
    tree = from_parents({"cat": "animals", "dog": "animals", "animals": "life", "oak": "life"}, 4, NAMES)
    assert ways(tree, NAMES) == {
        "cat": ["life", "animals"],
        "dog": ["life", "animals"],
        "animals": ["life", "animals"],
        "oak": ["life"],
    }


def test_labels_may_be_given_by_number():
    by_name = from_parents({"cat": "animals", "dog": "animals", "oak": "plants", "animals": None}, 4, NAMES)
    assert from_parents({0: 2, 1: "animals", 3: "plants"}, 4, NAMES) == by_name
    assert from_parents({0: "a", np.int64(1): "a"}, 2).node_names == ("a",)


def test_several_classes_at_the_top_get_a_root_above_them():
    tree = from_parents({"cat": "animals", "dog": "animals", "oak": "root"}, 4, NAMES)
    assert ways(tree, NAMES)["oak"] == ["root (class)", "root"]
    assert ways(tree, NAMES)["cat"] == ["root (class)", "animals"]


def test_classes_without_labels_are_left_out():
    parents = {
        "cat": "animals",
        "dog": "animals",
        "oak": "life",
        "animals": "life",
        "rocks": "life",
        "granite": "rocks",
    }
    tree = from_parents({**parents, "kittens": "cat"}, 4, NAMES)
    assert tree.node_names == ("life", "animals")
    assert ways(tree, NAMES)["cat"] == ["life", "animals"]


def test_missing_labels_are_refused_put_below_the_root_or_left_out():
    parents = {"cat": "pets", "dog": "pets", "pets": "life"}
    with pytest.raises(
        InvalidInput, match=r"2 of 4 labels have no parent \(label 'animals', label 'oak'\).*missing='root'"
    ):
        from_parents(parents, 4, NAMES)
    assert ways(from_parents(parents, 4, NAMES, missing="root"), NAMES)["oak"] == ["life"]
    assert from_parents(parents, 4, NAMES, missing="drop").labels.tolist() == [0, 1]
    assert from_parents({}, 3, missing="root").children.tolist() == [~0, ~1, ~2]
    assert from_parents({}, 3, missing="drop").n_nodes == 0


@pytest.mark.parametrize(
    ("parents", "message"),
    [
        ({"cat": "dog", "dog": "cat"}, "form a cycle: label 'cat' below label 'dog' below label 'cat'"),
        ({"cat": "a", "a": "b", "b": "c", "c": "a"}, "form a cycle: class 'a' below class 'b' below class 'c'"),
        ({"cat": "cat"}, "form a cycle: label 'cat' below label 'cat'"),
        ({4: "a"}, "the child 4 is unknown; expected a label below 4"),
        ({0: 4}, "the parent 4 is unknown; expected a label below 4"),
        ({-1: "a"}, "the child -1 is unknown"),
        ({0: 1.5}, "the parent 1.5 is unknown"),
        ({True: "a"}, "the child True is unknown"),
        ({"cat": "a", 0: "b"}, "0 is given twice, by number and by name"),
        ([0.5, 1.5, 2.5, 3.5], "parents has dtype float64"),
        ([-1, -1], r"shape \(2,\); expected one integer for each of the 4 labels"),
        ([4, 4, 4, 5, -1], "item 3 has the parent 5; expected an item below 5"),
        ([4, 4, 4, -2, -1], "item 3 has the parent -2"),
        ([4, 4, 4, 4, 5, 4], "form a cycle: label 'cat'|form a cycle: class 4 below class 5"),
    ],
)
def test_what_is_no_tree_is_refused(parents, message):
    with pytest.raises(InvalidInput, match=message):
        from_parents(parents, 4, NAMES)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_labels": -1}, "n_labels is -1"),
        ({"n_labels": 3, "label_names": ["a"]}, "1 label names, but the hierarchy has 3"),
        ({"n_labels": 2, "label_names": ["a", "a"]}, "label names repeat"),
        ({"n_labels": 0, "missing": "ignore"}, "missing is 'ignore'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options, message):
    with pytest.raises(InvalidInput, match=message):
        from_parents({}, **options)


@given(hierarchies())
def test_a_tree_comes_back_from_its_parents(tree):
    assert from_parents(to_parents(tree), tree.n_labels, missing="drop") == tree


def test_a_learned_tree_comes_back_from_its_file(tmp_path, rng):
    vectors = rng.random((60, 20)).astype(np.float32)
    vectors[[3, 50]] = 0
    tree = cluster_labels(vectors / np.maximum(1e-9, np.linalg.norm(vectors, axis=1, keepdims=True)), 5, 4)
    names = [f"node {i}" for i in range(0, 120, 2)]
    write_taxonomy(tree, tmp_path / "tree.tsv.gz", names)
    back = read_taxonomy(tmp_path / "tree.tsv.gz", names, missing="drop")
    np.testing.assert_array_equal(back.pointers, tree.pointers)
    np.testing.assert_array_equal(back.children, tree.children)


def test_a_taxonomy_with_labels_inside_comes_back_from_its_file(tmp_path):
    tree = from_parents({"cat": "animals", "dog": "animals", "animals": "life", "oak": "life"}, 4, NAMES)
    write_taxonomy(tree, tmp_path / "tree.tsv", NAMES)
    assert read_taxonomy(tmp_path / "tree.tsv", NAMES) == tree
    without = tree.restricted_to(np.array([True, True, False, True]))
    write_taxonomy(without, tmp_path / "tree.tsv", NAMES)
    assert ways(read_taxonomy(tmp_path / "tree.tsv", NAMES, missing="drop"), NAMES) == {
        "cat": ["life", "animals (class)"],
        "dog": ["life", "animals (class)"],
        "oak": ["life"],
    }


def test_an_empty_tree_is_an_empty_file(tmp_path):
    write_taxonomy(LabelHierarchy([0], [], 2), tmp_path / "tree.tsv", ["a", "b"])
    assert (tmp_path / "tree.tsv").read_bytes() == b""
    assert read_taxonomy(tmp_path / "tree.tsv", ["a", "b"], missing="drop").n_nodes == 0


def test_line_ends_blanks_and_a_byte_order_mark_do_not_matter(write):
    tree = read_taxonomy(write("\ufeffcat \tpets\r\n\r\n  \r\n dog\t pets"), ["cat", "dog"])
    assert ways(tree, ["cat", "dog"]) == {"cat": ["pets"], "dog": ["pets"]}


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (
            "cat\tpets\ndog pets\n",
            2,
            "expected the name of a child, a tab, and the name of its parent; found 'dog pets'",
        ),
        ("cat\tpets\tx\n", 1, "found 'cat\\\\tpets\\\\tx'"),
        ("cat\t\n", 1, "expected the name of a child"),
        ("\tpets\n", 1, "expected the name of a child"),
        ("cat\tpets\n\ncat\tanimals\n", 3, "'cat' occurs below 'animals' and below 'pets', first in line 1"),
        ("cat\tpets\ncat\tpets\n", 2, "'cat' occurs again, first in line 1"),
        ("cat\tcat\n", 1, "'cat' is its own parent"),
        ("cat\tpets\npets\tcat\n", None, "the parents form a cycle"),
        ("cat\tpets\n", None, r"1 of 2 labels have no parent \(label 'dog'\)"),
        (b"cat\t\xff\n", 1, "not UTF-8"),
        (b"\x1f\x8bcat", None, "gzip"),
    ],
)
def test_a_faulty_file_is_refused_with_its_line(write, text, line, message):
    with pytest.raises(DataFormatError, match=message) as caught:
        read_taxonomy(write(text), ["cat", "dog"])
    assert caught.value.line == line


@pytest.mark.parametrize("name", ["a\tb", "a\nb", "a\rb", "", " a"])
def test_a_name_that_would_not_come_back_is_not_written(tmp_path, name):
    with pytest.raises(InvalidInput, match="cannot be written"):
        write_taxonomy(LabelHierarchy([0, 1], [~0], 1), tmp_path / "tree.tsv", [name])
    assert list(tmp_path.iterdir()) == []
