"""Original fields: all columns in their order, whatever their names, and only of files that have columns."""

from __future__ import annotations

import datetime
from pathlib import Path

import openpyxl
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

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


def test_rows_that_end_in_empty_fields_have_the_width_of_the_first_line(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("text,x,\na,1\nb,2,,,\n", encoding="utf-8")
    found = read_originals(path, labels=None)
    assert [column.name for column in found.columns] == ["text", "x", "column 3"]
    assert [fields for _, fields in found.rows] == [["a", "1", ""], ["b", "2", ""]]


def test_encodings_hold_for_names_and_fields(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_bytes("text,caf\u00e9\na,\u00e9\n".encode("cp1252"))
    (tmp_path / "in.jsonl").write_bytes('{"text": "a", "caf\u00e9": "\u00e9"}\n'.encode("cp1252"))
    found = read_originals(tmp_path / "in.csv", labels=None, encoding="cp1252")
    assert [found.columns[1].name, *(fields[1] for _, fields in found.rows)] == ["caf\u00e9", "\u00e9"]
    found = read_originals(tmp_path / "in.jsonl", require_labels=False, unknown="ignore", encoding="cp1252")
    assert [found.columns[1].name, *(fields[1] for _, fields in found.rows)] == ["caf\u00e9", "\u00e9"]


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_kinds_of_arrow_columns(tmp_path: Path, name: str) -> None:
    table = pa.table(
        {
            "text": ["a", "b"],
            "n": [1, None],
            "share": [0.5, float("nan")],
            "day": [datetime.date(2024, 2, 29), None],
            "kind": pa.array(["x", "y"]).dictionary_encode(),
            "names": [["x"], []],
            "nested": [{"a": [1]}, None],
        }
    )
    if name.endswith("parquet"):
        parquet.write_table(table, tmp_path / name)
    else:
        feather.write_feather(table, str(tmp_path / name))
    found = read_originals(tmp_path / name, labels=None)
    assert [column.kind for column in found.columns] == ["text", "whole", "number", "text", "text", "texts", "json"]
    assert [fields for _, fields in found.rows] == [
        ["a", 1, 0.5, "2024-02-29", "x", ["x"], {"a": [1]}],
        ["b", None, None, None, "y", [], None],
    ]


def test_bytes_are_not_kept(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"text": ["a"], "picture": [b"1"]}), tmp_path / "a.parquet")
    found = read_originals(tmp_path / "a.parquet", labels=None)
    with pytest.raises(InvalidInput, match="'picture' holds bytes"):
        list(found.rows)


def test_cells_of_a_sheet_beyond_the_named_columns_are_not_lost(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for row in (["text", "year"], ["a red apple", 2024], ["a blue sky", 2025, "a note"]):
        book.active.append(row)
    book.save(tmp_path / "in.xlsx")
    rows = read_originals(tmp_path / "in.xlsx", labels=None).rows
    assert next(rows)[1] == ["a red apple", "2024"]
    with pytest.raises(DataFormatError, match=r"in\.xlsx:3: the row has cells beyond the last of 2 col.*; name"):
        next(rows)
