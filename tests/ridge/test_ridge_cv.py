"""RidgeCV: leave-one-out by formula equals leave-one-out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from longtail import Ridge, RidgeCV
from longtail.errors import NotEnoughMemory
from longtail.estimator.checks import planted
from longtail.metrics import ndcg_at_k
from longtail.parallel import split
from longtail.ridge.cost import Shape
from longtail.ridge.leave_one_out import FactoredPath, SpectralPath, leave_one_out
from longtail.ridge.problem import Problem
from longtail.ridge.solvers import Spectral
from longtail.validation import as_features, as_labels
from tests.ridge.test_ridge import exact, intercepts


def scores_without_each_row(X, Y, alpha, fit_intercept):
    """Refit without each row in turn, in float64."""
    X, Y = X.toarray().astype(np.float64), Y.toarray()
    scores = np.empty(Y.shape)
    for row in range(len(X)):
        rest = np.arange(len(X)) != row
        W, b = exact(X[rest], Y[rest], alpha, fit_intercept)
        scores[row] = X[row] @ W + b
    return scores


@intercepts
@pytest.mark.parametrize("side", ["primal", "dual"])
@pytest.mark.parametrize("form", ["spectral", "factored"])
def test_the_formula_equals_refitting_without_the_row(rng, side, form, fit_intercept):
    X, Y = planted(rng, 40, 15, 6)
    problem = Problem.build(as_features(X), as_labels(Y), fit_intercept)
    rows, alphas = np.array([0, 3, 4, 17, 39]), np.array([0.3, 2.0])
    if form == "spectral":
        path = SpectralPath(Spectral.of(problem, side, 1), rows, alphas)
    else:
        path = FactoredPath(problem, side, rows, alphas, 1)
    expected = [scores_without_each_row(X, Y, alpha, fit_intercept)[rows] for alpha in alphas]
    seen = 0
    for block in split(6, 4):
        for which, scores in leave_one_out(path, problem, rows, 2, block):
            np.testing.assert_allclose(scores, expected[which][:, block], atol=2e-5)
            seen += scores.size
    assert seen == 2 * 5 * 6


def test_alpha_is_the_one_that_ranks_best_without_each_row(rng):
    X, Y = planted(rng, 60, 20, 8)
    alphas = (0.01, 0.3, 3.0, 100.0)
    model = RidgeCV(alphas, k=3, sample=None).fit(X, Y)
    rows = np.flatnonzero(np.diff(Y.indptr))
    by_hand = []
    for alpha in alphas:
        scores = scores_without_each_row(X, Y, alpha, False)[rows]
        by_hand.append(ndcg_at_k(Y[rows], np.argsort(-scores, axis=1, kind="stable")[:, :3], 3))
    np.testing.assert_allclose(model.cv_scores_, by_hand, atol=1e-6)
    assert model.alpha_ == alphas[int(np.argmax(by_hand))]
    np.testing.assert_allclose(model.coef_, Ridge(model.alpha_).fit(X, Y).coef_, atol=1e-5)


def test_the_sample_is_seeded_and_only_samples(rng):
    X, Y = planted(rng, 200, 20, 8)
    one, same, other = (RidgeCV(sample=50, random_state=state).fit(X, Y).cv_scores_ for state in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_the_default_path_follows_the_scale_of_the_rows(rng):
    X, Y = planted(rng)
    small, large = RidgeCV().fit(X, Y), RidgeCV().fit(10 * X, Y)
    np.testing.assert_allclose(large.alphas_, 100 * small.alphas_, rtol=1e-5)
    np.testing.assert_allclose(large.cv_scores_, small.cv_scores_, atol=1e-6)


@pytest.mark.parametrize("metric", ["P", "nDCG", "PSP", "R"])
def test_any_metric_can_choose(rng, metric):
    model = RidgeCV((0.1, 10.0), metric=metric, k=2).fit(*planted(rng))
    assert model.cv_scores_.shape == (2,)
    assert (model.cv_scores_ > 0).all()


def test_many_alphas_use_one_eigendecomposition_and_few_use_factors(rng):
    X, Y = planted(rng, 150, 60, 5)
    few, many = (RidgeCV(np.geomspace(0.1, 10, count)) for count in (2, 200))
    for model, spectral in ((few, False), (many, True)):
        path = model.fit(X, Y).cheapest_path(Shape.of(as_features(X), as_labels(Y)))
        assert (path.algebra == "spectral") is spectral


def test_a_path_that_does_not_fit_in_memory_is_refused(rng, monkeypatch):
    X, Y = planted(rng)
    monkeypatch.setenv("LONGTAIL_MEMORY", "2K")
    with pytest.raises(NotEnoughMemory, match="path of alphas"):
        RidgeCV().fit(X, Y)


def test_identical_rows_have_full_leverage_without_harm():
    X = np.eye(4)
    model = RidgeCV((1e-6, 1.0)).fit(X, np.eye(4, dtype=int))
    assert np.isfinite(model.cv_scores_).all()
