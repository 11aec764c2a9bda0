"""`longtail prepare`, and commands that take what it wrote."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import longtail as library


def test_a_prepared_corpus_trains_the_model_of_its_file(longtail: Callable) -> None:
    result = longtail("prepare", "notes.jsonl", "--out", "prepared", "--memory", "1G")
    assert result.code == 0
    assert "prepared: 6 rows" in result.err + result.out
    for data, model in (("prepared", "one"), ("notes.jsonl", "other")):
        assert longtail("train", data, "--out", model).code == 0
    assert library.load("one").fingerprint_ == library.load("other").fingerprint_
    found, expected = (longtail("evaluate", "one", data) for data in ("prepared", "notes.jsonl"))
    assert found.code == 0
    assert found.out == expected.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-", "--out", "new"], "cannot be standard input"),
        (["nothing.jsonl", "--out", "new"], "nothing.jsonl"),
        (["notes.jsonl", "--out", "prepared"], "prepared"),
        (["notes.jsonl", "--out", "new", "--like", "notes.jsonl"], "there is no model here"),
        (["notes.jsonl", "--out", "new", "--log"], "log is for features"),
    ],
)
def test_what_cannot_be_prepared_is_refused(longtail: Callable, arguments: list[str], message: str) -> None:
    assert longtail("prepare", "notes.jsonl", "--out", "prepared").code == 0
    result = longtail("prepare", *arguments)
    assert result.code != 0
    assert message in result.err
    assert not Path("new").exists()


def test_options_of_files_do_not_apply_to_prepared_corpora(longtail: Callable) -> None:
    assert longtail("prepare", "notes.jsonl", "--out", "prepared").code == 0
    for option in (["--text-column", "body"], ["--min-df", "1"]):
        result = longtail("train", "prepared", "--out", "model", *option)
        assert result.code != 0
        assert "prepared" in result.err
        assert not Path("model").exists()


def test_a_folder_with_the_name_of_a_data_set_does_not_hide_it(longtail: Callable) -> None:
    Path("python-api").mkdir()
    result = longtail("train", "python-api", "--out", "model", "--learner", "tree", "--holdout", "0.9", "--no-refit")
    assert result.code == 0, result.err


def test_a_corrected_command_goes_on_after_a_wrong_column(longtail: Callable) -> None:
    Path("sheet.csv").write_text("id,body,tags\n1,red apples,fruit\n2,green apples,fruit\n3,apples,fruit\n")
    columns = ("--text-column", "body", "--label-column", "tags")
    for command in (("prepare", "sheet.csv", "--out", "new"), ("train", "sheet.csv", "--out", "model", "--resume")):
        found = longtail(*command, "--min-df", "1")
        assert found.code == 1
        assert "no column is named 'text'" in found.err
        assert longtail(*command, *columns, "--min-df", "1").code == 0


def test_prepared_data_is_not_taken_for_a_model(longtail: Callable) -> None:
    assert longtail("prepare", "notes.jsonl", "--out", "prepared").code == 0
    found = longtail("predict", "prepared", "--text", "steam")
    assert (found.code, found.out) == (1, "")
    assert found.err == (
        "error: prepared holds prepared data, not a model; train one with `longtail train prepared --out MODEL`\n"
    )
