"""Original fields: all columns in their order, whatever their names, and only of files that have columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from longtail.data import read_originals
from longtail.errors import DataFormatError, InvalidInput


def test_columns_have_distinct_names(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("text,x,,x\na,1,2,3\n", encoding="utf-8")
    found = read_originals(path, labels=None)
    assert [column.name for column in found.columns] == ["text", "x", "column 3", "x (2)"]
    [(record, fields)] = found.rows
    assert (record.text, fields) == ("a", ["a", "1", "2", "3"])


def test_a_file_without_a_header_has_numbered_columns(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("a,1\n", encoding="utf-8")
    found = read_originals(path, text=0, labels=None, header=False)
    assert [column.name for column in found.columns] == ["column 1", "column 2"]
    assert [fields for _, fields in found.rows] == [["a", "1"]]


def test_rows_are_read_one_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("text\na\nb,too many\n", encoding="utf-8")
    rows = read_originals(path, labels=None).rows
    assert next(rows)[0].text == "a"
    with pytest.raises(DataFormatError, match=":3: 2 columns"):
        next(rows)


def test_features_have_no_columns(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as raised:
        read_originals(tmp_path / "rows.txt")
    assert raised.value.code == "no_columns"


def test_an_empty_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "in.csv").touch()
    with pytest.raises(DataFormatError, match="the file is empty"):
        read_originals(tmp_path / "in.csv")
