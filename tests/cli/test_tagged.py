"""`predict --out`: files for other programs, with the columns of the input, that can be trained on again."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd
import pytest

import longtail as library
from longtail.data import read_corpus
from longtail.parallel import resolve_jobs

SHEET = "id,body,year\r\na,red apples,2001\r\nb,grey sky,2002\r\nc,=green pears,\r\n"


def table(path: str) -> list[list[str]]:
    with open(path, encoding="utf-8-sig", newline="") as stream:
        return list(csv.reader(stream))


@pytest.fixture
def sheet() -> list[str]:
    Path("sheet.csv").write_text(SHEET, encoding="utf-8", newline="")
    return ["sheet.csv", "--text-column", "body"]


@pytest.mark.parametrize("name", ["tags.csv", "tags.tsv", "tags.jsonl", "tags.csv.gz", "tags.parquet"])
def test_a_model_can_be_trained_on_what_predict_writes(longtail: Callable, model: str, name: str) -> None:
    assert longtail("predict", model, "notes.jsonl", "-k", "2", "--out", name).code == 0
    assert longtail("train", name, "--out", "again", "--min-df", "1").code == 0
    options = {"unknown": "ignore"} if "jsonl" in name else {}
    corpus = read_corpus(name, **options)
    assert corpus.row_names == ["a", "b", "c", "d", "e", "f"]
    tags = library.load(model).tag(corpus.texts, 2)
    assert [set(row.indices) for row in corpus.labels] == [
        {corpus.label_names.index(tag.label) for tag in row} for row in tags
    ]


def test_the_columns_of_a_table_are_kept(longtail: Callable, model: str, sheet: list[str]) -> None:
    result = longtail("predict", model, *sheet, "-k", "1", "--out", "tags.csv", "--keep-columns")
    assert (result.code, result.err) == (0, "wrote tags.csv: 3 rows\n")
    rows = table("tags.csv")
    assert rows[0] == ["id", "body", "year", "labels", "scores"]
    assert [row[:4] for row in rows[1:]] == [
        ["a", "red apples", "2001", "red"],
        ["b", "grey sky", "2002", "weather"],
        ["c", "'=green pears", "", "fruit"],
    ]


def test_a_record_for_each_tag(longtail: Callable, model: str, sheet: list[str]) -> None:
    longtail("predict", model, *sheet, "-k", "2", "--out", "tags.csv", "--keep-columns", "--layout", "tag")
    rows = table("tags.csv")
    assert rows[0] == ["id", "body", "year", "rank", "label", "score"]
    assert [row[0] + row[3] for row in rows[1:]] == ["a1", "a2", "b1", "b2", "c1", "c2"]


def test_the_keys_of_json_lines_are_kept(longtail: Callable, model: str) -> None:
    longtail("predict", model, "notes.jsonl", "-k", "1", "--out", "tags.jsonl", "--keep-columns")
    first = json.loads(Path("tags.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert list(first) == ["id", "text", "labels", "predicted_labels", "scores"]
    assert (first["labels"], first["predicted_labels"]) == (["fruit", "red"], ["fruit"])


def test_rows_of_features_have_no_text(longtail: Callable, feature_model: str) -> None:
    longtail("predict", feature_model, "rows.txt", "-k", "1", "--out", "tags.csv")
    assert table("tags.csv")[0] == ["id", "labels", "scores"]


def test_prepared_rows_have_no_text(longtail: Callable, model: str) -> None:
    assert longtail("prepare", "notes.jsonl", "--out", "prepared", "--min-df", "1").code == 0
    assert longtail("train", "prepared", "--out", "prepared-model", "--alpha", "0.1").code == 0
    longtail("predict", "prepared-model", "prepared", "-k", "1", "--out", "tags.csv")
    assert [row[0] for row in table("tags.csv")] == ["id", "a", "b", "c", "d", "e", "f"]
    assert table("tags.csv")[0] == ["id", "labels", "scores"]


def test_the_separator_of_labels_can_be_chosen(longtail: Callable, model: str) -> None:
    longtail("predict", model, "notes.jsonl", "-k", "2", "--out", "tags.csv", "--label-separator", " | ")
    assert all(" | " in row[2] for row in table("tags.csv")[1:])
    refused = longtail("predict", model, "notes.jsonl", "--out", "tags.tsv", "--label-separator", "ea")
    assert refused.err == (
        "error: labels contain 'ea', such as 'weather', so it cannot separate them; choose another one with "
        "--label-separator, or --layout tag, or a .jsonl or .parquet file\n"
    )
    assert not Path("tags.tsv").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "error"),
    [
        (["-", "--out", "t.csv", "--keep-columns"], 1, "looks at DATA twice, so it cannot be standard input"),
        (["rows.txt", "--out", "t.csv", "--keep-columns"], 1, "rows.txt has no columns that can be kept"),
        (["--text", "a", "--out", "t.csv", "--keep-columns"], 1, "there are no columns to keep"),
        (["notes.jsonl", "--keep-columns"], 2, "--keep-columns is for files; give --out FILE"),
        (["notes.jsonl", "--layout", "tag"], 2, "--layout is for files; give --out FILE"),
        (["notes.jsonl", "--out", "t.csv", "--output", "table"], 2, "a table can only be printed"),
        (["notes.jsonl", "--out", "t.xlsx"], 1, "Excel opens .csv files"),
        (["notes.jsonl", "--jobs", "0"], 1, "n_jobs is 0"),
    ],
)
def test_what_does_not_go_together(longtail: Callable, model: str, arguments: list[str], code: int, error: str) -> None:
    result = longtail("predict", model, *arguments)
    assert result.code == code
    assert error in result.err
    assert not list(Path().glob("t.*"))


def test_a_fault_far_into_the_data_leaves_the_old_file(longtail: Callable, model: str) -> None:
    Path("in.csv").write_text("text\n" + "red apples\n" * 2000 + "a,b\n", encoding="utf-8")
    Path("tags.csv").write_text("old", encoding="utf-8")
    for keep in ([], ["--keep-columns"]):
        result = longtail("predict", model, "in.csv", "--out", "tags.csv", *keep)
        assert "in.csv:2002: 2 columns, expected 1" in result.err
        assert Path("tags.csv").read_text(encoding="utf-8") == "old"
    assert not list(Path().glob("*.part"))


def test_the_number_of_threads_changes_nothing_else(
    longtail: Callable, tree_model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []

    class Counted(ThreadPoolExecutor):
        def __init__(self, threads: int) -> None:
            started.append(threads)
            super().__init__(threads)

    monkeypatch.setattr("longtail.parallel.ThreadPoolExecutor", Counted)
    Path("texts.txt").write_text("red apples and rain\n" * 512, encoding="utf-8")
    before = Path(tree_model, "manifest.json").read_bytes()
    three = longtail("predict", tree_model, "texts.txt", "--plain", "--jobs", "3").out
    assert set(started) == {3}
    assert longtail("predict", tree_model, "texts.txt", "--plain").out == three
    assert Path(tree_model, "manifest.json").read_bytes() == before


def test_the_service_takes_a_number_of_threads(longtail: Callable, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fastapi")
    used: list[int] = []
    monkeypatch.setattr("longtail.serve.run", lambda *_, **__: used.append(resolve_jobs(1)))
    assert longtail("serve", model, "--jobs", "3").code == 0
    assert (used, resolve_jobs(1)) == ([3], 1)


@pytest.mark.parametrize("name", ["sheet.parquet", "sheet.arrow", "sheet.xlsx"])
def test_the_columns_of_other_tables_are_kept(longtail: Callable, model: str, name: str) -> None:
    frame = pd.DataFrame({"id": ["a", "b"], "body": ["red apples", "grey sky"], "year": [2001, 2002]})
    writers = {".parquet": frame.to_parquet, ".arrow": frame.to_feather}
    if name.endswith(".xlsx"):
        frame.to_excel(name, index=False)
    else:
        writers[Path(name).suffix](name)
    options = [name, "--text-column", "body", "-k", "1", "--keep-columns"]
    result = longtail("predict", model, *options, "--out", "tags.csv")
    assert (result.code, result.err) == (0, "wrote tags.csv: 2 rows\n")
    assert [row[:4] for row in table("tags.csv")] == [
        ["id", "body", "year", "labels"],
        ["a", "red apples", "2001", "red"],
        ["b", "grey sky", "2002", "weather"],
    ]
    assert longtail("predict", model, *options, "--out", "tags.parquet").code == 0
    assert read_corpus("tags.parquet", text="body").row_names == ["a", "b"]


def test_columns_of_several_files_are_not_kept(longtail: Callable, model: str, sheet: list[str]) -> None:
    Path("more.csv").write_text("body\ngreen pears\n", encoding="utf-8")
    result = longtail("predict", model, *sheet, "more.csv", "--out", "tags.csv", "--keep-columns")
    assert result.code != 0
    assert "--keep-columns keeps the columns of one file" in result.err
    result = longtail("predict", model, *sheet, "more.csv", "--out", "tags.csv")
    assert (result.code, result.err) == (0, "wrote tags.csv: 4 rows\n")


def test_rows_without_a_tag_are_counted_where_each_tag_is_a_record(longtail: Callable, model: str) -> None:
    Path("two.csv").write_text("text\nred apples\nnothing known\n")
    told = longtail(
        "predict", model, "two.csv", "-k", "1", "--threshold", "0.3", "--out", "t.csv", "--layout", "tag"
    ).err
    assert told == "wrote t.csv: 2 rows, 1 without a tag and a record\n"
