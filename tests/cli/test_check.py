"""`longtail check`, and the short form at the start of `train`, driven as a user would."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

MESSY = """\
id,text,labels
1,the invoice was paid twice,billing
2,refund for a wrong invoice,Billing
3,login fails with a wrong password,login
4,The invoice was  paid twice,login; mail
4,password reset mail never arrives,login; mail
6,invoice mail arrives twice,billing; mail
7,,mail
8,caf\u00c3\u00a9 invoice &amp; tip,billing
9,where is my parcel,
10,password lost again,pasword
11,a bill in the mail,"billing, mail"
"""
TEST = "text,labels\nrefund for a wrong invoice,billing\nnew one,shipping\n"


@pytest.fixture(autouse=True)
def _messy(tmp_path: Path) -> None:
    (tmp_path / "messy.csv").write_text(MESSY, encoding="utf-8", newline="\n")
    (tmp_path / "test.csv").write_text(TEST, encoding="utf-8", newline="\n")


def test_what_is_found_in_messy_data(longtail: Callable, check_golden: Callable) -> None:
    result = longtail("check", "messy.csv", "--test", "test.csv")
    assert (result.code, result.err) == (0, "")
    check_golden("check", result.out)


def test_good_data_and_features(longtail: Callable, check_golden: Callable) -> None:
    check_golden("check-good", longtail("check", "notes.jsonl").out)
    check_golden("check-features", longtail("check", "rows.txt").out)


def test_standard_input_is_the_same_as_the_file(longtail: Callable) -> None:
    content = Path("notes.jsonl").read_bytes()
    assert longtail("check", "-", stdin=content).out == longtail("check", "notes.jsonl").out


def test_a_prepared_corpus_can_be_checked(longtail: Callable) -> None:
    assert longtail("prepare", "notes.jsonl", "--out", "prepared", "--min-df", "1").code == 0
    assert longtail("check", "prepared").out.startswith("6 rows of features, 3 labels, ")


def test_json_and_the_number_of_examples(longtail: Callable) -> None:
    found = json.loads(longtail("check", "messy.csv", "--json", "--examples", "1").out)
    assert found["rows"] == 11
    assert all(len(finding["examples"]) <= 1 for finding in found["findings"])
    [ids] = [finding for finding in found["findings"] if finding["code"] == "duplicate_ids"]
    assert ids["examples"] == [{"lines": [5, 6], "what": ""}]


def test_the_page(longtail: Callable) -> None:
    result = longtail("check", "messy.csv", "-o", "page.html")
    assert result.err == "wrote page.html; open it in a browser\n"
    assert result.out.startswith("11 rows, 6 labels")
    assert "conflicting_duplicates" in Path("page.html").read_text(encoding="utf-8")
    assert longtail("check", "messy.csv", "-o", "page.html").err.startswith("replaced page.html")
    Path("page.html").write_text("mine", encoding="utf-8")
    assert "exists and is not a report" in longtail("check", "messy.csv", "-o", "page.html").err
    assert longtail("check", "messy.csv", "-o", "page.html", "--force").code == 0


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (
            ["messy.csv", "-o", "page.pdf"],
            "pages are written as .html or .htm, not as page.pdf: write an .html file, open it in a browser and print",
        ),
        (["messy.csv", "--test", "rows.txt"], "the rows have texts, but the test rows have features"),
        (["missing.csv"], "there is no file missing.csv"),
        (["messy.csv", "--label-column", "tags"], "no column is named 'tags'"),
        (["empty.jsonl"], "there are no rows to check"),
        (["groups.jsonl"], "these are groups, not rows: check the rows that `longtail assign` writes"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_checked(longtail: Callable, arguments: list[str], error: str) -> None:
    Path("empty.jsonl").write_text("", encoding="utf-8")
    Path("groups.jsonl").write_text('{"texts": ["a", "b"], "labels": ["c"]}\n', encoding="utf-8")
    result = longtail("check", *arguments)
    assert result.code == 1
    assert error in result.err


def test_training_tells_what_matters_in_a_few_lines(longtail: Callable) -> None:
    told = longtail("train", "messy.csv", "--out", "m", "--min-df", "1").err.splitlines()
    assert told[:5] == [
        "messy.csv: 11 texts, 6 labels, 1.2 labels per row",
        "note: 1 row has no label",
        "note: 1 text is empty",
        "note: 1 row repeats the text of another row, with other labels",
        "note: 4 more findings: `longtail check messy.csv` shows examples and says what to do",
    ]
    assert longtail("--quiet", "train", "messy.csv", "--out", "m", "--min-df", "1", "--force").err == ""


def test_training_names_a_command_that_reads_the_data_as_it_does(longtail: Callable) -> None:
    Path("my notes.csv").write_text("t;l\nred apple;x,y\ngrey sky;\n", encoding="utf-8")
    options = ["--text-column", "t", "--label-column", "l", "--label-separator", ","]
    told = longtail("train", "my notes.csv", *options, "--out", "m", "--min-df", "1").err.splitlines()
    [command] = [line.split("`")[1] for line in told if "longtail check" in line]
    assert command == f"longtail check 'my notes.csv' {' '.join(options)}"


def test_training_on_good_data_tells_nothing(longtail: Callable) -> None:
    assert "note: " not in longtail("train", "notes.jsonl", "--out", "m", "--min-df", "1").err


def test_several_files_are_checked_as_one(longtail: Callable) -> None:
    found = json.loads(longtail("check", "messy.csv", "test.csv", "--json").out)
    assert (found["rows"], found["unit"]) == (13, "line")
    [copies] = [finding for finding in found["findings"] if finding["code"] == "conflicting_duplicates"]
    assert {"lines": [3, 2], "what": "", "files": ["messy.csv", "test.csv"]} in copies["examples"]


def test_lines_in_several_files_are_told_with_their_files(longtail: Callable, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    for path, rows in (("a.csv", '1,"red\napple",x\n2,sky,y\n'), ("old/b.csv", "3,RED apple,z\n4,rain,nan\n")):
        Path(path).write_text(f"id,text,labels\n{rows}", encoding="utf-8")
    Path("test.jsonl").write_text('{"text": "Rain", "labels": ["y"]}\n', encoding="utf-8")
    result = longtail("check", "a.csv", "old/b.csv", "--test", "test.jsonl", "-o", "page.html").out
    page = Path("page.html").read_text(encoding="utf-8")
    for place in ("a.csv:2, b.csv:2", "b.csv:3: 'nan' (1 row)", "test.jsonl:1: the same as b.csv:3 of the training"):
        assert f"  {place}" in result
        assert place.replace("'", "&#x27;") in page
    Path("old/a.csv").write_text("text,labels\nsky,y\n", encoding="utf-8")
    assert "  a.csv:4, old/a.csv:2\n" in longtail("check", "a.csv", "old/a.csv").out


def test_rows_are_merged_by_id(longtail: Callable) -> None:
    Path("rows.csv").write_text("id,text,labels\n1,red apple,red\n1,red apple,fruit\n2,sky,blue\n", encoding="utf-8")
    assert "--merge-by id" in longtail("check", "rows.csv").out
    result = longtail("check", "rows.csv", "--merge-by", "id")
    assert result.out.startswith("2 rows, 3 labels")
    assert "duplicate" not in result.out
