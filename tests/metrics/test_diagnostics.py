"""Reliability, single labels, confusions and intervals, compared with loops over all rows and labels."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.errors import InvalidInput
from longtail.metrics import (
    LabelScores,
    confused_pairs,
    f1_at_k,
    frequency_bands,
    intervals_at_k,
    ndcg_at_k,
    precision_at_k,
    psp_at_k,
    recall_at_k,
    reliability,
)
from longtail.metrics.confusion import Mistakes
from longtail.metrics.judgement import Judgement

from .strategies import Case, cases, make_case


def count_pairs(case: Case, k: int) -> dict[tuple[int, int], int]:
    found: dict[tuple[int, int], int] = {}
    for true, top in zip(case.truth, case.top[:, :k].tolist(), strict=True):
        for missed in np.flatnonzero(true):
            for label in top:
                if missed not in top and label >= 0 and not true[label]:
                    found[int(missed), label] = found.get((int(missed), label), 0) + 1
    return found


@given(cases, st.integers(1, 12), st.integers(1, 30))
def test_confused_pairs_are_the_largest_of_all_pairs(case: Case, most: int, pairs_at_once: int) -> None:
    k = case.top.shape[1]
    expected = sorted((-count, *pair) for pair, count in count_pairs(case, k).items())[:most]
    mistakes = Mistakes(Judgement.of(case.csr, case.top), k)
    # The pairs do not depend on the size of the blocks.
    for found in (confused_pairs(case.csr, case.top, k, most), mistakes.pairs(most, pairs_at_once)):
        assert [(-pair.count, pair.missed, pair.given) for pair in found] == expected
        for pair in found:
            assert pair.share == pytest.approx(pair.count / case.truth[:, pair.missed].sum())


@given(cases)
def test_what_was_given_instead_of_a_label(case: Case) -> None:
    k = case.top.shape[1]
    mistakes = Mistakes(Judgement.of(case.csr, case.top), k)
    for label in range(case.truth.shape[1]):
        pairs = [(-count, given) for (missed, given), count in count_pairs(case, k).items() if missed == label]
        assert [(-pair.count, pair.given) for pair in mistakes.of(label, 3)] == sorted(pairs)[:3]


@given(cases)
def test_scores_of_single_labels(case: Case) -> None:
    k = case.top.shape[1]
    scores = LabelScores.of(Judgement.of(case.csr, case.top), k)
    for label in range(case.truth.shape[1]):
        is_true = case.truth[:, label] > 0
        is_given = (case.top == label).any(axis=1)
        both = int((is_true & is_given).sum())
        assert (scores.true[label], scores.given[label], scores.found[label]) == (is_true.sum(), is_given.sum(), both)
        total = is_true.sum() + is_given.sum()
        assert scores.f1[label] == pytest.approx(2 * both / total if total else 0)
        assert scores.recall[label] == pytest.approx(both / is_true.sum() if is_true.any() else 0)
        assert scores.precision[label] == pytest.approx(both / is_given.sum() if is_given.any() else 0)
    worst = scores.worst(3, least_true=2).tolist()
    among = [label for label in range(case.truth.shape[1]) if scores.true[label] >= 2]
    assert worst == sorted(among, key=lambda label: (scores.f1[label], -scores.true[label], label))[:3]


@given(st.lists(st.integers(0, 5000), min_size=1, max_size=30))
def test_bands_part_the_labels_by_powers_of_two(counts: list[int]) -> None:
    true = np.arange(len(counts))
    scores = LabelScores(5, true, true + 1, np.zeros(len(counts), dtype=np.int64))
    bands = frequency_bands(scores, np.array(counts))
    assert sum(band.n_labels for band in bands) == len(counts)
    assert sum(band.true for band in bands) == true.sum()
    for before, after in pairwise(bands):
        assert before.high < after.low
    for count in counts:
        [band] = [band for band in bands if band.low <= count <= band.high]
        assert band.high == max(0, 2 * band.low - 1)


def test_bands_without_truth_have_no_recall() -> None:
    scores = LabelScores(5, np.array([0, 2]), np.array([0, 4]), np.array([0, 1]))
    first, second = frequency_bands(scores, np.array([1, 8]))
    assert (first.precision, first.recall) == (None, None)
    assert (second.precision, second.recall) == (0.25, 0.5)
    with pytest.raises(InvalidInput, match="a count for each of the 2 labels"):
        frequency_bands(scores, np.array([1]))


given_labels = st.lists(st.tuples(st.sampled_from([0.1, 0.2, 0.25, 0.5, 0.9, 1.5]), st.booleans()), max_size=60)


@given(given_labels, st.integers(1, 12))
def test_bins_part_the_scores_in_order(labels: list[tuple[float, bool]], n_bins: int) -> None:
    scores, right = [score for score, _ in labels], [hit for _, hit in labels]
    found = reliability(scores, right, n_bins)
    assert found.count == len(labels)
    assert len(found.bins) <= n_bins
    error = 0.0
    for each in found.bins:
        inside = [(score, hit) for score, hit in labels if each.low <= score <= each.high]
        assert len(inside) == each.count
        assert each.mean_score == pytest.approx(np.mean([score for score, _ in inside]))
        assert each.share_right == pytest.approx(np.mean([hit for _, hit in inside]))
        error += len(inside) / len(labels) * abs(each.mean_score - each.share_right)
    assert found.error == pytest.approx(error)
    turned = reliability(scores[::-1], right[::-1], n_bins)
    assert [(each.low, each.high, each.count) for each in turned.bins] == [
        (each.low, each.high, each.count) for each in found.bins
    ]


def test_bins_have_equal_counts_where_scores_differ() -> None:
    scores = np.random.default_rng(0).random(1000)
    found = reliability(scores, scores > 0.5, 10)
    assert [each.count for each in found.bins] == [100] * 10


def test_scores_that_are_probabilities_have_a_small_error() -> None:
    rng = np.random.default_rng(0)
    scores = rng.random(50_000)
    assert reliability(scores, rng.random(50_000) < scores).error < 0.01
    assert reliability(scores, rng.random(50_000) < scores / 2).error == pytest.approx(0.25, abs=0.01)


def test_places_without_a_label_are_refused() -> None:
    with pytest.raises(InvalidInput, match="NaN or infinite"):
        reliability([0.5, -np.inf], [True, False])
    with pytest.raises(InvalidInput, match="2 scores for 1 judgements"):
        reliability([0.5, 0.1], [True])


@given(cases)
def test_intervals_are_around_the_metrics(case: Case) -> None:
    k = case.top.shape[1]
    found = intervals_at_k(case.csr, case.top, k, case.weights)
    assert found["P"].value == precision_at_k(case.csr, case.top, k)
    assert found["nDCG"].value == ndcg_at_k(case.csr, case.top, k)
    assert found["R"].value == recall_at_k(case.csr, case.top, k)
    assert found["F1"].value == f1_at_k(case.csr, case.top, k)
    assert found["PSP"].value == psp_at_k(case.csr, case.top, k, case.weights)
    for each in found.values():
        assert 0 <= each.low <= each.value <= each.high <= 1


def test_intervals_are_as_wide_as_the_spread_over_samples_of_rows() -> None:
    case = make_case(5, 400, 12, 3, density=0.25)
    rng = np.random.default_rng(0)
    samples = []
    for _ in range(300):
        rows = rng.integers(0, 400, 400)
        truth, top = case.csr[rows], case.top[rows]
        samples.append([f1_at_k(truth, top, 3), psp_at_k(truth, top, 3, case.weights), ndcg_at_k(truth, top, 3)])
    found = intervals_at_k(case.csr, case.top, 3, case.weights)
    for metric, spread in zip(("F1", "PSP", "nDCG"), np.std(samples, axis=0), strict=True):
        assert (found[metric].high - found[metric].low) / 2 == pytest.approx(1.96 * spread, rel=0.2)
