"""The groups file: what is read, what is refused and where, and the round trip."""

from __future__ import annotations

import gzip
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from longtail.data import Corpus, GroupedCorpus, read_groups, write_groups
from longtail.errors import DataFormatError, InvalidInput, LongtailError, NotEnoughMemory
from tests.data.corpora import assert_same_groups, grouped_corpora

ROWS = Corpus(labels=np.eye(4, 1), label_names=["old"], features=np.eye(4))
TINY = b"4 4 3\n0,2:2 0 1 3\n 1\n1 \n \n"


def read(folder, content, **options):
    (folder / "groups.txt").write_bytes(content)
    return read_groups(folder / "groups.txt", ROWS, **options)


def test_groups_take_the_rows_and_not_their_labels(tmp_path):
    corpus = read(tmp_path, TINY)
    assert corpus.groups.toarray().T.tolist() == [[1, 1, 0, 1], [0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]
    assert corpus.group_labels.toarray().tolist() == [[1, 0, 2], [0, 0, 0], [0, 1, 0], [0, 0, 0]]
    assert corpus.label_names == ("0", "1", "2")
    assert corpus.features.toarray().tolist() == np.eye(4).tolist()


@pytest.mark.parametrize(
    "content", [TINY.replace(b"\n", b"\r\n"), TINY + b"\n\n", gzip.compress(TINY, mtime=0), TINY[:-1]]
)
def test_line_ends_and_gzip_make_no_difference(tmp_path, content):
    (tmp_path / "plain").mkdir()
    assert_same_groups(read(tmp_path / "plain", TINY), read(tmp_path, content))


def test_members_and_labels_may_come_in_any_order(tmp_path):
    (tmp_path / "plain").mkdir()
    other = b"4 4 3\n2:2,0  3 0   1 \n 1\n1\n \n"
    assert_same_groups(read(tmp_path / "plain", TINY), read(tmp_path, other))


def test_names_come_from_the_file_beside_it_or_as_given(tmp_path):
    assert read(tmp_path, TINY, label_names=["a", "b", "c"]).label_names == ("a", "b", "c")
    (tmp_path / "labels.txt").write_text("red\ngreen\nblue\n", encoding="utf-8")
    assert read(tmp_path, TINY).label_names == ("red", "green", "blue")
    with pytest.raises(DataFormatError, match="3 labels, but label_names has 1 names"):
        read(tmp_path, TINY, label_names=["a"])


FAULTS = [
    (b"", 1, "the file is empty"),
    (b"\n", 1, "expected the header 'groups rows labels', found ''"),
    (b"1 4\n0 1\n", 1, "expected the header 'groups rows labels', found '1 4'"),
    (b"-1 4 3\n", 1, "expected the header"),
    (b"1 5 3\n0 1\n", 1, "the header says 5 rows, but there are 4"),
    (b"2 4 3\n0 1\n", None, "the header says 2 groups, but the file has 1"),
    (b"1 4 3\n0 1\n0 2\n", 3, "too many lines: the header says 1 groups"),
    (b"3 4 3\n0 1\n\n0 2\n", 3, "an empty line; write a group without labels and rows as a line with one blank"),
    (b"2 4 3\n0 1\n0 1 4\n", 3, "row 4 is too large: there are 4 rows, numbered from 0"),
    (b"2 4 3\n0 1\n0 1 2 1\n", 3, "row 1 appears twice"),
    (b"2 4 3\n0 1\n3 1\n", 3, "label 3 is too large: there are 3 labels, numbered from 0"),
    (b"2 4 3\n0 1\n1,1 1\n", 3, "label 1 appears twice; write its count as label:count"),
    (b"2 4 3\n0 1\n1:0 1\n", 3, "label 1 has the count 0; leave it out"),
    (b"2 4 3\n0 1\n1: 1\n", 3, "'1:' is not a label"),
    (b"2 4 3\n0 1\n1:-2 1\n", 3, "'1:-2' is not a label"),
    (b"2 4 3\n0 1\n1:1:1 1\n", 3, "'1:1:1' is not a label"),
    (b"2 4 3\n0 1\n1, 1\n", 3, "'' is not a label"),
    (b"2 4 3\n0 1\nred 1\n", 3, "'red' is not a label"),
    (b"2 4 3\n0 1\n1_0 1\n", 3, "'1_0' is not a label"),
    (b"2 4 3\n0 1\n0 1 x\n", 3, "'x' is not a row"),
    (b"2 4 3\n0 1\n0 1,2\n", 3, "'1,2' is not a row"),
    (b"2 4 3\n0 1\n0 1\t2\n", 3, r"'1\t2' is not a row"),
    (b"2 4 3\n0 1\n0 +1\n", 3, "'+1' is not a row"),
    (b"2 4 3\n0 1\n0 \xb2\n", 3, r"'\xb2' is not a row"),
    (b"2 4 3\n0 1\n0 " + b"9" * 19 + b"\n", 3, "is not a row"),
    (b"2 4 3\n0 1\n0 999999999999999999\n", 3, "row 999999999999999999 is too large"),
]


@pytest.mark.parametrize(("content", "line", "reason"), FAULTS, ids=[reason for _, _, reason in FAULTS])
def test_faults_name_the_line_and_the_reason(tmp_path, content, line, reason):
    with pytest.raises(DataFormatError) as caught:
        read(tmp_path, content)
    assert caught.value.path == str(tmp_path / "groups.txt")
    assert caught.value.line == line
    assert reason in str(caught.value).replace("\\\\", "\\")


def test_a_cut_file_is_an_error(tmp_path):
    for length in range(len(TINY) - 4):
        with pytest.raises(DataFormatError):
            read(tmp_path, TINY[:length])


def test_a_header_cannot_ask_for_more_names_than_fit(tmp_path, monkeypatch):
    monkeypatch.setenv("LONGTAIL_MEMORY", "1G")
    with pytest.raises(NotEnoughMemory, match="naming the 100000000000 labels"):
        read(tmp_path, b"1 4 100000000000\n0 1\n")
    with pytest.raises(DataFormatError, match="the header says 100000000000 groups, but the file has 1"):
        read(tmp_path, b"100000000000 4 1\n0 1\n")


@given(st.binary(max_size=60).map(lambda rest: b"2 4 3\n" + rest))
@example(b"2 4 3\n" + b"1," * 50_000 + b"\n \n")
@example(b"2 4 3\n0" + b" 1" * 50_000 + b"x\n \n")
def test_any_bytes_are_groups_or_an_error_of_the_package(content):
    with tempfile.TemporaryDirectory() as folder:
        try:
            corpus = read(Path(folder), content)
        except LongtailError:
            return
    assert corpus.groups.shape == (4, 2)
    assert corpus.group_labels.shape == (2, 3)


@given(grouped_corpora(overlapping=True), st.sampled_from(["groups.txt", "groups.txt.gz"]))
def test_groups_come_back(corpus, name):
    numbered = replace(corpus, label_names=[f"label {i}" for i in range(corpus.n_labels)])
    with tempfile.TemporaryDirectory() as folder:
        write_groups(numbered, Path(folder) / name)
        found = read_groups(Path(folder) / name, numbered.union())
    assert_same_groups(numbered, found)


def test_counts_are_written_where_they_say_something(tmp_path):
    corpus = GroupedCorpus([[1, 0], [1, 1]], [[1, 3], [0, 0]], ["0", "1"], features=np.eye(2))
    write_groups(corpus, tmp_path / "groups.txt")
    assert (tmp_path / "groups.txt").read_bytes() == b"2 2 2\n0,1:3 0 1\n 1\n"
    assert [path.name for path in tmp_path.iterdir()] == ["groups.txt"]


def test_names_of_other_labels_are_not_overwritten(tmp_path):
    corpus = GroupedCorpus([[1]], [[1]], ["red"], features=np.eye(1))
    (tmp_path / "labels.txt").write_text("blue\n", encoding="utf-8")
    with pytest.raises(InvalidInput, match="have different label names"):
        write_groups(corpus, tmp_path / "groups.txt")
    assert not (tmp_path / "groups.txt").exists()
