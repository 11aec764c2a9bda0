"""The baselines, on labels of low rank whose structure each must find, and against what they are by definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from longtail import Ridge
from longtail.metrics import ndcg_at_k
from longtail_papers.label_subset.baselines import (
    Regression,
    compressed_sensing,
    cplst,
    leml,
    matching_pursuit,
    ml_cssp,
)

TOPICS, COPIES = 6, 5


@pytest.fixture
def planted(rng: np.random.Generator) -> tuple[Any, Any, Any, Any]:
    """Rows of two of six topics, each topic with features and five labels of its own: Y has rank 6 out of 30."""
    topics = np.zeros((240, TOPICS))
    for row in topics:
        row[rng.choice(TOPICS, 2, replace=False)] = 1
    X = topics @ rng.normal(size=(TOPICS, 20)) + 0.05 * rng.normal(size=(240, 20))
    Y = np.repeat(topics, COPIES, axis=1).astype(int)
    return X[:160], Y[:160], X[160:], Y[160:]


def test_its_ridge_is_that_of_the_package(planted: tuple[Any, Any, Any, Any]) -> None:
    X, Y, _, _ = planted
    expected = Ridge(alpha=3.0, fit_intercept=True, solver="primal").fit(X, Y)
    regression = Regression(X, Y)
    np.testing.assert_allclose(regression.weights(regression.cross, 3.0), expected.coef_, atol=1e-5)


@pytest.mark.parametrize("method", [cplst, leml])
def test_as_many_targets_as_the_labels_have_rank_lose_nothing(method: Any, planted: tuple[Any, Any, Any, Any]) -> None:
    X, Y, test, truth = planted
    regression = Regression(X, Y)
    full = ndcg_at_k(truth, method(regression, TOPICS, 0.1).predict_topk(test, 10)[0], 10)
    half = ndcg_at_k(truth, method(regression, TOPICS // 2, 0.1).predict_topk(test, 10)[0], 10)
    assert full > 0.99
    assert half < full - 0.05


def test_cplst_with_every_direction_is_ridge(planted: tuple[Any, Any, Any, Any]) -> None:
    X, Y, test, _ = planted
    _, scores = cplst(Regression(X, Y), Y.shape[1], 2.0).predict_topk(test, 4)
    ridge = Ridge(alpha=2.0, fit_intercept=True).fit(X, Y).decision_function(test)
    np.testing.assert_allclose(scores, -np.sort(-ridge, axis=1)[:, :4], atol=1e-4)


def test_leml_with_full_rank_and_no_penalty_to_speak_of_is_least_squares(planted: tuple[Any, Any, Any, Any]) -> None:
    X, Y, test, _ = planted
    _, scores = leml(Regression(X, Y), Y.shape[1], 1e-6).predict_topk(test, 4)
    plain = Ridge(alpha=1e-6, fit_intercept=True).fit(X, Y).decision_function(test)
    np.testing.assert_allclose(scores, -np.sort(-plain, axis=1)[:, :4], atol=2e-2)


def test_every_sweep_of_leml_lowers_what_it_minimises(planted: tuple[Any, Any, Any, Any]) -> None:
    X, Y, _, _ = planted
    regression = Regression(X, Y)
    centred = Y - Y.mean(axis=0)
    values = []
    for sweeps in range(1, 6):
        model = leml(regression, 4, 1.0, sweeps=sweeps)
        error = centred - regression.fitted(model.weights) @ model.codes
        values.append((error**2).sum() + (model.weights**2).sum() + (model.codes**2).sum())
    assert (np.diff(values) <= 1e-6 * values[0]).all()
    assert values[-1] < values[0]


def test_ml_cssp_draws_labels_of_every_topic_and_decodes_their_copies(planted: tuple[Any, Any, Any, Any]) -> None:
    X, Y, test, truth = planted
    regression = Regression(X, Y)
    found = [ndcg_at_k(truth, ml_cssp(regression, 20, 0.1, seed).predict_topk(test, 10)[0], 10) for seed in range(3)]
    assert min(found) > 0.99


def test_ml_cssp_never_draws_a_label_without_rows(planted: tuple[Any, Any, Any, Any]) -> None:
    X, Y, test, _ = planted
    Y = np.hstack([Y, np.zeros((len(Y), 10), dtype=int)])
    labels, scores = ml_cssp(Regression(X, Y), 35, 0.1).predict_topk(test, 5)
    assert np.isfinite(scores).all()
    assert labels.max() < 30


def test_matching_pursuit_recovers_sparse_labels_from_their_projection(rng: np.random.Generator) -> None:
    projection = rng.normal(size=(40, 120)) / np.sqrt(40)
    truth = np.stack([rng.choice(120, 3, replace=False) for _ in range(50)])
    values = rng.uniform(1, 2, size=truth.shape)
    targets = np.einsum("ns,nst->nt", values, projection.T[truth])
    found, decoded = matching_pursuit(projection, targets, 3)
    exact = [set(a) == set(b) for a, b in zip(found.tolist(), truth.tolist(), strict=True)]
    assert np.mean(exact) >= 0.9
    row = exact.index(True)
    np.testing.assert_allclose(decoded[row][np.argsort(found[row])], values[row][np.argsort(truth[row])], atol=1e-6)


def test_compressed_sensing_finds_labels_of_separate_rows(rng: np.random.Generator) -> None:
    which = rng.integers(0, 25, size=400)
    X = np.eye(25)[which] + 0.05 * rng.normal(size=(400, 25))
    Y = np.eye(25, dtype=int)[which]
    model = compressed_sensing(Regression(X[:300], sparse.csr_array(Y[:300])), 15, 0.1, sparsity=3)
    labels, scores = model.predict_topk(X[300:], 5)
    assert ndcg_at_k(Y[300:], labels, 1) > 0.9
    assert (labels[:, 3:] == -1).all()
    assert (scores[:, 3:] == -np.inf).all()
