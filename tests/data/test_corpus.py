"""Corpus: what fits together, and what does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from longtail import Corpus, GroupedCorpus
from longtail.data import encode_labels
from longtail.errors import InvalidInput


@pytest.fixture
def corpus():
    return Corpus.from_lists(["one", "two", "three"], [["b", "a", "b"], [], ["c"]], row_names=["r1", "r2", "r3"])


def test_names_are_sorted_and_repeats_count_once(corpus):
    assert corpus.label_names == ("a", "b", "c")
    assert corpus.labels.toarray().tolist() == [[1, 1, 0], [0, 0, 0], [0, 0, 1]]
    assert corpus.label_counts.tolist() == [1, 1, 1]


def test_rows_can_be_selected_by_id_or_mask(corpus):
    picked = corpus.select([2, 0])
    assert picked.texts == ["three", "one"]
    assert picked.row_names == ["r3", "r1"]
    assert picked.labels.toarray().tolist() == [[0, 0, 1], [1, 1, 0]]
    assert corpus.select(np.array([False, True, False])).texts == ["two"]


def test_labels_can_be_renumbered_with_unknown_ones_dropped(corpus):
    renamed = corpus.with_label_names(["c", "z", "a"])
    assert renamed.labels.toarray().tolist() == [[0, 0, 1], [0, 0, 0], [1, 0, 0]]


def test_groups_merge_into_one_row_each(corpus):
    grouped = Corpus(
        labels=corpus.labels,
        label_names=corpus.label_names,
        texts=corpus.texts,
        groups=np.array([[1, 0, 0], [1, 1, 0], [0, 1, 0]]),
    )
    merged = grouped.merge_groups()
    assert merged.texts == ["one\n\ntwo", "two\n\nthree", ""]
    assert merged.labels.toarray().tolist() == [[1, 1, 0], [0, 0, 1], [0, 0, 0]]
    with pytest.raises(InvalidInput, match="needs a corpus with groups"):
        corpus.merge_groups()


@pytest.mark.parametrize(
    ("parts", "match"),
    [
        ({"label_names": ["a"], "texts": ["x"]}, "1 label names for 2"),
        ({"label_names": ["a", "a"], "texts": ["x"]}, "repeat"),
        ({"label_names": ["a", "b"]}, "texts or features"),
        ({"label_names": ["a", "b"], "texts": ["x", "y"]}, "2 texts for 1 rows"),
        ({"label_names": ["a", "b"], "features": np.ones((3, 2))}, "3 rows of features for 1"),
        ({"label_names": ["a", "b"], "texts": ["x"], "groups": np.ones((2, 1))}, "2 rows of groups for 1"),
        ({"label_names": ["a", "b"], "texts": ["x"], "row_names": []}, "0 row names for 1"),
    ],
)
def test_parts_that_do_not_fit_are_refused(parts, match):
    with pytest.raises(InvalidInput, match=match):
        Corpus(labels=np.array([[1, 0]]), **parts)


def test_given_names_fix_the_numbering_and_bound_it():
    matrix, names = encode_labels([["b"], ["a", "b"]], ["b", "a", "unused"])
    assert names == ("b", "a", "unused")
    assert matrix.toarray().tolist() == [[1, 0, 0], [1, 1, 0]]
    with pytest.raises(InvalidInput, match="'z' is not among the 1 given"):
        encode_labels([["z"]], ["a"])
    with pytest.raises(InvalidInput, match="row 0 has label 3"):
        encode_labels([[3]])


LABEL_TEXTS = (("the letter a", "alpha"), (), ("the letter c",))


def test_label_texts_follow_their_labels(corpus):
    described = replace(corpus, label_texts=[list(texts) for texts in LABEL_TEXTS])
    assert described.label_texts == LABEL_TEXTS
    assert described.select([2]).label_texts == LABEL_TEXTS
    assert described.with_label_names(["c", "z", "a"]).label_texts == (LABEL_TEXTS[2], (), LABEL_TEXTS[0])
    assert corpus.with_label_names(["c"]).label_texts is None


def test_label_texts_survive_grouping(corpus):
    described = replace(corpus, groups=[[1], [1], [1]], label_texts=LABEL_TEXTS)
    assert described.merge_groups().label_texts == LABEL_TEXTS
    groups = GroupedCorpus.from_corpus(described)
    assert groups.label_texts == LABEL_TEXTS
    assert groups.with_label_names(["c", "z", "a"]).label_texts == (LABEL_TEXTS[2], (), LABEL_TEXTS[0])
    assert groups.labelled(described.labels).label_texts == groups.union().label_texts == LABEL_TEXTS


@pytest.mark.parametrize(
    ("texts", "match"),
    [
        ([["a"]], "1 lists of label texts for 3 labels"),
        ("abc", "label_texts is 'abc'; expected a list"),
        (3, "label_texts is 3; expected a list"),
        ([["a"], "b", []], "the texts of label 1 are the single text 'b'"),
        ([["a"], None, []], "the texts of label 1 are None"),
        ([["a"], ["b", 7], []], "the texts of label 1 hold 7"),
    ],
)
def test_label_texts_that_do_not_fit_are_refused(corpus, texts, match):
    with pytest.raises(InvalidInput, match=match):
        replace(corpus, label_texts=texts)
