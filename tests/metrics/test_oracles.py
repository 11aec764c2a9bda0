"""Our metrics compared with two independent implementations, napkinXC and scikit-learn."""

from __future__ import annotations

import gzip
import io
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_svmlight_file
from sklearn.metrics import precision_score, recall_score

from longtail import metrics

from .strategies import Case, make_case

CASES = {
    "dense truth": make_case(0, 60, 25, 5, density=0.3, cut=0),
    "sparse truth, rows without labels": make_case(1, 80, 40, 5, density=0.03, cut=0),
    "rankings that end early": make_case(2, 60, 25, 5, density=0.2, cut=0.7),
    "fewer labels than places": make_case(3, 30, 3, 5, density=0.5, cut=0.5),
    "more labels per row than places": make_case(4, 30, 40, 5, density=0.8, cut=0.2),
}
KS = (1, 2, 3, 4, 5)


@pytest.fixture(params=CASES, ids=lambda name: name.replace(" ", "-"))
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture
def napkinxc() -> Any:
    return pytest.importorskip("napkinxc.metrics")


def as_lists(case: Case) -> tuple[list[list[int]], list[list[int]]]:
    truth = [np.flatnonzero(row).tolist() for row in case.truth]
    top = [[label for label in row if label >= 0] for row in case.top.tolist()]
    return truth, top


@pytest.mark.parametrize("name", ["precision_at_k", "recall_at_k", "ndcg_at_k", "coverage_at_k"])
def test_napkinxc_agrees(napkinxc: Any, case: Case, name: str) -> None:
    theirs = getattr(napkinxc, name)(*as_lists(case), k=5)
    ours = [getattr(metrics, name)(case.truth, case.top, k) for k in KS]
    assert ours == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize(("name", "their_name"), [("psp_at_k", "psprecision_at_k"), ("psndcg_at_k", "psndcg_at_k")])
def test_napkinxc_agrees_on_propensity_scored_metrics(napkinxc: Any, case: Case, name: str, their_name: str) -> None:
    theirs = getattr(napkinxc, their_name)(*as_lists(case), case.weights, k=5)
    ours = [getattr(metrics, name)(case.truth, case.top, k, case.weights) for k in KS]
    assert ours == pytest.approx(theirs, abs=1e-12)


def test_napkinxc_agrees_on_f1_from_its_means(napkinxc: Any, case: Case) -> None:
    """napkinXC has no such F1 at k (only micro, macro and a mean over rows), but it has both parts."""
    precision = napkinxc.precision_at_k(*as_lists(case), k=5)
    recall = napkinxc.recall_at_k(*as_lists(case), k=5)
    ours = [metrics.f1_at_k(case.truth, case.top, k) for k in KS]
    assert ours == pytest.approx(2 * precision * recall / (precision + recall), abs=1e-12)


def test_napkinxc_agrees_on_macro_metrics(napkinxc: Any, case: Case) -> None:
    """Two differences in convention.

    napkinXC's macro metrics average over the labels up to the largest id seen, ours over all columns of the truth;
    and it counts a label without true rows as recall 0, while ours leaves it out. Its `k` is always 5.
    """
    truth, top = as_lists(case)
    seen = 1 + max(label for row in truth + top for label in row)
    true_labels = np.count_nonzero(case.truth.any(axis=0))
    macro_precision = napkinxc.macro_precision_at_k(truth, top, k=5) * seen / case.truth.shape[1]
    macro_recall = napkinxc.macro_recall_at_k(truth, top, k=5) * seen / true_labels
    # At 1 napkinXC can fail on an empty table of false negatives, so only the last place is compared.
    assert metrics.macro_precision_at_k(case.truth, case.top, 5) == pytest.approx(macro_precision[-1], abs=1e-12)
    assert metrics.macro_recall_at_k(case.truth, case.top, 5) == pytest.approx(macro_recall[-1], abs=1e-12)


def test_scikit_learn_agrees_on_macro_metrics(case: Case) -> None:
    """The top k as a prediction; scikit-learn averages over the columns it gets."""
    for k in KS:
        predicted = np.zeros_like(case.truth)
        rows, places = np.nonzero(case.top[:, :k] >= 0)
        predicted[rows, case.top[rows, places]] = 1
        theirs = precision_score(case.truth, predicted, average="macro", zero_division=0)
        assert metrics.macro_precision_at_k(case.truth, case.top, k) == pytest.approx(theirs)
        true = case.truth.any(axis=0)
        theirs = recall_score(case.truth[:, true], predicted[:, true], average="macro", zero_division=0)
        assert metrics.macro_recall_at_k(case.truth, case.top, k) == pytest.approx(theirs)


@pytest.mark.parametrize(("a", "b"), [(0.55, 1.5), (0.5, 0.4), (0.6, 2.6)])
def test_napkinxc_agrees_on_propensities(napkinxc: Any, case: Case, a: float, b: float) -> None:
    """Only from 3 rows on: with fewer napkinXC's constant C is negative, ours is 0."""
    counts = case.truth.sum(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        truth = sparse.csr_matrix(case.truth)
    n_rows = len(case.truth)
    theirs = np.asarray(napkinxc.Jain_et_al_inverse_propensity(truth, A=a, B=b))
    assert metrics.inverse_propensity(counts, n_rows, a, b) == pytest.approx(theirs, rel=1e-12)
    assert metrics.propensity(counts, n_rows, a, b) == pytest.approx(1 / theirs, rel=1e-12)


@pytest.mark.parametrize(
    ("ridge", "weighted", "precision", "psp"),
    [
        (92, False, (63.10, 39.76, 29.15), (48.28, 53.28, 58.97)),
        (93, True, (65.92, 41.06, 29.73), (52.40, 56.28, 61.05)),
    ],
)
def test_known_values_of_ridge_regression_on_bibtex(
    benchmark_data: Callable[[str], Path],
    ridge: float,
    weighted: bool,
    precision: tuple[float, ...],
    psp: tuple[float, ...],
) -> None:
    """A table computed once with other code; ridge regression is deterministic, so only rounding may differ."""
    folder = benchmark_data("bibtex")
    features, truth = read_repository_text(folder / "train.txt.gz")
    test_features, test_truth = read_repository_text(folder / "test.txt.gz")
    counts = truth.sum(axis=0)
    weights = metrics.inverse_propensity(counts, len(truth))
    gram = features.T @ features + ridge * np.eye(features.shape[1])
    scores = test_features @ np.linalg.solve(gram, features.T @ truth)
    top = np.argsort(-scores * (weights if weighted else 1), axis=1, kind="stable")[:, :5]
    report = metrics.evaluate(test_truth, top, inverse_propensity=weights)
    assert [100 * report[f"P@{k}"] for k in (1, 3, 5)] == pytest.approx(precision, abs=0.02)
    assert [100 * report[f"PSP@{k}"] for k in (1, 3, 5)] == pytest.approx(psp, abs=0.02)


def read_repository_text(path: Path) -> tuple[Any, Any]:
    header, _, body = gzip.decompress(path.read_bytes()).partition(b"\n")
    _, n_features, n_labels = map(int, header.split())
    features, labels = load_svmlight_file(io.BytesIO(body), n_features=n_features, multilabel=True, zero_based=True)
    truth = np.zeros((len(labels), n_labels))
    for row, row_labels in enumerate(labels):
        truth[row, np.array(row_labels, dtype=int)] = 1
    return features.toarray(), truth
