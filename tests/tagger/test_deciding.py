"""`longtail.tagger.deciding`."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from longtail import LabelSubsetClassifier, LabelTree, OneVsRest, Ridge, RidgeCV
from longtail.choice import folds
from longtail.estimator import Estimator
from longtail.tagger import Aim, Decision, deciding
from longtail.tagger.deciding import rank_held_out


def rows(n_rows: int) -> tuple[sparse.csr_array, sparse.csr_array]:
    rng = np.random.default_rng(0)
    X = sparse.csr_array((rng.random((n_rows, 8)) < 0.3).astype(np.float32))
    return X, sparse.csr_array(X[:, :5].astype(np.int8))


def test_each_ranking_comes_from_a_learner_without_these_rows() -> None:
    X, Y = rows(200)
    found = rank_held_out(Ridge(), X, Y)
    assert found is not None
    parts = folds(200, 0)
    assert found.n_rows == sum(len(held) for held, _ in parts) == 200
    assert found.n_true == Y.nnz
    held, rest = parts[0]
    labels, scores = Ridge(alpha=0.75**0.5).fit(X[rest], Y[rest]).predict_topk(X[held], 5)
    np.testing.assert_array_equal(found.scores[: labels.size], scores.ravel())


@pytest.mark.parametrize(
    ("learner", "scaled"),
    [
        (Ridge(2.0), {"alpha": 1.5}),
        (OneVsRest(C=3.0), {"C": 4.0}),
        (LabelTree(C=3.0), {"C": 4.0}),
        (RidgeCV(), {"alphas": RidgeCV().alphas}),
        (LabelSubsetClassifier(Ridge(2.0), outlier_estimator=Ridge(4.0)), {"estimator__alpha": 1.5}),
        (LabelSubsetClassifier(Ridge(2.0), outlier_estimator=Ridge(4.0)), {"outlier_estimator__alpha": 3.0}),
    ],
)
def test_a_copy_for_some_rows_has_a_smaller_penalty(learner: Estimator, scaled: dict) -> None:
    copy = learner.copy_for("part1", penalty=0.75)
    assert not hasattr(copy, "n_labels_")
    assert copy.get_params() == {**learner.get_params(), **copy.get_params(), **scaled}


def test_copies_of_a_ridge_have_the_alpha_that_it_has_chosen() -> None:
    X, Y = rows(200)
    model = RidgeCV(alphas=(0.5, 40.0), fit_intercept=True).fit(X, Y)
    copy = model.copy_for("part1", penalty=0.5)
    assert copy.get_params() == {**model.get_params(), "alphas": (0.5 * model.alpha_,)}


@pytest.mark.parametrize("learner", [Ridge(30.0), OneVsRest(C=0.05)])
def test_the_probabilities_of_a_model_trained_on_all_rows_mean_what_they_say(learner: Estimator) -> None:
    rng = np.random.default_rng(0)
    X = (rng.random((2200, 30)) < 0.1).astype(np.float32)
    Y = sparse.csr_array(((X[:, :10] + (rng.random((2200, 10)) < 0.03)) * (rng.random((2200, 10)) < 0.7)) > 0)
    model = clone(learner).fit(X[:200], Y[:200])
    held_out = rank_held_out(model, sparse.csr_array(X[:200]), sparse.csr_array(Y[:200]))
    assert held_out is not None
    found = Decision.learn(held_out, Aim("count"), model.scores_are_probabilities)
    labels, scores = model.predict_topk(X[200:], 10)
    chances = found.probabilities(scores)
    assert chances.sum() == pytest.approx(Y[200:].nnz, rel=0.1)
    assert found.rule.given(chances, np.zeros_like(labels, dtype=bool)).sum() == pytest.approx(Y[200:].nnz, rel=0.15)


def test_learners_without_these_rows_weigh_the_others_and_every_held_out_row_counts_once() -> None:
    X, Y = rows(200)
    weights = np.random.default_rng(1).uniform(0.1, 9, 200).astype(np.float32)
    found = rank_held_out(Ridge(), X, Y, weights=weights)
    assert found is not None
    assert (found.n_rows, found.n_true) == (200, Y.nnz)
    held, rest = folds(200, 0)[0]
    ridge = Ridge(float(weights[rest].sum() / weights.sum()) ** 0.5)
    _, scores = ridge.fit(X[rest], Y[rest], sample_weight=weights[rest]).predict_topk(X[held], 5)
    np.testing.assert_array_equal(found.scores[: scores.size], scores.ravel())


def test_fitted_learners_save_training(monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y = rows(4000)
    [(_, rest), *_] = folds(4000, 0)
    fitted = Ridge().fit(X[rest], Y[rest])
    monkeypatch.setattr(Ridge, "fit", None)
    found = rank_held_out(Ridge(), X, Y, 0, [fitted])
    assert found is not None
    assert found.n_rows == 500


def test_many_rows_are_learned_from_in_part(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deciding, "_MOST_TRAINED", 500)
    caplog.set_level(logging.INFO, "longtail")
    X, Y = rows(4000)
    rank_held_out(Ridge(), X, Y)
    assert "training once more on 1,000 rows" in caplog.text


def test_what_cannot_be_trained_without_these_rows_leaves_it_to_the_learner(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "longtail")
    X, Y = rows(60)
    assert rank_held_out(Ridge(alpha=-1.0), X, Y) is None
    assert "as it cannot be learned" in caplog.text
