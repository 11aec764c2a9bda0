"""`longtail report`, driven as a user would."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest


def plain(page: str) -> str:
    """The text of a page, an element to a line."""
    body = re.sub(r"<style>.*?</style>|<svg.*?</svg>", "", page, flags=re.DOTALL)
    body = re.sub(r"</?(bdi|b|small|span|time|wbr)\b[^>]*>", "", body)
    lines = [" ".join(unescape(line).split()) for line in re.split(r"<[^>]*>", body)]
    return "\n".join(line for line in lines if line) + "\n"


def scrubbed(text: str) -> str:
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "DATE", text)
    return re.sub(r"took [\d.]+ s", "took TIME s", text)


def sentence(note: str) -> str:
    """A note on standard error as the page has it."""
    said = note.removeprefix("note: ")
    return f"{said[0].upper()}{said[1:]}."


def test_the_page(longtail: Callable, model: str, check_golden: Callable) -> None:
    result = longtail("report", model, "notes.jsonl", "-k", "1,2")
    assert (result.code, result.out) == (0, "")
    note, wrote = result.err.splitlines()
    assert wrote == "wrote report.html; open it in a browser"
    page = plain(Path("report.html").read_text(encoding="utf-8"))
    check_golden("report", scrubbed(page.replace(sentence(note), "WARNING")))


def test_the_page_of_a_tree(longtail: Callable, tree_model: str) -> None:
    assert longtail("report", tree_model, "notes.jsonl", "-o", "tree.html", "--examples", "3").code == 0
    text = plain(Path("tree.html").read_text(encoding="utf-8"))
    assert "LabelTree" in text
    assert "are not probabilities" not in text


def test_the_page_of_a_feature_model(longtail: Callable, feature_model: str) -> None:
    assert longtail("report", feature_model, "rows.txt", "-o", "rows.html").code == 0
    assert "features 0: " in plain(Path("rows.html").read_text(encoding="utf-8"))


def test_only_reports_are_replaced_without_asking(longtail: Callable, model: str) -> None:
    assert longtail("report", model, "notes.jsonl").code == 0
    assert longtail("report", model, "notes.jsonl", "--worst", "1").code == 0
    Path("report.html").write_text("<p>mine</p>", encoding="utf-8")
    refused = longtail("report", model, "notes.jsonl")
    assert refused.code == 1
    assert refused.err == (
        "error: report.html exists and is not a report; choose another name, or replace it with --force\n"
    )
    assert Path("report.html").read_text(encoding="utf-8") == "<p>mine</p>"
    assert longtail("report", model, "notes.jsonl", "--force").code == 0
    assert Path("report.html").read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["absent", "notes.jsonl"], "absent: there is no model here (no such directory)"),
        (["model", "absent.jsonl"], "there is no file absent.jsonl"),
        (["model", "empty.jsonl"], "empty.jsonl has no rows; there is nothing to evaluate on"),
        (["model", "rows.txt"], "the model takes texts; the corpus has only features"),
        (["model", "notes.jsonl", "-o", "notes.jsonl"], "reports are written as .html or .htm, not as notes.jsonl"),
        (["model", "notes.jsonl", "-o", "model"], "reports are written as .html or .htm, not as model"),
        (["model", "notes.jsonl", "-o", "no/report.html"], "cannot write no/report.html: there is no folder "),
    ],
)
def test_errors_are_one_line_and_leave_no_file(
    longtail: Callable, model: str, arguments: list[str], error: str
) -> None:
    Path("empty.jsonl").touch()
    before = sorted(path.name for path in Path().iterdir())
    result = longtail("report", *arguments)
    assert result.code == 1
    assert result.err.startswith(f"error: {error}")
    assert result.err.count("\n") == 1
    assert sorted(path.name for path in Path().iterdir()) == before


def test_the_page_on_standard_output_is_all_there_is(longtail: Callable, model: str) -> None:
    Path("new.jsonl").write_text('{"text": "green apples", "labels": ["fruit"]}\n', encoding="utf-8")
    before = sorted(path.name for path in Path().iterdir())
    result = longtail("report", model, "new.jsonl", "-o", "-")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("<!doctype html>\n<!-- a longtail report -->\n")
    assert result.out.endswith("</html>\n")
    assert sorted(path.name for path in Path().iterdir()) == before


def test_a_report_on_the_training_set_says_so_first(longtail: Callable, model: str) -> None:
    Path("notes.jsonl").rename("new.jsonl")
    assert "note: " not in longtail("report", model, "new.jsonl", "-o", "new.html").err
    assert "means warning" not in Path("new.html").read_text(encoding="utf-8").partition("</style>")[2]
    Path("new.jsonl").rename("notes.jsonl")
    note, _ = longtail("report", model, "notes.jsonl").err.splitlines()
    assert note.startswith("note: the model ")
    assert "notes.jsonl" in note
    page = plain(Path("report.html").read_text(encoding="utf-8"))
    assert page.index(sentence(note)) < page.index("P@1")


def test_a_prepared_corpus_without_texts_is_refused_for_a_model_of_texts(longtail: Callable, model: str) -> None:
    assert longtail("prepare", "notes.jsonl", "--out", "prepared", "--min-df", "1").code == 0
    result = longtail("report", model, "prepared")
    assert result.code == 1
    assert f"a report on {model} shows texts, and prepared holds none; give a file of texts" in result.err
    assert not Path("report.html").exists()
