"""DATA of commands: several files, columns, sheets, encodings and rows merged by id, driven as a user would."""

from __future__ import annotations

import json
from pathlib import Path

import openpyxl
import pyarrow as pa
import pytest
from pyarrow import parquet

CSV = "id,title,abstract,tags\n1,red apples,and pears,fruit|red\n2,green apples,,fruit\n3,blue sky,,weather\n"
COLUMNS = ("--text-column", "title,abstract", "--label-column", "tags")


@pytest.fixture
def more(tmp_path):
    """Files of several kinds beside notes.jsonl."""
    Path("notes.csv").write_text("id,text,labels\ng,red roses,red\nh,rain,weather\n", encoding="utf-8")
    parquet.write_table(pa.table({"id": ["i"], "text": ["pears"], "labels": [["fruit"]]}), "notes.parquet")
    book = openpyxl.Workbook()
    book.active.append(["id", "text", "labels"])
    book.active.append(["j", "a grey sky", "weather"])
    book.save("notes.xlsx")
    return ["notes.jsonl", "notes.csv", "notes.parquet", "notes.xlsx"]


def test_every_command_takes_several_files(longtail, more):
    trained = longtail("train", *more, "--out", "model", "--min-df", "1")
    assert trained.code == 0, trained.err
    assert "notes.jsonl, notes.csv, notes.parquet, notes.xlsx: 10 texts, 3 labels" in trained.err
    assert "source: " not in longtail("info", "model").err
    tagged = longtail("predict", "model", *more, "-k", "1")
    assert [json.loads(line)["id"] for line in tagged.out.splitlines()] == list("abcdefghij")
    measured = longtail("evaluate", "model", *more)
    assert measured.out.startswith("10 rows, 3 labels")
    assert "the model was trained on a file of this name, notes.jsonl" in measured.err
    assert longtail("prepare", *more, "--out", "prepared", "--min-df", "1").code == 0
    assert longtail("train", "prepared", "--out", "other", "--alpha", "0.1").code == 0


def test_options_go_to_the_files_that_have_them(longtail):
    Path("a.csv").write_text(CSV, encoding="utf-8")
    Path("b.jsonl").write_text('{"title": "grey sky", "tags": ["weather"], "id": 4}\n', encoding="utf-8")
    trained = longtail("train", "a.csv", "b.jsonl", "-o", "model", "--min-df", "1", *COLUMNS, "--label-separator", "|")
    assert "a.csv, b.jsonl: 4 texts, 3 labels" in trained.err
    assert longtail("predict", "model", "a.csv", "b.jsonl", *COLUMNS, "--label-separator", "|").code == 0
    refused = longtail("train", "a.csv", "b.jsonl", "-o", "other", "--sheet", "x")
    assert "--sheet does not apply to any of these files" in refused.err
    assert "--sheet does not apply to the format delimited" in longtail("train", "a.csv", "-o", "x", "--sheet", "y").err


@pytest.mark.parametrize(
    ("name", "content", "advice"),
    [
        ("a.csv", "caf\xe9,x\n".encode("cp1252"), "if this word is 'caf\xe9', add --encoding cp1252"),
        ("a.csv", b"red apples and green pears today,x\nb,y\n", "--no-header --text-column 0 --label-column 1"),
        ("a.csv", "a,b\n".encode("utf-16-le"), "add its encoding, such as --encoding utf-16-le"),
        ("a.txt", "text\tlabels\na\tx\n".encode("utf-16"), "use --format delimited"),
        ("a.xls", b"", "save it as .xlsx or as CSV"),
        ("a.xlsx", b"", "save it as CSV"),
        ("a.pdf", b"", "copy its texts out"),
    ],
)
def test_refusals_say_what_to_do(longtail, name, content, advice):
    Path(name).write_bytes(content)
    refused = longtail("train", name, "--out", "model")
    assert refused.code != 0
    assert name in refused.err
    assert advice in " ".join(refused.err.split())


def test_what_is_advised_works(longtail):
    Path("a.csv").write_bytes("red caf\xe9s and green pears today,x\nb c,y\n".encode("cp1252"))
    columns = ("--no-header", "--text-column", "0", "--label-column", "1", "--min-df", "1")
    assert longtail("train", "a.csv", "--out", "model", "--encoding", "cp1252", *columns).code == 0
    Path("b.txt").write_bytes("red caf\xe9s\n".encode("cp1252"))
    assert longtail("predict", "model", "b.txt", "--plain", "--encoding", "cp1252", "-k", "1").code == 0
    assert "add --encoding cp1252" in longtail("predict", "model", "b.txt", "--plain").err


def test_rows_are_merged_by_id(longtail):
    Path("tags.csv").write_text("doc,text,labels\n1,red apple,red\n1,red apple,fruit\n2,blue sky,sky\n", "utf-8")
    merged = longtail("train", "tags.csv", "-o", "m", "--min-df", "1", "--id-column", "doc", "--merge-by", "id")
    assert "tags.csv: 2 texts, 3 labels, 1.5 labels per row" in merged.err
    assert len(longtail("predict", "m", "tags.csv", "--id-column", "doc", "--merge-by", "id").out.splitlines()) == 2
    noticed = longtail("train", "tags.csv", "-o", "n", "--min-df", "1", "--id-column", "doc")
    assert "--merge-by id" in noticed.err
    assert "name the column of the ids: --id-column" in longtail("train", "tags.csv", "-o", "o", "--merge-by", "id").err
    assert "--merge-by needs files" in longtail("train", "-", "-o", "p", "--merge-by", "id").err
    assert (
        longtail("prepare", "tags.csv", "-o", "q", "--min-df", "1", "--id-column", "doc", "--merge-by", "id").code == 0
    )


def test_what_cannot_be_combined_is_refused(longtail):
    assert "cannot be combined with files" in longtail("train", "notes.jsonl", "-", "-o", "m").err
    assert "rows.txt is not a file of texts" in longtail("train", "notes.jsonl", "rows.txt", "-o", "m").err
    groups = longtail("train", "notes.jsonl", "notes.jsonl", "-o", "m", "--group-column", "page")
    assert "labels of groups come from one file" in groups.err
