from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks.learners import LEARNERS
from benchmarks.measure import Measurement
from benchmarks.summary import Bar, Figure, bars, best_peer, fastest_rival, ratio, summarise

Make = Callable[..., Measurement]


def test_a_row_holds_the_median_and_the_range_of_its_rounds(measured: Make) -> None:
    rounds = [measured("pecos", n, train_seconds=seconds) for n, seconds in ((1, 5.0), (2, 2.0), (3, 3.0))]
    row = summarise(rounds, "bibtex")["pecos"]
    assert row.figures["train_seconds"] == Figure(3.0, 2.0, 5.0)
    assert row.rounds == 3
    assert summarise(rounds, "delicious") == {}


def test_a_round_that_failed_is_told_and_does_not_count(measured: Make) -> None:
    failed = Measurement("bibtex", "pecos", 2, "timed out", "after 9 s")
    row = summarise([measured("pecos", 1, train_seconds=4.0), failed], "bibtex")["pecos"]
    assert (row.rounds, row.value("train_seconds")) == (1, 4.0)
    assert row.reason == "timed out in round 2: after 9 s"
    only = summarise([failed], "bibtex")["pecos"]
    assert (only.status, only.value("train_seconds")) == ("timed out", None)


def test_the_best_peer_is_never_one_of_ours(measured: Make) -> None:
    rows = summarise(
        [
            measured("tree", train_seconds=1, rows_per_second=9),
            measured("pecos", train_seconds=4, rows_per_second=5),
            measured("bonsai", train_seconds=6, rows_per_second=7),
        ],
        "bibtex",
    )
    quickest, fastest = best_peer(rows, "train_seconds", high=False), best_peer(rows, "rows_per_second", high=True)
    assert quickest is not None
    assert fastest is not None
    assert (quickest.learner.key, fastest.learner.key) == ("pecos", "bonsai")
    assert ratio(rows, "tree", "pecos", "train_seconds") == 0.25
    assert ratio(rows, "tree", "napkinxc", "train_seconds") is None


def test_a_rival_may_be_half_a_point_worse_and_no_more(measured: Make) -> None:
    rows = summarise(
        [
            measured("tree", P_at_1=80.0),
            measured("pecos", P_at_1=79.5, rows_per_second=10),
            measured("parabel", P_at_1=79.4, rows_per_second=99),
            measured("bonsai", P_at_1=84.0, rows_per_second=5),
        ],
        "bibtex",
    )
    rival = fastest_rival(rows, "tree")
    assert rival is not None
    assert rival.learner.key == "pecos"
    assert fastest_rival(rows, "ridge") is None


@pytest.mark.parametrize(
    ("measured_value", "at_least", "verdict"),
    [(2.0, True, "holds"), (1.9, True, "DOES NOT HOLD"), (2.1, False, "DOES NOT HOLD"), (None, True, "not measured")],
)
def test_a_bar_holds_on_its_own_side(measured_value: float | None, at_least: bool, verdict: str) -> None:
    assert Bar("", measured_value, 2.0, at_least).verdict == verdict


def test_the_bars_compare_the_learners_they_name(measured: Make) -> None:
    rows = summarise(
        [
            measured("tree", train_seconds=2, P_at_1=81.0, P_at_3=60.0, model_bytes=30, memory_peak=50, latency_p99=3),
            measured("tree-3", train_seconds=9),
            measured("tree-beam", train_seconds=3),
            measured("pecos", train_seconds=8, P_at_1=80.0, P_at_3=61.0, model_bytes=10, memory_peak=100),
            measured("bonsai", train_seconds=6, latency_p99=2, P_at_1=70.0),
        ],
        "bibtex",
    )
    found = {bar.text: bar for bar in bars(rows)}
    told = {text: (bar.measured, bar.holds) for text, bar in found.items()}
    assert told["one tree: P@1 minus that of PECOS, in points"] == (1.0, True)
    assert told["one tree: P@3 minus that of PECOS, in points"] == (-1.0, False)
    assert told["one tree: training time / PECOS"] == (0.25, True)
    assert told["three trees: training time / PECOS with one"] == (9 / 8, False)
    assert told['negatives="beam": training time / omikuji Bonsai'] == (0.5, True)
    assert told["one-vs-rest: training time / omikuji Bonsai"] == (None, None)
    assert told["one tree: model size / PECOS"] == (3.0, False)
    assert told["one tree: peak memory of training / PECOS"] == (0.5, True)
    assert told["one tree: p99 of a single row / best peer (PECOS XR-Linear)"] == (3.0, False)


def test_every_bar_is_told_where_nothing_was_measured() -> None:
    assert {bar.verdict for bar in bars({})} == {"not measured"}


def test_learners_have_keys_of_their_own() -> None:
    assert len({learner.key for learner in LEARNERS}) == len(LEARNERS) == len({row.title for row in LEARNERS})
