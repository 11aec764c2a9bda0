"""`longtail select`: the selected labels as a table, a file and a picture."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from longtail.cli.select import _CRITERIA
from longtail.data import read_corpus
from longtail.subset import label_affinity, select_labels
from longtail.subset.selection import CRITERIA

RECIPES = """\
{"text": "apples and pears from the garden", "labels": ["fruit", "apple", "pear"]}
{"text": "apples in a basket", "labels": ["fruit", "apple"]}
{"text": "ripe pears", "labels": ["fruit", "pear"]}
{"text": "plums and apples", "labels": ["fruit", "plum", "apple"]}
{"text": "rain and grey clouds", "labels": ["weather", "rain"]}
{"text": "snow on the hills, grey clouds", "labels": ["weather", "snow"]}
{"text": "heavy rain, then snow", "labels": ["weather", "rain", "snow"]}
{"text": "sun and clouds", "labels": ["weather"]}
"""


@pytest.fixture(autouse=True)
def _recipes() -> None:
    Path("recipes.jsonl").write_text(RECIPES, encoding="utf-8", newline="\n")


def test_the_table(longtail: Callable, check_golden: Callable) -> None:
    result = longtail("select", "recipes.jsonl", "-n", "3", "--min-df", "1")
    assert result.code == 0, result.err
    check_golden("select", result.out)
    assert "selected 3 of 7 labels by predictable cut; they cover 88.2 % of all and reach " in result.err


def test_labels_only_ignores_the_features(longtail: Callable, check_golden: Callable) -> None:
    result = longtail("select", "recipes.jsonl", "--n-labels", "4", "--labels-only", "--explained", "2")
    assert result.code == 0, result.err
    check_golden("select-labels-only", result.out)


def test_the_command_selects_what_the_library_does(longtail: Callable) -> None:
    assert longtail("select", "recipes.jsonl", "--labels-only", "--penalty", "0.5", "--out", "subset.json").code == 0
    corpus = read_corpus("recipes.jsonl")
    expected = select_labels(corpus.labels, corpus.n_labels, penalty=0.5)
    facts = json.loads(Path("subset.json").read_text(encoding="utf-8"))
    assert [each["label"] for each in facts["labels"]] == [corpus.label_names[label] for label in expected.labels]
    assert [each["coverage"] for each in facts["labels"]] == pytest.approx(expected.coverage.tolist(), abs=1e-6)
    assert [each["rows"] for each in facts["labels"]] == corpus.label_counts[expected.labels].tolist()
    assert facts["labels"][0]["predictability"] is None
    assert facts["value"] == pytest.approx(expected.value, abs=1e-6)
    assert (facts["criterion"], facts["rows"], facts["all_labels"]) == ("penalised cut", 8, 7)
    best = facts["labels"][0]["explains"]
    assert best == sorted(best, key=lambda other: -other["weight"])


def test_a_tsv_has_a_line_for_each_label(longtail: Callable) -> None:
    result = longtail("select", "recipes.jsonl", "-n", "2", "--min-df", "1", "-o", "subset.tsv")
    assert (result.code, result.out) == (0, "")
    with open("subset.tsv", encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file, delimiter="\t"))
    assert [line["label"] for line in lines] == ["fruit", "weather"]
    assert lines[0]["rows"] == "4"
    assert float(lines[0]["predictability"]) > 0.1
    assert json.loads(lines[0]["explains"]) == ["apple", "pear", "plum"]
    assert float(lines[1]["coverage"]) > float(lines[0]["coverage"])


def test_names_with_separators_are_told_apart_in_a_tsv(longtail: Callable) -> None:
    names = ["a", "b; c", "d\te", "f\ng"]
    Path("odd.jsonl").write_text(json.dumps({"text": "a", "labels": names}) + "\n", encoding="utf-8")
    assert longtail("select", "odd.jsonl", "-n", "1", "--labels-only", "--out", "odd.tsv").code == 0
    [_, line] = Path("odd.tsv").read_text(encoding="utf-8").splitlines()
    assert json.loads(line.split("\t")[5]) == names[1:]


def test_what_is_written_is_told_and_what_is_replaced_too(longtail: Callable) -> None:
    command = ["select", "recipes.jsonl", "-n", "2", "--labels-only", "--out", "subset.tsv"]
    assert "wrote subset.tsv: 2 labels\n" in longtail(*command).err
    assert "replaced subset.tsv: 2 labels\n" in longtail(*command).err


@pytest.mark.parametrize("spelling", ["penalised-cut", "penalised cut", "penalised_cut"])
def test_words_of_a_choice_may_have_anything_between_them(longtail: Callable, spelling: str) -> None:
    command = ["select", "recipes.jsonl", "--criterion", spelling, "--affinity", "self representation"]
    result = longtail(*command, "--out", "subset.json")
    assert result.code == 0, result.err
    facts = json.loads(Path("subset.json").read_text(encoding="utf-8"))
    assert (facts["criterion"], facts["affinity"]) == ("penalised cut", "self-representation")
    assert "labels by penalised cut; " in result.err


def test_criteria_are_those_of_the_library(longtail: Callable) -> None:
    assert set(_CRITERIA) == set(CRITERIA)
    told = longtail("select", "recipes.jsonl", "--criterion", "size").err
    assert "'size' is not one of 'predictable-cut', 'penalised-cut'" in told


def test_control_characters_of_a_name_do_not_break_lines(longtail: Callable) -> None:
    Path("odd.jsonl").write_text('{"text": "a", "labels": ["x\\ty\\n\\u001b[31m", "z"]}\n', encoding="utf-8")
    assert longtail("select", "odd.jsonl", "--labels-only", "--out", "odd.tsv").code == 0
    lines = Path("odd.tsv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 3
    assert {line.count("\t") for line in lines} == {5}
    assert "\x1b" not in longtail("select", "odd.jsonl", "--labels-only").out


@pytest.mark.parametrize("criterion", ["cut", "score", "frequency", "random", "leverage"])
def test_other_criteria(longtail: Callable, criterion: str) -> None:
    result = longtail("select", "recipes.jsonl", "-n", "2", "--criterion", criterion, "--min-df", "1", "-o", "s.json")
    assert result.code == 0, result.err
    assert f"selected 2 of 7 labels by {criterion}; " in result.err
    facts = json.loads(Path("s.json").read_text(encoding="utf-8"))
    assert facts["criterion"] == criterion
    assert len({each["label"] for each in facts["labels"]}) == 2
    assert (facts["labels"][0]["predictability"] is not None) == (criterion == "score")


def test_what_is_proved_is_rounded_down(longtail: Callable) -> None:
    told = longtail("select", "recipes.jsonl", "-n", "3", "--criterion", "random", "-o", "s.json").err
    proved = json.loads(Path("s.json").read_text(encoding="utf-8"))["guarantee"]
    [share] = re.findall(r"at least ([\d.]+) % of the best possible penalised cut", told)
    assert 0 <= 100 * proved - float(share) < 0.1 + 1e-4


def test_rows_of_features_are_taken_too(longtail: Callable) -> None:
    result = longtail("select", "rows.txt", "-n", "1")
    assert result.code == 0, result.err
    assert "R2" in result.out


def test_rows_without_any_feature_fall_back_on_labels(longtail: Callable) -> None:
    Path("bare.jsonl").write_text(re.sub('"text": "[^"]*"', '"text": ""', RECIPES), encoding="utf-8")
    result = longtail("select", "bare.jsonl", "-n", "2")
    assert result.code == 0, result.err
    assert "there are no texts or features to predict labels from: selecting by penalised cut\n" in result.err
    assert "R2" not in result.out
    assert longtail("select", "bare.jsonl", "--criterion", "score").err.splitlines()[-1] == (
        "error: the criterion 'score' needs texts or features, and the corpus has none"
    )


def test_standard_input_is_read_as_json_lines(longtail: Callable) -> None:
    piped = longtail("--quiet", "select", "-", "--labels-only", stdin=RECIPES.encode())
    assert (piped.code, piped.err) == (0, "")
    assert piped.out == longtail("--quiet", "select", "recipes.jsonl", "--labels-only").out


def test_the_affinity_is_found_with_the_threads_asked_for(longtail: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def spied(*given: Any, n_jobs: int | None = None) -> Any:
        seen.append(n_jobs)
        return label_affinity(*given, n_jobs=n_jobs)

    monkeypatch.setattr("longtail.subset.corpus_selection.label_affinity", spied)
    assert longtail("select", "recipes.jsonl", "--labels-only", "--jobs", "1").code == 0
    assert seen == [1]


def test_the_picture_is_a_png(longtail: Callable) -> None:
    pytest.importorskip("matplotlib")
    result = longtail("select", "recipes.jsonl", "--labels-only", "--picture", "coverage.png")
    assert result.code == 0, result.err
    assert "drew coverage.png\n" in result.err
    assert Path("coverage.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_without_matplotlib_is_refused_before_the_work(
    longtail: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longtail.pictures.can_draw", lambda: False)
    result = longtail("--quiet", "select", "absent.jsonl", "--picture", "coverage.png")
    assert result.err == (
        "error: drawing needs matplotlib, which is not installed; install it: pip install 'longtail[plots]'\n"
    )


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["recipes.jsonl", "-n", "8"], "n_labels is 8, but there are only 7 labels"),
        (["empty.jsonl"], "there are 0 rows and no labels to select from"),
        (["absent.jsonl"], "there is no file absent.jsonl"),
        (["recipes.jsonl", "-o", "subset.csv"], "selected labels are written as .json or .tsv, not as subset.csv"),
        (["recipes.jsonl", "-o", "no/subset.tsv"], "cannot write no/subset.tsv: there is no folder"),
        (
            ["recipes.jsonl", "-o", "recipes.jsonl"],
            "selected labels are written as .json or .tsv, ",
        ),
        (["recipes.jsonl", "--picture", "coverage.pdf"], "pictures are written as .png, not as coverage.pdf"),
        (["recipes.jsonl", "--log"], "--log is for features; recipes.jsonl holds texts"),
        (["groups.jsonl"], "groups.jsonl:1: no key 'text'; the keys are 'labels', 'texts'; these are groups"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(longtail: Callable, arguments: list[str], error: str) -> None:
    Path("empty.jsonl").write_bytes(b"")
    Path("groups.jsonl").write_text('{"texts": ["a"], "labels": ["x"]}\n', encoding="utf-8")
    before = sorted(path.name for path in Path().iterdir())
    result = longtail("--quiet", "select", *arguments)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"error: {error}")
    assert result.err.count("\n") == 1
    assert sorted(path.name for path in Path().iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "last_line"),
    [
        (
            ["--labels-only", "--criterion", "score"],
            "Error: --criterion score cannot be used with --labels-only",
        ),
        (
            ["--labels-only", "--score-weight", "2"],
            "Error: --score-weight can only be used with --criterion predictable-cut",
        ),
    ],
)
def test_options_that_contradict_each_other_are_wrong_usage(
    longtail: Callable, arguments: list[str], last_line: str
) -> None:
    result = longtail("select", "recipes.jsonl", *arguments)
    assert result.code == 2
    assert result.err.splitlines()[-1] == last_line


def test_selecting_by_labels_alone_loads_no_learner() -> None:
    code = (
        "import sys; from longtail.cli.program import run;"
        "assert run(['--quiet', 'select', 'recipes.jsonl', '--labels-only']) == 0;"
        "print([name for name in ('sklearn', 'torch', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"
