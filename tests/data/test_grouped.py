"""Rows in groups with labels of the groups: what fits together, what is refused, and what comes of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.aggregated import aggregate_labels
from longtail.data import Corpus, GroupedCorpus, load_python_api
from longtail.errors import InvalidInput, NotEnoughMemory
from tests.data.corpora import grouped_corpora

PAGES = GroupedCorpus.from_lists(
    [["a", "b"], [], ["c"]], [["x", "y", "x"], ["z"], []], group_names=["first", "second", "third"]
)


def test_lists_of_groups_keep_order_and_count_labels():
    assert (PAGES.n_rows, PAGES.n_groups, PAGES.n_labels) == (3, 3, 3)
    assert list(PAGES.texts) == ["a", "b", "c"]
    assert PAGES.groups.toarray().tolist() == [[1, 0, 0], [1, 0, 0], [0, 0, 1]]
    assert PAGES.label_names == ("x", "y", "z")
    assert PAGES.group_labels.toarray().tolist() == [[2, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert PAGES.group_labels.dtype == np.int64
    assert PAGES.group_sizes.tolist() == [2, 0, 1]


def test_names_of_labels_may_be_given():
    corpus = GroupedCorpus.from_lists([["a"]], [["y", "y"]], label_names=["x", "y"])
    assert corpus.group_labels.toarray().tolist() == [[0, 2]]
    with pytest.raises(InvalidInput, match="label 'z' is not among the 2 given"):
        GroupedCorpus.from_lists([["a"]], [["z"]], label_names=["x", "y"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"group_labels": np.ones((4, 3))}, "groups has 3 columns and group_labels 4 rows: group 3 has no column"),
        (
            {"group_labels": np.ones((2, 3))},
            r"groups has 3 columns and group_labels 2 rows: group 2 \('third'\) has no row of labels",
        ),
        ({"group_labels": -np.ones((3, 3))}, "group_labels must hold whole numbers from 0 to 2\\^53; row 0 holds -1"),
        ({"group_labels": [[0, 0, 0], [0, 1.5, 0], [0, 0, 0]]}, "row 1 holds 1.5"),
        ({"groups": 2 * np.ones((3, 3))}, "groups must hold only 0 and 1"),
        ({"label_names": ["x", "y"]}, "2 label names for 3 columns of group_labels"),
        ({"label_names": ["x", "y", "x"]}, "label names repeat"),
        ({"texts": ["a"]}, "1 texts for 3 rows of groups"),
        ({"texts": None}, "needs texts or features"),
        ({"features": np.ones((2, 2))}, "2 rows of features for 3 rows of groups"),
        ({"row_names": ["a"]}, "1 row names for 3 rows of groups"),
        ({"group_names": ["a"]}, "1 group names for 3 columns of groups"),
    ],
)
def test_what_does_not_fit_is_refused(change, message):
    with pytest.raises(InvalidInput, match=message):
        replace(PAGES, **change)


@pytest.mark.parametrize(
    ("texts", "labels", "message"),
    [
        ([["a"]], [], "1 lists of texts for 0 lists of labels"),
        (["a"], [["x"]], "the texts of group 0 are a single text"),
        ([["a"], ["b"]], [["x"], "x"], "the labels of group 1 are the single text 'x'"),
        ([["a"]], [[1]], "group 0 has label 1; labels are names"),
    ],
)
def test_lists_of_something_else_are_refused(texts, labels, message):
    with pytest.raises(InvalidInput, match=message):
        GroupedCorpus.from_lists(texts, labels)


def test_a_labelled_corpus_forgets_its_rows_labels():
    groups = np.array([[1, 0], [1, 1], [0, 1]])
    rows = Corpus(labels=[[1, 0], [1, 1], [0, 0]], label_names=["x", "y"], texts=["a", "b", "c"], groups=groups)
    assert GroupedCorpus.from_corpus(rows).group_labels.toarray().tolist() == [[2, 1], [1, 1]]
    assert GroupedCorpus.from_corpus(rows, "set").group_labels.toarray().tolist() == [[1, 1], [1, 1]]
    with pytest.raises(InvalidInput, match="merge is 'bag'"):
        GroupedCorpus.from_corpus(rows, "bag")
    with pytest.raises(InvalidInput, match="the corpus has no groups"):
        GroupedCorpus.from_corpus(replace(rows, groups=None))


@given(st.integers(0, 2**32), st.sampled_from(["list", "set"]))
def test_labels_are_merged_as_experiments_merge_them(seed, merge):
    rng = np.random.default_rng(seed)
    Y, groups = (rng.random((5, width)) < 0.4 for width in (4, 3))
    rows = Corpus(labels=Y, label_names=list("abcd"), features=np.ones((5, 1)), groups=groups)
    found = GroupedCorpus.from_corpus(rows, merge)
    assert (found.group_labels != aggregate_labels(Y, groups, merge)).nnz == 0


@given(grouped_corpora(overlapping=True))
def test_the_union_gives_a_row_every_label_of_its_groups(corpus):
    union = corpus.union()
    expected = (corpus.groups.toarray() @ corpus.group_labels.toarray()) > 0
    assert (union.labels.toarray() == expected).all()
    assert (union.groups != corpus.groups).nnz == 0


def test_the_memory_of_the_union_is_planned(monkeypatch):
    monkeypatch.setenv("LONGTAIL_MEMORY", "10")
    with pytest.raises(NotEnoughMemory, match="giving every label of a group to every row of it needs"):
        PAGES.union()


def test_labelled_rows_are_a_corpus_with_the_groups():
    corpus = PAGES.labelled(np.eye(3))
    assert corpus.labels.toarray().tolist() == np.eye(3).tolist()
    assert (list(corpus.texts), corpus.label_names) == (["a", "b", "c"], ("x", "y", "z"))
    assert (corpus.groups != PAGES.groups).nnz == 0
    with pytest.raises(InvalidInput, match=r"row_labels has shape \(2, 3\); expected 3 rows and 3 labels"):
        PAGES.labelled(np.ones((2, 3)))


def test_labels_are_renumbered_by_name():
    found = PAGES.with_label_names(["y", "w", "x"])
    assert found.label_names == ("y", "w", "x")
    assert found.group_labels.toarray().tolist() == [[1, 0, 2], [0, 0, 0], [0, 0, 0]]


def test_the_embedded_corpus_is_groups_of_paragraphs():
    corpus = load_python_api(rows="paragraphs", split="test")
    grouped = GroupedCorpus.from_corpus(corpus, "set")
    documents = load_python_api(split="test")
    assert (grouped.group_labels != documents.labels.astype(np.int64)).nnz == 0
    assert (grouped.union().labels != corpus.labels).nnz == 0
