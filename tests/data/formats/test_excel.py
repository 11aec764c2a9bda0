"""Workbooks: sheets, kinds of cells, wrong dimensions, and files that are no workbook or a bomb."""

from __future__ import annotations

import contextlib
import datetime
import sys
import zipfile

import numpy as np
import openpyxl
import pytest

from longtail.data import iter_records, read_corpus, read_excel
from longtail.errors import DataFormatError, InvalidInput, NotEnoughMemory, Unavailable
from longtail.memory import limit
from tests.data.corpora import rows_of


def save(path, *sheets):
    """Write a workbook with the given rows in each sheet."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for number, rows in enumerate(sheets, start=1):
        sheet = book.create_sheet(f"Sheet{number}")
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


NOTES = [
    ["id", "title", "text", "labels", None],
    [1, "Apple", "a red apple", "fruit; red", None],
    [2.0, None, "line\nbreak", 2024, None],
    [],
    [None, None, None, None, " "],
    [3, datetime.date(2024, 2, 29), 7.5, None, "a note"],
]


def test_rows_are_read_as_a_csv_file_would_have_them(tmp_path):
    path = save(tmp_path / "notes.xlsx", [[], *NOTES])
    corpus = read_corpus(path)
    assert rows_of(corpus)[:2] == [("a red apple", ["fruit", "red"]), ("line\nbreak", ["2024"])]
    assert rows_of(corpus)[-1] == ("7.5", [])
    assert list(corpus.row_names)[:2] == ["1", "2"]
    records = list(iter_records(path, text="title,text"))
    assert (records[0].line, records[0].text) == (3, "Apple\na red apple")
    assert records[-1].text == "2024-02-29 00:00:00\n7.5"


def test_a_sheet_is_chosen_by_name(tmp_path):
    path = save(tmp_path / "a.xlsx", [["text", "labels"], ["one", "x"]], [["text", "labels"], ["two", "y"]], [])
    assert read_corpus(path).texts == ["one"]
    assert read_excel(path, sheet="Sheet2").texts == ["two"]
    with pytest.raises(DataFormatError, match="no sheet 'Sheet9'; the sheets are 'Sheet1', 'Sheet2', 'Sheet3'"):
        read_excel(path, sheet="Sheet9")
    with pytest.raises(DataFormatError, match="the sheet is empty"):
        read_excel(path, sheet="Sheet3")


def test_a_sheet_without_names_of_columns_has_numbers(tmp_path):
    path = save(tmp_path / "a.xlsx", [["red apples and pears in the garden", "fruit"], ["a grey sky"]])
    assert rows_of(read_corpus(path, text=0, labels=1, header=False))[1] == ("a grey sky", [])
    with pytest.raises(DataFormatError, match="the first line looks like data") as caught:
        read_corpus(path)
    assert (caught.value.code, caught.value.found) == ("headerless", ("0", "1"))


def test_wrong_dimensions_are_not_believed(tmp_path):
    path = save(tmp_path / "a.xlsx", [["text", "labels"], ["one", "x"], ["two", "y"]])
    _change(path, "xl/worksheets/sheet1.xml", lambda xml: xml.replace(b'ref="A1:B3"', b'ref="A1"'))
    assert read_corpus(path).texts == ["one", "two"]


def _change(path, name, change):
    with zipfile.ZipFile(path) as before:
        parts = {each: before.read(each) for each in before.namelist()}
    parts[name] = change(parts[name])
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as after:
        for each, content in parts.items():
            after.writestr(each, content)


def test_hostile_workbooks_are_refused(tmp_path):
    rows = [["text", "labels"], ["one", "x"]]
    path = save(tmp_path / "a.xlsx", rows)
    _change(path, "xl/worksheets/sheet1.xml", lambda xml: xml.replace(b'<row r="2"', b'<row r="999999999"'))
    with pytest.raises(DataFormatError, match="more than 1,048,576 rows"):
        read_corpus(path)
    for change in (
        lambda xml: b'<!DOCTYPE x [<!ENTITY a "b"><!ENTITY c "&a;&a;">]>' + xml.partition(b"?>")[2],
        lambda xml: xml[: len(xml) // 2],
        lambda xml: xml.replace(b't="inlineStr"><is><t>one</t></is>', b't="s"><v>300</v>'),
        lambda xml: xml.replace(b'r="A2"', b'r="ZZZZZZ2"'),
    ):
        save(path, rows)
        _change(path, "xl/worksheets/sheet1.xml", change)
        with pytest.raises(DataFormatError, match=r"the workbook is damaged .* save it as CSV"):
            read_corpus(path)


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr("longtail.data.formats.excel._SMALL", 2**20)
    path = save(tmp_path / "a.xlsx", [["text", "labels"], ["one", "x"]])
    _change(path, "xl/worksheets/sheet1.xml", lambda xml: xml + bytes(2**23))
    with pytest.raises(DataFormatError, match=r"the workbook unpacks to 8,\d+,\d+ bytes in \d+ parts"):
        read_corpus(path)
    save(path, [["text", "labels"], ["one", "x"]])
    with zipfile.ZipFile(path, "a") as parts:
        parts.writestr("xl/sharedStrings.xml", bytes(2**19))
    with limit("1M"), pytest.raises(NotEnoughMemory, match="Save it as CSV"):
        read_corpus(path)


def test_what_is_no_workbook_is_refused_with_advice(tmp_path):
    path = tmp_path / "a.xlsx"
    for content, reason in (
        (b"text,labels\n", "not a whole .xlsx workbook .*; if it is a text file, name it .csv, else save it as CSV"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "has a password or the old format .xls"),
        (b"", "not a whole .xlsx workbook"),
    ):
        path.write_bytes(content)
        with pytest.raises(DataFormatError, match=reason):
            read_corpus(path)
    with pytest.raises(DataFormatError, match="cannot be opened"):
        read_corpus(tmp_path / "none.xlsx")


def test_damage_anywhere_is_an_error_or_harmless(tmp_path):
    content = save(tmp_path / "a.xlsx", [["text", "labels"], ["one", "x"]]).read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(60):
        damaged = bytearray(content)
        damaged[rng.integers(len(damaged))] ^= int(rng.integers(1, 256))
        (tmp_path / "b.xlsx").write_bytes(damaged)
        with contextlib.suppress(DataFormatError, InvalidInput):
            assert read_corpus(tmp_path / "b.xlsx").n_rows <= 1


@pytest.mark.parametrize("package", ["openpyxl", "defusedxml"])
def test_without_openpyxl_the_error_says_how_to_save_as_csv(tmp_path, monkeypatch, package):
    path = save(tmp_path / "a.xlsx", [["text", "labels"]])
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(Unavailable, match=r"pip install 'longtail\[excel\]', or save the sheet as CSV") as caught:
        read_corpus(path)
    assert caught.value.name == package


def test_a_hidden_sheet_is_not_read_and_other_sheets_are_told(tmp_path):
    path = save(tmp_path / "a.xlsx", [["text", "labels"], ["old", "x"]], [["text", "labels"], ["one", "x"]], [["a"]])
    book = openpyxl.load_workbook(path)
    book["Sheet1"].sheet_state = "hidden"
    book.save(path)
    with pytest.warns(UserWarning, match=r"'Sheet2' is read; choose another \('Sheet3'\) with sheet="):
        assert read_corpus(path).texts == ["one"]
    assert read_corpus(path, sheet="Sheet1").texts == ["old"]


def test_merged_cells_in_several_rows_are_told(tmp_path):
    path = save(tmp_path / "a.xlsx", [["text", "labels"], ["one", "x"], ["two", None], ["three", "y"], ["four", None]])
    book = openpyxl.load_workbook(path)
    for cells in ("C1:D1", "B2:B3", "B4:B5"):
        book.active.merge_cells(cells)
    book.save(path)
    with pytest.warns(UserWarning, match="2 merged cells in several rows, such as B2:B3: only the first row has the"):
        read_corpus(path)


def test_a_workbook_is_read_whatever_its_name(tmp_path):
    path = save(tmp_path / "a.csv", [["text", "labels"], ["one", "x"]])
    assert read_corpus(path, "excel").texts == ["one"]
