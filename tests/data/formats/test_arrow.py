"""Parquet and Arrow files: columns, kinds of labels, rows at a time, and damage."""

from __future__ import annotations

import contextlib
import sys

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from longtail.data import Corpus, iter_batches, iter_records, read_arrow, read_corpus
from longtail.errors import DataFormatError, InvalidInput, NotEnoughMemory, Unavailable
from longtail.memory import limit
from tests.data.corpora import rows_of

TABLE = pa.table(
    {
        "title": ["a red apple", "a blue sky", "rain"],
        "text": ["it is red", "", "it is wet"],
        "labels": [["fruit", "red"], ["sky"], []],
        "id": [7, 8, 9],
    }
)
EXPECTED = [("it is red", ["fruit", "red"]), ("", ["sky"]), ("it is wet", [])]


def write(table, path):
    if path.suffix == ".parquet":
        parquet.write_table(table, path, row_group_size=2)
    elif path.suffix == ".arrows":
        with pa.ipc.new_stream(path, table.schema) as stream:
            stream.write_table(table)
    else:
        feather.write_feather(table, str(path))
    return path


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.feather", "a.ipc", "a.arrows"])
def test_texts_labels_and_ids_are_read(tmp_path, name):
    corpus = read_corpus(write(TABLE, tmp_path / name))
    assert rows_of(corpus) == EXPECTED
    assert list(corpus.row_names) == ["7", "8", "9"]


def test_the_content_says_which_format_it_is(tmp_path):
    write(TABLE, tmp_path / "a.parquet").rename(tmp_path / "a.arrow")
    assert rows_of(read_corpus(tmp_path / "a.arrow")) == EXPECTED


@pytest.mark.parametrize(
    "labels",
    [
        pa.array(["x; y", "y", None]),
        pa.array([["x", "y"], ["y", None], None]),
        pa.array([["x", "y"], ["y"], []], pa.large_list(pa.string_view())),
        pa.array(["x;y", "y", ""]).dictionary_encode(),
        pa.array(["['x', 'y']", "['y']", "[]"]),
    ],
    ids=["text", "list", "large list", "dictionary", "written lists"],
)
@pytest.mark.filterwarnings("ignore:.*missing")
def test_labels_are_lists_or_texts(tmp_path, labels):
    write(pa.table({"text": ["a", "b", "c"], "labels": labels}), tmp_path / "a.parquet")
    assert [found for _, found in rows_of(read_corpus(tmp_path / "a.parquet"))] == [["x", "y"], ["y"], []]


def test_numbers_of_labels_are_their_names(tmp_path):
    write(pa.table({"text": ["a", "b"], "labels": [3, 12]}), tmp_path / "a.parquet")
    assert read_corpus(tmp_path / "a.parquet").label_names == ("12", "3")


def test_columns_are_chosen_and_joined(tmp_path):
    path = write(TABLE, tmp_path / "a.parquet")
    corpus = read_corpus(path, text="title,text", labels=None, id="title")
    assert corpus.texts == ["a red apple\nit is red", "a blue sky", "rain\nit is wet"]
    assert list(corpus.row_names) == ["a red apple", "a blue sky", "rain"]
    assert corpus.labels.shape == (3, 0)
    assert read_arrow(path, text=0, labels="labels").texts == ["a red apple", "a blue sky", "rain"]
    with pytest.raises(DataFormatError, match="no column is named 'body'; the columns are 'title', 'text'"):
        read_corpus(path, text="body")


def test_missing_cells_are_counted_in_a_warning(tmp_path):
    write(pa.table({"text": ["a", None, None], "labels": [["x"], None, ["y"]]}), tmp_path / "a.parquet")
    with pytest.warns(UserWarning, match=r"a\.parquet: 2 texts and 1 cell of labels are missing \(null"):
        corpus = read_corpus(tmp_path / "a.parquet")
    assert rows_of(corpus) == [("a", ["x"]), ("", []), ("", ["y"])]


def test_rows_are_streamed(tmp_path):
    n_rows = 3000
    table = pa.table({"text": [f"text {i}" for i in range(n_rows)], "labels": [["x"]] * n_rows})
    for name in ("a.parquet", "a.arrow", "a.arrows"):
        records = iter_records(write(table, tmp_path / name))
        assert next(records).line == 1
        assert sum(1 for _ in records) == n_rows - 1
    assert [len(batch.rows) for batch in iter_batches(tmp_path / "a.parquet", n_rows=2000)] == [2000, 1000]


@pytest.mark.parametrize("column", [pa.array([b"a"]), pa.array([[1]]), pa.array([{"a": 1}])])
def test_cells_that_are_no_texts_are_refused_with_their_row(tmp_path, column):
    write(pa.table({"text": column, "labels": [["x"]]}), tmp_path / "a.parquet")
    with pytest.raises(DataFormatError, match=r"a\.parquet:1: the column 'text' holds .*; expected a text"):
        read_corpus(tmp_path / "a.parquet")


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.arrows"])
def test_damaged_files_are_errors(tmp_path, name):
    content = write(TABLE, tmp_path / name).read_bytes()
    rng = np.random.default_rng(0)
    for cut in (0, 3, 7, 50, len(content) // 2, len(content) - 1):
        (tmp_path / name).write_bytes(content[:cut])
        with pytest.raises(DataFormatError):
            read_corpus(tmp_path / name)
    for _ in range(60):
        damaged = bytearray(content)
        damaged[rng.integers(len(damaged))] = rng.integers(256)
        (tmp_path / name).write_bytes(damaged)
        with contextlib.suppress(InvalidInput, DataFormatError, NotEnoughMemory):
            assert isinstance(read_corpus(tmp_path / name), Corpus)


def test_other_files_are_refused_with_advice(tmp_path):
    for content, reason in (
        (b"FEA1 old", "first version of Feather"),
        (b"\x1f\x8b zipped", "is gzipped; unzip it"),
        (b"text\tlabels\n", "looks like text; if it is a table, name it .csv"),
        (b"", "the file is empty"),
    ):
        (tmp_path / "a.feather").write_bytes(content)
        with pytest.raises(DataFormatError, match=reason):
            read_corpus(tmp_path / "a.feather")
    with pytest.raises(DataFormatError, match="cannot be opened: No such file"):
        read_corpus(tmp_path / "none.parquet")


def test_columns_that_do_not_fit_into_memory_are_refused(tmp_path):
    path = write(pa.table({"text": ["a" * 10_000_000], "labels": ["x"]}), tmp_path / "a.parquet")
    with limit("1M"), pytest.raises(NotEnoughMemory, match="smaller row groups"):
        read_corpus(path)


def test_without_pyarrow_the_error_says_what_to_install(tmp_path, monkeypatch):
    path = write(TABLE, tmp_path / "a.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(Unavailable, match=r"pip install 'longtail\[arrow\]'") as caught:
        read_corpus(path)
    assert caught.value.name == "pyarrow"
