"""`longtail compare`: the table, its files, and what is done when it is interrupted."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from longtail.tagger import Compared

ARGUMENTS = ("compare", "notes.jsonl", "--holdout", "0.4", "--min-df", "1")


def test_learners_side_by_side(longtail: Callable) -> None:
    result = longtail(*ARGUMENTS)
    assert result.code == 0
    head, _, *rows = result.out.splitlines()
    assert head.split()[:3] == ["learner", "P@1", "P@3"]
    assert {row.split()[0] for row in rows[:4]} == {"tree", "ridge", "one-vs-rest", "default"}
    quality = [float(row.split()[4]) for row in rows[:4]]
    assert quality == sorted(quality, reverse=True)
    assert rows[4].startswith("The default training chooses this learner: ridge, as 3 labels x 4 rows are few")


def test_the_result_as_json_table_and_picture(longtail: Callable) -> None:
    pytest.importorskip("matplotlib")
    result = longtail(*ARGUMENTS, "--learners", "tree,ridge", "--json", "-o", "t.csv", "--picture", "t.png")
    facts = json.loads(result.out)
    assert {each["learner"] for each in facts} == {"tree", "ridge"}
    assert all(0 <= each["nDCG@5"] <= 1 and each["bytes"] > 0 and each["left_out"] is None for each in facts)
    with open("t.csv", encoding="utf-8-sig", newline="") as stream:
        table = list(csv.DictReader(stream))
    assert [row["learner"] for row in table] == [each["learner"] for each in facts]
    assert [float(row["P@1"]) for row in table] == [each["P@1"] for each in facts]
    assert Path("t.png").read_bytes().startswith(b"\x89PNG")
    assert result.err.endswith("wrote t.csv: 2 learners\ndrew t.png\n")


def test_a_learner_that_takes_too_long_is_left_out_with_the_reason(longtail: Callable) -> None:
    result = longtail(*ARGUMENTS, "--learners", "tree", "--patience", "1e-9")
    assert result.out.startswith("tree is left out: training would take about ")
    assert result.out.endswith(" s, more than 1e-09 s\n")
    assert json.loads(longtail(*ARGUMENTS, "--learners", "tree", "--patience", "1e-9", "--json").out)[0]["P@1"] is None


def test_what_is_done_is_printed_after_an_interrupt(longtail: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> Iterator[Compared]:
        yield Compared("ridge", left_out="nothing was tried")
        raise KeyboardInterrupt

    monkeypatch.setattr("longtail.tagger.compare", interrupted)
    result = longtail(*ARGUMENTS, "-o", "t.jsonl")
    assert (result.code, result.out) == (130, "ridge is left out: nothing was tried\n")
    assert json.loads(Path("t.jsonl").read_text(encoding="utf-8"))["learner"] == "ridge"


def test_a_file_without_rows_is_told(longtail: Callable) -> None:
    Path("empty.csv").write_text("text,labels\n")
    assert (
        longtail("compare", "empty.csv").err
        == "error: empty.csv has no rows; there is nothing to compare learners on\n"
    )


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (
            ["--learners", "forest"],
            "there is no learner 'forest'; choose from tree, one-vs-rest, ridge, network, default",
        ),
        (["--learners", ","], "--learners is empty; name at least one"),
        (["--holdout", "0.01"], "holding out 0.01 of 6 rows leaves one part empty"),
        (["--log"], "--log is for features; notes.jsonl holds texts"),
    ],
)
def test_what_cannot_be_compared(longtail: Callable, arguments: list[str], error: str) -> None:
    result = longtail(*ARGUMENTS[:2], *arguments)
    assert result.code == 1
    assert result.err.splitlines()[-1].startswith(f"error: {error}")
