from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from longtail import metrics, native
from longtail.errors import InvalidInput

from .strategies import Case, cases

PLAIN: dict[str, Callable[[Any, Any, int], float]] = {
    "P": metrics.precision_at_k,
    "nDCG": metrics.ndcg_at_k,
    "R": metrics.recall_at_k,
    "F1": metrics.f1_at_k,
    "coverage": metrics.coverage_at_k,
    "macro-P": metrics.macro_precision_at_k,
    "macro-R": metrics.macro_recall_at_k,
}
WEIGHTED: dict[str, Callable[[Any, Any, int, Any], float]] = {
    "PSP": metrics.psp_at_k,
    "PSnDCG": metrics.psndcg_at_k,
}

# Four rows, five labels; row 2 has no true label, row 3 has fewer predictions than k.
TRUTH = np.array([[1, 1, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 0], [1, 0, 0, 0, 1]])
TOP = np.array([[1, 3, 0], [3, 0, 1], [0, 1, 2], [4, -1, -1]])
WEIGHTS = np.array([1.0, 2.0, 4.0, 3.0, 5.0])
HALF = 1 / math.log2(3)  # the discount of rank 2; that of rank 3 is exactly 1/2


def all_at(case: Case, top: Any, k: int) -> dict[str, float]:
    values = {name: metric(case.truth, top, k) for name, metric in PLAIN.items()}
    return values | {name: metric(case.truth, top, k, case.weights) for name, metric in WEIGHTED.items()}


@pytest.mark.parametrize(
    ("metric", "k", "expected"),
    [
        ("P", 1, 3 / 4),
        ("P", 3, (2 + 1 + 0 + 1) / (3 * 4)),
        ("R", 1, (1 / 3 + 1 + 0 + 1 / 2) / 4),
        ("R", 3, (2 / 3 + 1 + 0 + 1 / 2) / 4),
        ("F1", 3, 2 / (3 + 4 / (2 / 3 + 1 + 1 / 2))),
        ("nDCG", 1, 3 / 4),
        ("nDCG", 2, (1 / (1 + HALF) + 1 + 0 + 1 / (1 + HALF)) / 4),
        ("nDCG", 3, (1.5 / (1.5 + HALF) + 1 + 0 + 1 / (1 + HALF)) / 4),
        ("coverage", 1, 3 / 5),
        ("coverage", 3, 4 / 5),
        # At 3: label 0 right in 1 of 3, label 1 in 1 of 3, label 2 in 0 of 1, label 3 in 1 of 2, label 4 in 1 of 1.
        ("macro-P", 3, (1 / 3 + 1 / 3 + 0 + 1 / 2 + 1) / 5),
        ("macro-R", 3, (1 / 2 + 1 + 0 + 1 + 1) / 5),
    ],
)
def test_values_worked_out_by_hand(metric: str, k: int, expected: float) -> None:
    assert PLAIN[metric](TRUTH, TOP, k) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(
    ("metric", "k", "expected"),
    [
        # Hits weigh 2, 3, 5; the best single labels of the rows weigh 4, 3, 5.
        ("PSP", 1, (2 + 3 + 5) / (4 + 3 + 5)),
        ("PSP", 3, (2 + 1 + 3 + 5) / (4 + 2 + 1 + 3 + 5 + 1)),
        ("PSnDCG", 1, (2 + 3 + 5) / (4 + 3 + 5)),
        # Each row is divided by its own unweighted ideal: 1 + HALF, 1, -, 1 + HALF.
        (
            "PSnDCG",
            2,
            (2 / (1 + HALF) + 3 + 5 / (1 + HALF)) / ((4 + 2 * HALF) / (1 + HALF) + 3 + (5 + HALF) / (1 + HALF)),
        ),
        # Row 0 at 3: label 1 at rank 1, label 0 at rank 3; its ideal is 1 + HALF + 1/2.
        (
            "PSnDCG",
            3,
            ((2 + 1 / 2) / (1.5 + HALF) + 3 + 5 / (1 + HALF))
            / ((4 + 2 * HALF + 1 / 2) / (1.5 + HALF) + 3 + (5 + HALF) / (1 + HALF)),
        ),
    ],
)
def test_weighted_values_worked_out_by_hand(metric: str, k: int, expected: float) -> None:
    assert WEIGHTED[metric](TRUTH, TOP, k, WEIGHTS) == pytest.approx(expected, abs=1e-15)


@given(cases)
def test_every_value_lies_between_0_and_1(case: Case) -> None:
    for k in range(1, case.top.shape[1] + 1):
        for name, value in all_at(case, case.top, k).items():
            assert isinstance(value, float)
            assert 0 <= value <= 1, name


def oracle_ranking(case: Case, n_places: int) -> Any:
    """The true labels of each row, heaviest first, then -1."""
    top = np.full((len(case.truth), n_places), -1)
    for row, labels in enumerate(case.truth):
        best = sorted(np.flatnonzero(labels), key=lambda label: -case.weights[label])[:n_places]
        top[row, : len(best)] = best
    return top


@given(cases)
def test_precision_of_the_oracle_is_the_mean_of_the_row_sizes_cut_at_k(case: Case) -> None:
    top = oracle_ranking(case, 5)
    for k in (1, 3, 5):
        sizes = np.minimum(case.truth.sum(axis=1), k)
        assert metrics.precision_at_k(case.truth, top, k) == pytest.approx(sizes.mean() / k)


@given(cases)
def test_the_oracle_reaches_1_where_rows_have_labels(case: Case) -> None:
    top = oracle_ranking(case, 5)
    with_labels = case.truth.sum(axis=1) > 0
    for k in (1, 3, 5):
        assert metrics.ndcg_at_k(case.truth, top, k) == pytest.approx(with_labels.mean())
        if with_labels.any():
            assert metrics.psp_at_k(case.truth, top, k, case.weights) == pytest.approx(1)
            assert metrics.psndcg_at_k(case.truth, top, k, case.weights) == pytest.approx(1)
            assert metrics.ndcg_at_k(case.truth[with_labels], top[with_labels], k) == 1


@given(cases, st.floats(0.1, 50))
def test_with_equal_weights_psp_is_precision_over_the_best_precision(case: Case, weight: float) -> None:
    weights = np.full(case.truth.shape[1], weight)
    for k in range(1, case.top.shape[1] + 1):
        best = np.minimum(case.truth.sum(axis=1), k).mean() / k
        expected = metrics.precision_at_k(case.truth, case.top, k) / best if best else 0
        assert metrics.psp_at_k(case.truth, case.top, k, weights) == pytest.approx(expected)


@given(cases, st.floats(0.01, 100))
def test_scaling_all_weights_changes_nothing(case: Case, factor: float) -> None:
    for metric in WEIGHTED.values():
        value = metric(case.truth, case.top, 1, case.weights)
        assert metric(case.truth, case.top, 1, factor * case.weights) == pytest.approx(value)


@given(cases, st.integers(0, 1000), st.data())
def test_strictly_increasing_maps_of_a_rows_scores_change_nothing(case: Case, seed: int, data: st.DataObject) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.integers(-4, 5, case.truth.shape).astype(np.float32)
    k = data.draw(st.integers(1, case.truth.shape[1]))
    # Small whole numbers, powers of two and cubes are exact, so ties stay ties and nothing else becomes one.
    mapped = scores**3 * 2.0 ** rng.integers(-3, 4, (len(scores), 1)) + rng.integers(-8, 9, (len(scores), 1))
    assert all_at(case, top_of(scores, k), k) == all_at(case, top_of(mapped.astype(np.float32), k), k)


def top_of(scores: Any, k: int) -> Any:
    labels = np.full((len(scores), k), -1, dtype=np.int64)
    native.twins.update_topk(scores, 0, None, labels, np.full((len(scores), k), -np.inf, dtype=np.float32))
    return labels


@given(cases, st.integers(0, 1000))
def test_order_inside_the_top_k_matters_only_to_the_discounted_metrics(case: Case, seed: int) -> None:
    k = case.top.shape[1]
    order = np.argsort(np.where(case.top < 0, 2, np.random.default_rng(seed).random(case.top.shape)), axis=1)
    before = all_at(case, case.top, k)
    after = all_at(case, np.take_along_axis(case.top, order, axis=1), k)
    for name in before.keys() - {"nDCG", "PSnDCG"}:
        assert after[name] == pytest.approx(before[name])


def test_a_hit_at_rank_2_gains_less_than_one_at_rank_1() -> None:
    truth = [[0, 1, 0]]
    assert metrics.ndcg_at_k(truth, [[1, 0]], 2) == 1
    assert metrics.ndcg_at_k(truth, [[0, 1]], 2) == pytest.approx(HALF)
    assert metrics.psndcg_at_k(truth, [[0, 1]], 2, [1, 2, 3]) == pytest.approx(HALF)


@given(cases)
def test_what_the_truth_is_stored_as_does_not_matter(case: Case) -> None:
    expected = all_at(case, case.top, 1)
    csr = case.csr
    backwards = csr.indices.astype(np.int64)
    for start, stop in pairwise(csr.indptr):
        backwards[start:stop] = backwards[start:stop][::-1]
    shuffled = sparse.csr_array((csr.data, backwards, csr.indptr.astype(np.int64)), shape=csr.shape)
    for form in (csr, sparse.csr_matrix(csr), sparse.coo_array(csr), case.truth.astype(bool), shuffled):
        assert all_at(Case(form, case.top, case.weights), case.top, 1) == expected


def test_a_truth_without_any_label_gives_0_everywhere() -> None:
    case = Case(np.zeros((3, 4), dtype=np.int64), np.array([[0, 1], [2, -1], [-1, -1]]), np.ones(4))
    assert set(all_at(case, case.top, 2).values()) == {0.0}


def test_labels_far_apart_do_not_collide() -> None:
    rows, labels = 50_000, 1_000_000_000
    truth = sparse.csr_array(([1.0], ([rows - 1], [labels - 1])), shape=(rows, labels))
    top = np.full((rows, 1), labels - 1)
    assert metrics.precision_at_k(truth, top, 1) == 1 / rows
    top[-1] = 0
    assert metrics.precision_at_k(truth, top, 1) == 0


@pytest.mark.parametrize(
    ("top", "k", "message"),
    [
        ([[0, 1]], 3, "k is 3, but top_labels has 2 columns"),
        ([[0, 1]], 0, "k is 0"),
        ([[0, 0]], 1, "label id 0 twice in row 0"),
        ([[0, 3]], 1, r"label id 3 in row 0; expected ids in 0\.\.2"),
        ([[0, -2]], 1, "label id -2 in row 0"),
        ([[-1, 0]], 1, "a label after -1 in row 0"),
        ([[0.0, 1.0]], 1, "dtype float64"),
        ([0, 1], 1, "1 dimensions"),
        ([[0], [1]], 1, "2 rows for 1 rows of truth"),
        (np.array([[2**64 - 1, 0]], dtype=np.uint64), 1, "label id 18446744073709551615"),
    ],
)
def test_rankings_that_make_no_sense_are_refused(top: Any, k: int, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        metrics.precision_at_k([[1, 0, 1]], top, k)


@pytest.mark.parametrize(
    "weights", [[1.0, 2.0], [1.0, 2.0, 0.0], [1.0, 2.0, np.nan], [[1.0, 2.0, 3.0]], ["a", "b", "c"]]
)
def test_weights_that_make_no_sense_are_refused(weights: Any) -> None:
    with pytest.raises(InvalidInput, match="inverse_propensity"):
        metrics.psp_at_k([[1, 0, 1]], [[0]], 1, weights)


def test_no_rows_are_refused() -> None:
    with pytest.raises(InvalidInput, match="no rows"):
        metrics.precision_at_k(np.zeros((0, 3)), np.zeros((0, 1), dtype=int), 1)
