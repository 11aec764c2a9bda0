"""Files that commands write: endings are checked before the work, and files appear though nobody reads the output."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from longtail.cli.program import run

pipes = pytest.mark.skipif(os.name == "nt", reason="pipes close otherwise here")
PAGES = '{"texts": ["red apples", "clear sky"], "labels": ["fruit", "weather"]}\n' * 3


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (
            ["report", "m", "d", "-o", "r.pdf"],
            "reports are written as .html or .htm, not as r.pdf: write an .html",
        ),
        (["report", "m", "d", "-o", "r"], "reports are written as .html or .htm, not as r"),
        (["predict", "m", "d", "-o", "t.ods"], "tags are written as .csv, .tsv, .jsonl or .parquet"),
        (["labels", "m", "-o", "l.txt"], "labels are written as .csv, .tsv, .jsonl or .parquet"),
        (["compare", "d", "-o", "c.md"], "comparisons are written as .csv, .tsv, .jsonl or .parquet"),
        (["compare", "d", "--picture", "c.svg"], "pictures are written as .png, not as c.svg"),
        (["evaluate", "m", "d", "--picture", "c.pdf"], "pictures are written as .png, not as c.pdf"),
        (["audit", "m", "d", "--picture", "c"], "pictures are written as .png, not as c"),
        (["select", "d", "-o", "s.csv"], "selected labels are written as .json or .tsv, not as s.csv"),
        (["assign", "d", "-o", "a.csv"], "labelled rows are written as .jsonl, .jsonl.gz, .txt, .txt.gz or .npz"),
        (["tree", "m", "-o", "t.svg"], "trees are written as .txt, .json or .tsv, not as t.svg"),
        (["tree", "m", "--output", "tsv", "-o", "t.json"], "trees as tsv are written as .tsv, not as t.json"),
        (["train", "d", "-o", "m.pkl"], "m.pkl has the name of a file, and a directory is written; leave out .pkl"),
        (["prepare", "d", "-o", "p.npz"], "p.npz has the name of a file, and a directory is written; leave out .npz"),
        (["demo", "-o", "m.zip"], "m.zip has the name of a file"),
        (["reproduce", "ridge", "-o", "t.csv"], "t.csv has the name of a file"),
    ],
)
def test_an_ending_is_checked_before_anything_is_read(longtail: Callable, arguments: list[str], error: str) -> None:
    before = sorted(Path().iterdir())
    result = longtail(*arguments)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"error: {error}")
    assert sorted(Path().iterdir()) == before


def test_the_file_of_a_tree_says_its_form(longtail: Callable, tree_model: str) -> None:
    for name, form in (("t.txt", "text"), ("t.json", "json"), ("t.tsv", "tsv")):
        assert longtail("tree", tree_model, "-o", name).code == 0
        assert Path(name).read_text(encoding="utf-8") == longtail("tree", tree_model, "--output", form).out


def run_unread(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run the program with standard output into a pipe that nobody reads."""
    read, write = os.pipe()
    os.close(read)
    with monkeypatch.context() as patched, io.TextIOWrapper(os.fdopen(write, "wb"), encoding="utf-8") as closed:
        patched.setattr(sys, "stdout", closed)
        return run(arguments)


@pipes
def test_a_card_is_written_though_nobody_reads_the_metrics(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_unread(monkeypatch, "evaluate", model, "notes.jsonl", "--card") == 0
    assert "metrics" in Path(model, "card.json").read_text(encoding="utf-8")
    assert run_unread(monkeypatch, "audit", model, "notes.jsonl", "--card") == 0
    assert "audit" in Path(model, "card.json").read_text(encoding="utf-8")
    assert run_unread(monkeypatch, "evaluate", model, "notes.jsonl") == 141


@pipes
@pytest.mark.parametrize(
    ("arguments", "written"),
    [
        (["train", "notes.jsonl", "--min-df", "1", "--holdout", "0.4"], "model"),
        (["prepare", "notes.jsonl", "--min-df", "1"], "prepared"),
        (["compare", "notes.jsonl", "--min-df", "1", "--holdout", "0.4", "--learners", "ridge"], "table.csv"),
        (["assign", "pages.jsonl", "--min-df", "1", "--show", "1"], "rows.jsonl"),
    ],
)
def test_the_result_is_written_though_nobody_reads_the_output(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], written: str
) -> None:
    Path("pages.jsonl").write_text(PAGES, encoding="utf-8")
    assert run_unread(monkeypatch, *arguments, "--out", written) == 0
    assert Path(written).exists()
