"""Plans from the shell: the same numbers as from Python."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from longtail.planning import Costs, Workload, plan
from longtail.prepared import open_prepared

COSTS = Costs(1e-7, 5e-8, 1.5e-8, 1.5e-8, 1e-9, 1e-8, 0.5, 7e-9, 1.5e-9, 2e-9, 3.0)
SIZES = ["--rows", "1.7M", "--labels", "2.8M", "--features", "337k", "--per-row", "50", "--labels-per-row", "36"]
PLACE = ["--costs", "costs.json", "--cores", "2", "--workers", "4", "--memory", "4G"]


@pytest.fixture(autouse=True)
def _costs() -> None:
    COSTS.save("costs.json")


def test_a_table(longtail: Callable, check_golden: Callable) -> None:
    result = longtail("plan", *SIZES, *PLACE)
    assert (result.code, result.err) == (0, "")
    check_golden("plan", result.out)


def test_the_numbers_are_those_of_the_library(longtail: Callable) -> None:
    result = longtail("plan", *SIZES, *PLACE, "--negatives", "beam", "--output", "json")
    load = Workload(1_700_000, 2_800_000, 337_000, 50, 36, negatives="beam")
    found = plan(load, COSTS, cores=2, workers=4, memory=2**32, network=2**30)
    assert json.loads(result.out) == json.loads(json.dumps(asdict(found)))


def test_the_size_of_a_prepared_corpus(longtail: Callable) -> None:
    assert longtail("prepare", "rows.txt", "--out", "prepared").code == 0
    result = longtail("plan", "prepared", *PLACE, "--output", "json")
    corpus = open_prepared("prepared")
    found = plan(Workload.of(corpus.features, corpus.labels), COSTS, cores=2, workers=4, memory=2**32, network=2**30)
    assert json.loads(result.out)["model_bytes"] == found.model_bytes


def test_costs_are_measured_once(longtail: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    monkeypatch.setattr("longtail.planning.calibrate", lambda: calls.append(1) or COSTS)
    Path("costs.json").unlink()
    results = [longtail("plan", *SIZES, *PLACE) for _ in range(2)]
    assert results[0] == results[1]
    assert len(calls) == 1
    assert Costs.load("costs.json") == COSTS


@pytest.mark.parametrize("count", ["0", "-5", "many", "1.5", "1T", "nan", "infM", ""])
def test_a_count_is_a_number(longtail: Callable, count: str) -> None:
    result = longtail("plan", f"--rows={count}", *SIZES[2:], *PLACE)
    assert result.code == 2
    assert f"{count!r} is not a count; give a number from 1 to 1e15, which may end in k, M or G" in result.err


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (SIZES[2:], "give the directory of a prepared corpus, or also --rows\n"),
        (["prepared", *SIZES], "give either DATA or --rows, --labels, --features, --per-row, --labels-per-row\n"),
        (["absent"], "absent: there is no model here"),
        ([*SIZES, "--labels-per-row", "3e6"], "labels per row: 3,000,000.0; there are only 2,800,000 labels\n"),
        ([*SIZES, "--memory", "much"], "'much' is not a size"),
        ([*SIZES, "--costs", "rows.txt"], "rows.txt is no JSON file: "),
    ],
)
def test_errors_are_one_line(longtail: Callable, arguments: list[str], error: str) -> None:
    result = longtail("plan", *PLACE, *arguments)
    assert result.code == 1
    assert result.err.startswith(f"error: {error}")
    assert result.err.count("\n") == 1
