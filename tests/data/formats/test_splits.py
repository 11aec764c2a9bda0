"""Split files and the two corpora they make."""

from __future__ import annotations

import numpy as np
import pytest

from longtail.data import Corpus, read_splits, split_corpus
from longtail.errors import DataFormatError, InvalidInput


def test_ids_start_at_zero_and_splits_are_columns(tmp_path):
    path = tmp_path / "a_trSplit.txt"
    path.write_bytes(b"1 4\r\n 3\t2 \n\n")
    assert read_splits(path).tolist() == [[0, 3], [2, 1]]


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        (b"", 1, "the file is empty"),
        (b"1 2\n0 1\n", 2, "'0' is not a row id"),
        (b"1 2\n-1 1\n", 2, "'-1' is not a row id"),
        (b"1 2\n1.0 1\n", 2, "'1.0' is not a row id"),
        (b"1 2\n1 \xff\n", 2, "is not a row id"),
        (b"1 2\n9999999999999999999 1\n", 2, "is not a row id"),
        (b"1 2\n1\n", 2, "1 columns, expected 2"),
        (b"1 2\n\n1 2\n", 3, "an empty line above"),
    ],
)
def test_faults_name_the_line_and_the_reason(tmp_path, content, line, reason):
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    with pytest.raises(DataFormatError) as caught:
        read_splits(path)
    assert caught.value.line == line
    assert reason in str(caught.value)


def test_a_corpus_is_split_by_ids():
    corpus = Corpus.from_lists(["a", "b", "c"], [["x"], ["y"], ["x"]])
    train, test = split_corpus(corpus, [2, 0], np.array([1]))
    assert (list(train.texts), list(test.texts)) == (["c", "a"], ["b"])
    assert train.label_names == test.label_names == ("x", "y")


@pytest.mark.parametrize(
    ("train", "test", "reason"),
    [
        ([0, 1], [1, 2], "1 rows are in both parts of the split, the first is row 1"),
        ([0, 3], [1], r"a train id is outside 0\.\.2"),
        ([0], [-1], r"a test id is outside 0\.\.2"),
        ([0.5], [1], "the train ids have shape"),
        ([[0]], [1], "the train ids have shape"),
    ],
)
def test_ids_that_cannot_be_are_refused(train, test, reason):
    corpus = Corpus.from_lists(["a", "b", "c"], [["x"], ["y"], ["x"]])
    with pytest.raises(InvalidInput, match=reason):
        split_corpus(corpus, train, test)
