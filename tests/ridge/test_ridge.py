"""Ridge: the facts of its maths, checked in float64."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from longtail import Ridge, load
from longtail.errors import InvalidInput, NotEnoughMemory
from longtail.estimator.checks import planted
from longtail.metrics import inverse_propensity
from longtail.ridge.conjugate import basis_size


def exact(X, Y, alpha, fit_intercept=False):
    """Weights and intercept in float64, straight from the normal equations."""
    X, Y = (np.asarray(M.toarray() if sparse.issparse(M) else M, dtype=np.float64) for M in (X, Y))
    mean, label_mean = (X.mean(axis=0), Y.mean(axis=0)) if fit_intercept else (0, 0)
    Xc, Yc = X - mean, Y - label_mean
    W = np.linalg.solve(Xc.T @ Xc + alpha * np.eye(X.shape[1]), Xc.T @ Yc)
    return W, label_mean - mean @ W if fit_intercept else np.zeros(Y.shape[1])


solvers = pytest.mark.parametrize("solver", ["primal", "dual", "cg"])
intercepts = pytest.mark.parametrize("fit_intercept", [False, True])


@solvers
@intercepts
@pytest.mark.parametrize("shape", [(80, 30), (25, 60)])
def test_every_solver_gives_the_closed_form(rng, solver, fit_intercept, shape):
    X, Y = planted(rng, *shape)
    model = Ridge(0.7, solver=solver, fit_intercept=fit_intercept, tol=1e-6).fit(X, Y)
    W, b = exact(X, Y, 0.7, fit_intercept)
    np.testing.assert_allclose(model.coef_, W, atol=2e-5)
    np.testing.assert_allclose(model.intercept_, b, atol=2e-5)
    assert model.solver_ == solver


@intercepts
@pytest.mark.parametrize("weighting", [None, "target"])
def test_the_score_is_the_sum_of_the_contributions(rng, fit_intercept, weighting):
    X, Y = planted(rng)
    model = Ridge(fit_intercept=fit_intercept, weighting=weighting).fit(X, Y)
    for row, label in ((0, 0), (3, 2), (7, 11)):
        found = model.explain(X[[row]], label)
        assert found.score == pytest.approx(found.margin)


@intercepts
@pytest.mark.parametrize("weighting", [None, "loss"])
def test_conjugate_gradients_with_a_basis_give_the_closed_form(rng, fit_intercept, weighting):
    X, Y = planted(rng, 300, 160, 64)
    settings = {"fit_intercept": fit_intercept, "weighting": weighting}
    direct = Ridge(0.7, solver="primal", **settings).fit(X, Y)
    found = Ridge(0.7, solver="cg", tol=1e-6, block_size=30, **settings).fit(X, Y)
    np.testing.assert_allclose(found.coef_, direct.coef_, atol=3e-5)
    assert basis_size(300, 160, 64) == 16


def test_a_basis_of_the_largest_directions_saves_iterations(rng, monkeypatch):
    X = rng.normal(size=(400, 200)) @ np.diag(np.geomspace(30, 0.3, 200)) @ np.linalg.qr(rng.normal(size=(200, 200)))[0]
    Y = (X @ rng.normal(size=(200, 80)) > 0).astype(int)
    with_basis = Ridge(1.0, solver="cg").fit(X, Y).n_iter_
    monkeypatch.setattr("longtail.ridge.conjugate._LARGEST_BASIS", 0)
    assert with_basis < Ridge(1.0, solver="cg").fit(X, Y).n_iter_


@given(st.integers(0, 2**32 - 1), st.floats(0.05, 50))
def test_primal_and_dual_are_the_same(seed, alpha):
    X, Y = planted(np.random.default_rng(seed), 30, 20, 5)
    one, other = (Ridge(alpha, solver=solver).fit(X, Y).coef_ for solver in ("primal", "dual"))
    np.testing.assert_allclose(one, other, atol=3e-5)


@given(st.integers(0, 2**32 - 1))
def test_scaled_targets_are_scaled_scores(seed):
    X, Y = planted(np.random.default_rng(seed), 30, 20, 5)
    theta = inverse_propensity(np.asarray(Y.sum(axis=0)), 30)
    W, _ = exact(X, Y, 1.0)
    W_weighted, _ = exact(X, Y.toarray() * theta, 1.0)
    np.testing.assert_allclose(W_weighted, W * theta, atol=1e-12)
    plain = Ridge(1.0).fit(X, Y)
    weighted = Ridge(1.0, weighting="target").fit(X, Y)
    np.testing.assert_allclose(weighted.decision_function(X), X @ W_weighted, atol=1e-4)
    for one, other in zip(plain.predict_topk(X, weighting="target"), weighted.predict_topk(X), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(weighted.predict_topk(X, weighting=None)[1], plain.predict_topk(X)[1])


@solvers
def test_the_gradient_vanishes_at_the_solution(rng, solver):
    X, Y = planted(rng)
    W = Ridge(0.5, solver=solver, tol=1e-6).fit(X, Y).coef_.astype(np.float64)
    gradient = X.T @ (X @ W - Y.toarray()) + 0.5 * W
    assert np.abs(gradient).max() < 1e-4


def test_a_huge_alpha_makes_a_vote_of_neighbours(rng):
    X, Y = planted(rng)
    alpha = 1e6
    W = alpha * Ridge(alpha).fit(X, Y).coef_.astype(np.float64)
    np.testing.assert_allclose(W, (X.T @ Y).toarray(), rtol=1e-3, atol=1e-3)


def test_weights_shrink_and_training_error_grows_with_alpha(rng):
    X, Y = planted(rng)
    models = [Ridge(alpha).fit(X, Y) for alpha in (0.1, 0.5, 2, 10, 50)]
    norms = [np.linalg.norm(model.coef_) for model in models]
    errors = [np.linalg.norm(model.decision_function(X) - Y.toarray()) for model in models]
    assert (np.diff(norms) < 0).all()
    assert (np.diff(errors) > 0).all()


def test_rows_twice_and_alpha_doubled_change_nothing(rng):
    X, Y = planted(rng)
    once = Ridge(0.8).fit(X, Y).coef_
    twice = Ridge(1.6).fit(sparse.vstack([X, X]), sparse.vstack([Y, Y])).coef_
    np.testing.assert_allclose(once, twice, atol=1e-5)


def test_rotating_the_features_leaves_the_scores(rng):
    X, Y = planted(rng)
    rotation, _ = np.linalg.qr(rng.normal(size=(30, 30)))
    turned = X.toarray() @ rotation
    np.testing.assert_allclose(
        Ridge(0.8).fit(turned, Y).decision_function(turned), Ridge(0.8).fit(X, Y).decision_function(X), atol=2e-5
    )


@pytest.mark.parametrize("identity", [{"prune": 0.0}, {"density": 1.0}])
def test_keeping_everything_is_the_identity(rng, identity):
    X, Y = planted(rng)
    np.testing.assert_array_equal(Ridge(**identity).fit(X, Y).coef_, Ridge().fit(X, Y).coef_)


@solvers
def test_labels_do_not_know_of_each_other(rng, solver):
    X, Y = planted(rng)
    whole = Ridge(solver=solver, tol=1e-6).fit(X, Y).coef_
    order = rng.permutation(12)
    for size in (1, 5, 64):
        shuffled = Ridge(solver=solver, tol=1e-6, block_size=size).fit(X, Y[:, order]).coef_
        np.testing.assert_allclose(shuffled, whole[:, order], atol=1e-5)


@solvers
@intercepts
def test_weighting_the_loss_divides_alpha_label_by_label(rng, solver, fit_intercept):
    X, Y = planted(rng)
    model = Ridge(0.9, solver=solver, weighting="loss", fit_intercept=fit_intercept, tol=1e-6).fit(X, Y)
    theta = inverse_propensity(np.asarray(Y.sum(axis=0)), X.shape[0])
    for label in range(12):
        W, _ = exact(X, Y[:, [label]], 0.9 / theta[label], fit_intercept)
        np.testing.assert_allclose(model.coef_[:, [label]], W, atol=3e-5)


def test_without_a_penalty_the_solution_has_the_smallest_norm(rng):
    X = rng.normal(size=(8, 20))
    Y = (rng.random((8, 3)) < 0.4).astype(int)
    for solver in ("primal", "dual", "auto"):
        W = Ridge(0.0, solver=solver).fit(X, Y).coef_
        np.testing.assert_allclose(W, np.linalg.pinv(X) @ Y, atol=1e-4)


def test_an_ill_conditioned_matrix_is_still_solved(rng):
    X = np.repeat(rng.normal(size=(40, 5)), 4, axis=1) * 1000
    Y = (X[:, :3] > 0).astype(int)
    model = Ridge(1e-4, solver="primal").fit(X, Y)
    W, _ = exact(X, Y, 1e-4)
    np.testing.assert_allclose(model.decision_function(X), X @ W, atol=1e-3)


@pytest.mark.parametrize("offset", [1, 10, 100])
@pytest.mark.parametrize("shape", [(100, 30), (30, 100)])
@pytest.mark.parametrize("solver", ["auto", "primal", "dual"])
def test_features_far_from_zero_are_centred_without_loss(rng, offset, shape, solver):
    X = rng.random(shape) + offset
    Y = (rng.random((shape[0], 3)) < 0.4).astype(int)
    W, b = exact(X.astype(np.float32), Y, 1.0, fit_intercept=True)
    model = Ridge(1.0, solver=solver, fit_intercept=True).fit(X, Y)
    np.testing.assert_allclose(model.decision_function(X), X @ W + b, atol=0.01)


def test_features_of_very_different_scales_are_solved(rng):
    X = rng.normal(size=(150, 12)) * np.geomspace(1e-2, 1e3, 12)
    Y = (X[:, :4] > 0).astype(int)
    W, _ = exact(X.astype(np.float32), Y, 1.0)
    for solver in ("auto", "primal", "dual"):
        found = Ridge(1.0, solver=solver).fit(X, Y)
        np.testing.assert_allclose(found.decision_function(X), X @ W, atol=0.01)


def test_features_too_large_for_sums_are_refused():
    with pytest.raises(InvalidInput, match="scale the features"):
        Ridge().fit(np.eye(3) * 1e20, np.eye(3, dtype=int))


def test_asking_for_a_plan_leaves_a_fitted_model_alone(rng):
    X, Y = planted(rng)
    model = Ridge(weighting="target").fit(X, Y)
    before = model.predict_topk(X)[1]
    model.memory_plan(X[:20], Y[:20])
    np.testing.assert_array_equal(model.predict_topk(X)[1], before)


def test_rows_added_without_solving_are_saved_solved(rng, tmp_path):
    import longtail

    X, Y = planted(rng)
    model = Ridge().partial_fit(X[:40], Y[:40, :5]).partial_fit(X[40:], Y[40:], solve=False)
    model.save(tmp_path / "model")
    assert longtail.load(tmp_path / "model").n_labels_ == 12


def test_an_updatable_model_needs_the_primal_side(rng):
    with pytest.raises(InvalidInput, match="'dual'"):
        Ridge(solver="dual", updatable=True).fit(*planted(rng))


@intercepts
def test_updates_equal_a_fit_on_everything(rng, fit_intercept, tmp_path):
    import longtail

    X, Y = planted(rng, 90)
    dense = Y.toarray()
    dense[:60, 9:] = 0
    together = Ridge(0.6, fit_intercept=fit_intercept).fit(X, dense)
    model = Ridge(0.6, fit_intercept=fit_intercept, updatable=True).fit(X[:40], dense[:40, :9])
    model.partial_fit(X[40:60], dense[40:60, :9], solve=False)
    model.save(tmp_path / "model")
    model = longtail.load(tmp_path / "model").partial_fit(X[60:], dense[60:])
    np.testing.assert_allclose(model.coef_, together.coef_, atol=1e-5)
    np.testing.assert_allclose(model.intercept_, together.intercept_, atol=1e-5)
    np.testing.assert_allclose(model.inverse_propensity_, together.inverse_propensity_)
    assert model.n_labels_ == 12


def test_updates_may_begin_a_model_and_may_have_fewer_labels(rng):
    X, Y = planted(rng)
    model = Ridge(0.6).partial_fit(X[:50], Y[:50]).partial_fit(X[50:], Y[50:, :3])
    dense = Y.toarray()
    dense[50:, 3:] = 0
    np.testing.assert_allclose(model.coef_, Ridge(0.6).fit(X, dense).coef_, atol=1e-5)


def test_updates_that_cannot_be_exact_are_refused(rng):
    X, Y = planted(rng)
    with pytest.raises(InvalidInput, match="updatable=True"):
        Ridge().fit(X, Y).partial_fit(X, Y)
    with pytest.raises(InvalidInput, match="expecting 30 features"):
        Ridge().partial_fit(X, Y).partial_fit(X[:, :4], Y)
    with pytest.raises(InvalidInput, match="'cg'"):
        Ridge(solver="cg").partial_fit(X, Y)


def test_a_failed_update_leaves_the_model_as_it_was(rng):
    X, Y = planted(rng)
    model = Ridge().partial_fit(X, Y)
    before = model.coef_.copy()
    with pytest.raises(InvalidInput):
        model.partial_fit(X, 3 * Y)
    np.testing.assert_array_equal(model.coef_, before)
    assert model.statistics_.n_rows == X.shape[0]


def test_work_that_does_not_fit_in_memory_is_refused_before_it_starts(rng, monkeypatch):
    X, Y = planted(rng)
    monkeypatch.setenv("LONGTAIL_MEMORY", "1K")
    for model in (Ridge(), Ridge(solver="dual"), Ridge(updatable=True)):
        with pytest.raises(NotEnoughMemory, match=r"needs .*, but only 1.0 KiB are available"):
            model.fit(X, Y)


def test_the_announced_plan_names_its_parts(rng):
    plan = Ridge(solver="primal").memory_plan(*planted(rng))
    assert plan.parts["weights"] == 4 * 30 * 12
    assert plan.parts["Gram matrix"] == 8 * 30 * 30
    large = Ridge(solver="primal").memory_plan(*planted(rng, 40, 2000))
    assert large.parts["Gram matrix"] == 4 * 2000 * 2000


def test_auto_takes_the_smaller_side_of_a_small_problem(rng):
    assert Ridge().fit(*planted(rng, 200, 20)).solver_ == "primal"
    assert Ridge().fit(*planted(rng, 20, 200)).solver_ == "dual"


def test_auto_takes_conjugate_gradients_where_both_sides_are_long(rng):
    X = sparse.csr_array(sparse.random(4000, 4000, 0.001, format="csr", random_state=rng, dtype=np.float32))
    Y = sparse.csr_array(sparse.random(4000, 3, 0.1, format="csr", random_state=rng, dtype=np.float32))
    Y.data[:] = 1
    model = Ridge(1.0).fit(X, Y)
    assert model.solver_ == "cg"
    assert model.n_iter_ > 0


def test_auto_avoids_what_does_not_fit(rng, monkeypatch):
    X, Y = planted(rng, 1500, 1000, 400)
    small, large = (Ridge(solver=name, block_size=4).memory_plan(X, Y).total for name in ("cg", "primal"))
    assert Ridge(block_size=4).fit(X, Y).solver_ == "primal"
    monkeypatch.setenv("LONGTAIL_MEMORY", str((small + large) // 2))
    assert Ridge(block_size=4).fit(X, Y).solver_ == "cg"


def test_only_one_way_to_sparsify_is_taken(rng):
    with pytest.raises(InvalidInput, match="density and prune exclude each other"):
        Ridge(density=0.5, prune=0.1).fit(*planted(rng))


def test_an_unknown_weighting_at_prediction_is_refused(rng):
    X, Y = planted(rng)
    with pytest.raises(InvalidInput, match="expected 'target' or None"):
        Ridge().fit(X, Y).predict_topk(X, weighting="loss")


def test_columns_of_nothing_and_rows_of_nothing_are_harmless():
    X = sparse.csr_array((5, 4), dtype=np.float32)
    Y = sparse.csr_array((5, 3), dtype=np.float32)
    for solver in ("primal", "dual", "cg", "auto"):
        model = Ridge(solver=solver, fit_intercept=True).fit(X, Y)
        assert (model.coef_ == 0).all()
        assert model.predict_topk(X, k=2)[0].tolist() == [[0, 1]] * 5


def test_rows_added_without_solving_are_solved_for_before_a_save(tmp_path, rng):
    X, Y = planted(rng)
    model = Ridge(updatable=True).fit(X[:40], Y[:40]).partial_fit(X[40:], Y[40:], solve=False)
    model.save(tmp_path / "model")
    expected = Ridge(updatable=True).fit(X, Y).decision_function(X)
    np.testing.assert_allclose(load(tmp_path / "model").decision_function(X), expected, atol=1e-5)
