"""`longtail audit`, driven as a user would."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

PLANE = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
SETS = """\
{"text": "", "labels": ["A", "B"]}
{"text": "", "labels": ["A", "C"]}
{"text": "", "labels": ["A", "B", "C"]}
{"text": "", "labels": ["B", "A"]}
{"text": "", "labels": []}
"""


@pytest.fixture
def plane() -> list[str]:
    """Three labels in a plane of which the third is the sum of the others."""
    np.save("plane.npy", PLANE)
    Path("sets.jsonl").write_text(SETS, encoding="utf-8")
    return ["audit", "--weights", "plane.npy", "--labels", "sets.jsonl"]


def test_a_matrix_and_its_conflict(longtail: Callable, plane: list[str], check_golden: Callable) -> None:
    found = longtail(*plane)
    assert found.code == 0, found.err
    assert "no input can have A and B without C" in found.out
    check_golden("audit", found.out)


def test_json_has_every_set_that_no_input_gets(longtail: Callable, plane: list[str]) -> None:
    facts = json.loads(longtail(*plane, "--json").out)
    assert (facts["label_sets"], facts["rows"], facts["unargmaxable"], facts["rows_unargmaxable"]) == (4, 5, 1, 2)
    assert facts["rank"] == 2
    [example] = facts["examples"]
    assert example["conflict"] == {"with": ["A", "B"], "without": ["C"]}
    assert example["row"] == 1
    assert sum(example["weights"].values()) == pytest.approx(1)


def test_a_bias_brings_the_set_into_reach(longtail: Callable, plane: list[str]) -> None:
    np.save("bias.npy", np.array([0.0, 0.0, -5.0]))
    facts = json.loads(longtail(*plane, "--bias", "bias.npy", "--json").out)
    assert facts["unargmaxable"] == 0
    assert json.loads(longtail(*plane, "--threshold", "1", "--json").out)["unargmaxable"] == 1


def test_a_model_whose_labels_are_independent_has_nothing_wrong(longtail: Callable, model: str) -> None:
    found = longtail("audit", model, "notes.jsonl")
    assert found.code == 0, found.err
    assert "linearly independent" in found.out
    facts = json.loads(longtail("audit", model, "notes.jsonl", "--json").out)
    assert facts["argmaxable"] == facts["label_sets"] == 5
    assert facts["undetermined"] == 0


def test_a_sweep_over_ranks_and_its_picture(longtail: Callable, model: str) -> None:
    found = longtail("audit", model, "notes.jsonl", "--ranks", "1,2", "--picture", "audit.png")
    assert found.code == 0, found.err
    assert "at rank" in found.out
    assert Path("audit.png").read_bytes().startswith(b"\x89PNG")
    facts = json.loads(longtail("audit", model, "notes.jsonl", "--ranks", "2,1", "--json").out)
    assert [cut["rank"] for cut in facts["ranks"]] == [1, 2]
    assert facts["ranks"][0]["unargmaxable"] >= facts["ranks"][1]["unargmaxable"]


def test_a_tree_is_explained_instead(longtail: Callable, tree_model: str) -> None:
    found = longtail("audit", tree_model, "notes.jsonl", "--picture", "tree.png")
    assert found.code == 0, found.err
    assert "no linear output layer" in found.out
    assert "no radii to draw" in found.err
    assert not Path("tree.png").exists()
    assert longtail("audit", tree_model, "notes.jsonl", "--ranks", "1").code == 2


def test_rows_with_labels_that_the_model_does_not_know_are_told(longtail: Callable, model: str) -> None:
    Path("more.jsonl").write_text(
        '{"text": "", "labels": ["fruit", "vegetable"]}\n{"text": "", "labels": ["red"]}\n', encoding="utf-8"
    )
    facts = json.loads(longtail("audit", model, "more.jsonl", "--json").out)
    assert facts["rows_with_unknown_labels"] == 1
    assert facts["label_sets"] == 1


def test_rows_of_weights_can_be_named(longtail: Callable, plane: list[str]) -> None:
    Path("names.txt").write_text("C\nB\nA\n", encoding="utf-8")
    facts = json.loads(longtail(*plane, "--label-names", "names.txt", "--json").out)
    assert facts["unargmaxable"] == 0  # now A is the sum of the others, and no row has these without it
    assert facts["label_sets"] == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["audit"], "give MODEL and DATA, or --weights and --labels"),
        (["audit", "model"], "give the DATA"),
        (["audit", "--weights", "plane.npy"], "--weights and --labels"),
        (["audit", "--weights", "plane.npy", "--labels", "notes.jsonl", "--label-names", "names.txt"], "has 2 labels"),
        (["audit", "--weights", "sets.jsonl", "--labels", "sets.jsonl"], "as numpy.save writes it"),
        (["audit", "--weights", "line.npy", "--labels", "sets.jsonl"], "expected a matrix"),
        (["audit", "--weights", "nan.npy", "--labels", "sets.jsonl"], "NaN or infinity"),
        (["audit", "--weights", "four.npy", "--labels", "sets.jsonl"], "the weights have 4 rows"),
        (["audit", "--weights", "plane.npy", "--bias", "four.npy", "--labels", "sets.jsonl"], "expected 3 numbers"),
        (["audit", "--weights", "plane.npy", "--labels", "sets.jsonl", "--ranks", "3"], "rank 3 of a layer"),
        (["audit", "--weights", "plane.npy", "--labels", "sets.jsonl", "--ranks", "x"], "expected ranks such as"),
        (["audit", "--weights", "plane.npy", "--labels", "sets.jsonl", "--picture", "a.jpg"], "end it in .png"),
    ],
)
def test_what_does_not_fit_is_told(longtail: Callable, plane: list[str], arguments: list[str], message: str) -> None:
    Path("names.txt").write_text("x\ny\n", encoding="utf-8")
    np.save("line.npy", np.ones(3))
    np.save("nan.npy", np.full((3, 2), np.nan))
    np.save("four.npy", np.ones((4, 2)))
    found = longtail(*arguments)
    assert found.code in (1, 2)
    assert message in found.err
