from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import longtail
from longtail import metrics
from longtail.errors import InvalidInput, Unavailable
from longtail.metrics import evaluate, frequency_groups

from .strategies import Case, cases, make_case

CASE = make_case(5, 40, 30, 5, density=0.15)
COUNTS = np.concatenate([[400, 300, 90, 80, 70, 60, 50], np.repeat([20, 10, 1, 0], [3, 5, 12, 3])])


def full_report() -> metrics.Report:
    return evaluate(CASE.truth, CASE.top, inverse_propensity=CASE.weights, train_label_counts=COUNTS)


@given(cases)
def test_every_value_is_that_of_its_own_function(case: Case) -> None:
    k = case.top.shape[1]
    report = evaluate(case.truth, case.top, ks=[k, 1], inverse_propensity=case.weights)
    assert report.ks == ((1, k) if k > 1 else (1,))
    functions = {
        "P": metrics.precision_at_k,
        "nDCG": metrics.ndcg_at_k,
        "R": metrics.recall_at_k,
        "F1": metrics.f1_at_k,
        "coverage": metrics.coverage_at_k,
        "macro-P": metrics.macro_precision_at_k,
        "macro-R": metrics.macro_recall_at_k,
    }
    for name, function in functions.items():
        assert report[f"{name}@{k}"] == function(case.truth, case.top, k)
    assert report[f"PSP@{k}"] == pytest.approx(metrics.psp_at_k(case.truth, case.top, k, case.weights))
    assert report["PSnDCG@1"] == pytest.approx(metrics.psndcg_at_k(case.truth, case.top, 1, case.weights))
    assert set(report.metrics) == {*functions, "PSP", "PSnDCG"}


def test_without_weights_and_counts_only_what_can_be_known_is_there() -> None:
    report = evaluate(CASE.truth, CASE.top)
    assert "PSP" not in report.metrics
    assert "PSnDCG" not in report.metrics
    assert report.groups == ()
    with pytest.raises(InvalidInput, match="has no 'PSP@1'; it has P, nDCG"):
        report["PSP@1"]


@given(cases, st.integers(0, 1000))
def test_groups_add_up_to_the_whole(case: Case, seed: int) -> None:
    counts = np.random.default_rng(seed).zipf(1.5, case.truth.shape[1]) - 1
    report = evaluate(case.truth, case.top, ks=[1], train_label_counts=counts)
    groups = report.groups
    assert sum(group.n_labels for group in groups) == case.truth.shape[1]
    assert sum(group.n_true_labels for group in groups) == np.count_nonzero(case.truth.any(axis=0))
    assert sum(group.metrics["P"][1] for group in groups) == pytest.approx(report["P@1"])
    pairs = case.truth.sum()
    assert sum(group.truth_share for group in groups) == pytest.approx(1 if pairs else 0)
    found = sum(group.metrics["R"][1] * group.truth_share for group in groups) * pairs
    assert found == pytest.approx(report["P@1"] * len(case.truth))
    macro = sum(group.metrics["macro-P"][1] * group.n_labels for group in groups)
    assert macro == pytest.approx(report["macro-P@1"] * case.truth.shape[1])
    macro = sum(group.metrics["macro-R"][1] * group.n_true_labels for group in groups)
    assert macro == pytest.approx(report["macro-R@1"] * sum(group.n_true_labels for group in groups))


def test_group_values_worked_out_by_hand() -> None:
    truth = [[1, 0, 1, 0], [1, 1, 0, 0], [0, 1, 0, 1]]
    top = [[0, 1], [0, 2], [1, 0]]
    head, tail, unseen = evaluate(truth, top, ks=[2], train_label_counts=[50, 9, 8, 0]).groups
    assert (head.name, head.n_labels, head.n_true_labels, head.train_counts) == ("head", 1, 1, (50, 50))
    assert head.truth_share == pytest.approx(2 / 6)
    assert head.metrics == {"P": {2: 2 / 6}, "R": {2: 1.0}, "macro-P": {2: 2 / 3}, "macro-R": {2: 1.0}}
    assert (tail.name, tail.n_labels, tail.train_counts) == ("tail", 2, (8, 9))
    assert tail.metrics == {"P": {2: 1 / 6}, "R": {2: 1 / 3}, "macro-P": {2: 1 / 4}, "macro-R": {2: 1 / 4}}
    assert (unseen.name, unseen.n_true_labels) == ("unseen", 1)
    assert unseen.metrics == {"P": {2: 0.0}, "R": {2: 0.0}, "macro-P": {2: 0.0}, "macro-R": {2: 0.0}}


@given(st.lists(st.integers(0, 30), min_size=1, max_size=60))
def test_frequency_groups_follow_the_counts(counts: list[int]) -> None:
    groups = frequency_groups(counts)
    total = sum(counts)
    for count, group in zip(counts, groups, strict=True):
        assert (group == 3) == (count == 0)
    seen = sorted((count, group) for count, group in zip(counts, groups, strict=True) if count)
    assert [group for _, group in seen] == sorted((group for _, group in seen), reverse=True)
    assert len({count for count, _ in seen}) == len(set(seen))
    for group in (0, 2):
        # All but the last block of equal counts of an outer group hold less than a third.
        members = [count for count, its_group in seen if its_group == group]
        if members:
            edge = min(members) if group == 0 else max(members)
            assert 3 * sum(count for count in members if count != edge) < total


def test_many_labels_of_many_frequencies_split_into_thirds() -> None:
    counts = np.floor(1e6 / np.arange(1, 20_001)).astype(int)
    groups = frequency_groups(counts)
    shares = np.bincount(groups, weights=counts, minlength=4) / counts.sum()
    assert shares[:3] == pytest.approx(1 / 3, abs=0.03)
    assert np.count_nonzero(groups == 0) < 30 < 15_000 < np.count_nonzero(groups == 2)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [([9, 1], [0, 2]), ([5, 5, 5], [1, 1, 1]), ([0, 0], [3, 3]), ([10, *[1] * 40], [0, *[2] * 40])],
)
def test_frequency_groups_of_lopsided_counts(counts: list[int], expected: list[int]) -> None:
    assert frequency_groups(counts).tolist() == expected


@pytest.mark.parametrize("counts", [[[1]], [-1], [float("nan")], ["a"]])
def test_impossible_counts_are_refused(counts: Any) -> None:
    with pytest.raises(InvalidInput, match="train_label_counts"):
        frequency_groups(counts)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ks": []}, "ks is empty"),
        ({"ks": [6]}, "k is 6, but top_labels has 5 columns"),
        ({"train_label_counts": [1, 2]}, "2 counts for 30 labels"),
    ],
)
def test_impossible_requests_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        evaluate(CASE.truth, CASE.top, **arguments)


def test_json_holds_every_value_under_its_usual_name() -> None:
    report = full_report()
    read = json.loads(report.to_json())
    assert read == report.to_dict()
    assert read["metrics"]["PSnDCG@5"] == report["PSnDCG@5"]
    assert read["ks"] == [1, 3, 5]
    assert [group["name"] for group in read["groups"]] == ["head", "middle", "tail", "unseen"]
    assert read["groups"][2]["metrics"]["R@3"] == report.groups[2].metrics["R"][3]


def test_text_is_aligned_and_in_percent() -> None:
    truth = np.array([[1, 1, 0], [0, 0, 1], [1, 0, 0]])
    report = evaluate(truth, [[0, 2], [1, 2], [0, 1]], ks=[1, 2], train_label_counts=[1500, 40, 0])
    assert report.to_text().splitlines() == [
        "3 rows, 3 labels; values in percent",
        "",
        "             @1     @2",
        "P         66.67  50.00",
        "nDCG      66.67  74.80",
        "R         50.00  83.33",
        "F1        57.14  62.50",
        "coverage  33.33  66.67",
        "macro-P   33.33  50.00",
        "macro-R   33.33  66.67",
        "",
        "labels  number  with truth  train count  of truth    P@1    P@2     R@1     R@2  macro-P@2  macro-R@2",
        "head         1           1        1,500     50.00  66.67  33.33  100.00  100.00     100.00     100.00",
        "tail         1           1           40     25.00   0.00   0.00    0.00    0.00       0.00       0.00",
        "unseen       1           1            0     25.00   0.00  16.67    0.00  100.00      50.00     100.00",
    ]


def test_rows_without_labels_are_counted_and_said() -> None:
    report = evaluate([[1, 0], [0, 0], [0, 0]], [[0], [1], [0]], ks=[1])
    assert report.n_rows_without_labels == report.to_dict()["n_rows_without_labels"] == 2
    assert report["P@1"] == pytest.approx(1 / 3)
    assert report.to_text().startswith("3 rows (2 without any label, counted as 0), 2 labels; values in percent\n")


def test_text_shows_no_recall_where_the_truth_has_none() -> None:
    text = evaluate([[1, 0]], [[0]], ks=[1], train_label_counts=[3, 0]).to_text()
    assert text.splitlines()[-1].split() == ["unseen", "1", "0", "0", "0.00", "0.00", "-", "0.00", "-"]


@pytest.mark.parametrize("with_groups", [True, False])
def test_picture_is_a_png(tmp_path: Path, with_groups: bool) -> None:
    pytest.importorskip("matplotlib")
    report = full_report() if with_groups else evaluate(CASE.truth, CASE.top, ks=range(1, 6))
    report.save_picture(tmp_path / "report.png")
    content = (tmp_path / "report.png").read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    width = int.from_bytes(content[16:20], "big")
    assert width == (1650 if with_groups else 900)


def test_picture_under_another_ending_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    with pytest.raises(InvalidInput, match=r"end it in \.png"):
        full_report().save_picture(tmp_path / "report.svg")
    assert not list(tmp_path.iterdir())


def test_picture_without_matplotlib_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(Unavailable, match=r"pip install 'longtail\[plots\]'"):
        full_report().save_picture(tmp_path / "report.png")


def test_the_package_itself_offers_evaluate() -> None:
    assert longtail.evaluate is evaluate


def test_a_million_labels_are_judged_quickly() -> None:
    rng = np.random.default_rng(0)
    rows, labels = 100_000, 1_000_000
    truth = sparse.csr_array(
        (
            np.ones(5 * rows),
            np.sort(rng.integers(0, labels // 5, (rows, 5)) * 5 + np.arange(5), axis=1).ravel(),
            np.arange(0, 5 * rows + 1, 5),
        ),
        shape=(rows, labels),
    )
    top = rng.integers(0, labels // 5, (rows, 5)) * 5 + np.arange(5)
    counts = np.bincount(truth.indices, minlength=labels)
    start = time.process_time()
    evaluate(truth, top, inverse_propensity=metrics.inverse_propensity(counts, rows), train_label_counts=counts)
    # It takes about half a second; the bound only rules out a loop over rows or labels.
    assert time.process_time() - start < 5
