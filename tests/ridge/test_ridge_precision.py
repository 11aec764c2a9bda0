"""Ridge on features that single precision finds hard, against least squares in float64 on the augmented rows.

The features are float32 after validation, and so are the weights: what remains is `PRECISION` of the fitted values, and
the rounding of the weights, which the size of the summands x_j w_j multiplies.
"""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import longtail
from longtail import LabelSubsetClassifier, Ridge, RidgeCV
from longtail.estimator.checks import planted
from longtail.ridge.gram import far_centre, shift_columns
from longtail.ridge.problem import Statistics
from longtail.ridge.solvers import PRECISION

FROZEN = Path(__file__).parents[1] / "store" / "frozen" / "ridge-float32-sums"
EPS = float(np.finfo(np.float32).eps)


def labels_of(rng, Z, count=6):
    """Labels from frequent to rare that depend on every column of `Z`."""
    affinity = Z @ rng.normal(size=(Z.shape[1], count)) + rng.normal(size=(len(Z), count))
    return (affinity > np.diagonal(np.quantile(affinity, np.linspace(0.5, 0.95, count), axis=0))).astype(int)


def at_offset(offset, shape=(500, 5)):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=shape)
    return (Z + offset).astype(np.float32), labels_of(rng, Z), 1.0


def years_and_ages():
    rng = np.random.default_rng(1)
    years, ages, others = rng.integers(1990, 2024, 500), rng.integers(18, 90, 500), rng.normal(size=(500, 4))
    X = np.column_stack([years, ages, others])
    return X.astype(np.float32), labels_of(rng, (X - X.mean(axis=0)) / X.std(axis=0)), 1.0


def nearly_equal_columns(difference):
    rng = np.random.default_rng(2)
    Z, apart = rng.normal(size=(500, 4)), rng.normal(size=(500, 1))
    X = 100 * np.column_stack([Z[:, :1], Z[:, :1] + difference * apart, Z[:, 1:]])
    return X.astype(np.float32), labels_of(rng, np.column_stack([Z, apart])), 1e-3


def text_beside_far_columns():
    rng = np.random.default_rng(3)
    X = sparse.random(400, 60, 0.05, random_state=4, dtype=np.float32).toarray()
    X = np.column_stack([X, 2000 + rng.normal(size=(400, 2))])
    return X.astype(np.float32), labels_of(rng, X - X.mean(axis=0)), 0.1


CASES = {
    **{f"offset {offset:g}": (at_offset, offset) for offset in (0, 10, 100, 1e3, 1e4, 1e5)},
    "more features than rows": (at_offset, 1e3, (40, 90)),
    "years and ages": (years_and_ages,),
    "nearly equal columns": (nearly_equal_columns, 1e-3),
    "columns almost the same": (nearly_equal_columns, 1e-4),
    "text beside far columns": (text_beside_far_columns,),
}
cases = pytest.mark.parametrize("case", CASES)
intercepts = pytest.mark.parametrize("fit_intercept", [False, True])


def oracle(X, Y, alpha, fit_intercept):
    """Scores of the training rows, and how far rounding may move them."""
    X, Y = X.astype(np.longdouble), Y.astype(np.longdouble)
    mean, label_mean = (X.mean(axis=0), Y.mean(axis=0)) if fit_intercept else (X[0] * 0, Y[0] * 0)
    Xc, Yc = (X - mean).astype(np.float64), (Y - label_mean).astype(np.float64)
    rows = np.vstack([Xc, np.sqrt(alpha) * np.eye(X.shape[1])]) if alpha else Xc
    W = np.linalg.lstsq(rows, np.vstack([Yc, np.zeros((len(rows) - len(Yc), Y.shape[1]))]), rcond=None)[0]
    fitted = Xc @ W
    rounding = EPS * (np.abs(Xc) @ np.abs(W) + np.abs(label_mean).astype(np.float64))
    allowed = 2 * PRECISION * np.linalg.norm(fitted, axis=0) + np.linalg.norm(rounding, axis=0)
    return fitted + label_mean.astype(np.float64), allowed


def error_of(model, X, scores):
    return np.linalg.norm(model.decision_function(X) - scores, axis=0)


def in_batches(model, X, Y, count=4):
    for rows in np.array_split(np.arange(len(X)), count):
        model.partial_fit(X[rows], Y[rows])
    return model


@cases
@intercepts
@pytest.mark.parametrize("small", [0, 3e8])
def test_every_direct_solver_gives_the_scores_of_exact_arithmetic(case, fit_intercept, small, monkeypatch):
    monkeypatch.setattr("longtail.ridge.cost._SMALL", small)
    make, *given = CASES[case]
    X, Y, alpha = make(*given)
    scores, allowed = oracle(X, Y, alpha, fit_intercept)
    settings = {"fit_intercept": fit_intercept}
    for solver in ("auto", "primal", "dual"):
        assert (error_of(Ridge(alpha, solver=solver, **settings).fit(X, Y), X, scores) <= allowed).all(), solver
        assert (error_of(RidgeCV((alpha,), solver=solver, **settings).fit(X, Y), X, scores) <= allowed).all(), solver


@cases
@intercepts
@pytest.mark.parametrize("weighting", [None, "loss"])
def test_updates_are_a_fit_on_everything_and_both_are_exact(case, fit_intercept, weighting):
    make, *given = CASES[case]
    X, Y, alpha = make(*given)
    settings = {"fit_intercept": fit_intercept, "weighting": weighting}
    together = Ridge(alpha, **settings).fit(X, Y)
    weights = together.inverse_propensity_.astype(np.float64) if weighting else np.ones(Y.shape[1])
    exact = [oracle(X, Y[:, [label]], alpha / weight, fit_intercept) for label, weight in enumerate(weights)]
    scores, allowed = (np.column_stack([pair[part] for pair in exact]) for part in (0, 1))
    for model in (
        together,
        Ridge(alpha, updatable=True, **settings).fit(X, Y),
        in_batches(Ridge(alpha, updatable=True, **settings), X, Y),
        in_batches(Ridge(alpha, updatable=True, **settings), X, Y, count=40),
    ):
        assert (error_of(model, X, scores) <= allowed[0]).all()
        assert (error_of(model, X, together.decision_function(X)) <= 2 * allowed[0]).all()


@cases
@intercepts
def test_conjugate_gradients_come_as_close_as_tol_says(case, fit_intercept):
    make, *given = CASES[case]
    X, Y, alpha = make(*given)
    scores, allowed = oracle(X, Y, alpha, fit_intercept)
    centred = scores - fit_intercept * Y.mean(axis=0)
    for tol in (2e-3, 1e-5):
        error = error_of(Ridge(alpha, solver="cg", tol=tol, fit_intercept=fit_intercept).fit(X, Y), X, scores)
        assert (error <= 5 * tol * np.linalg.norm(centred, axis=0) + 2 * allowed).all()


def test_an_offset_changes_no_label_of_an_updated_model():
    X, Y, alpha = at_offset(1000, (2000, 5))
    scores, _ = oracle(X, Y, alpha, True)
    model = in_batches(Ridge(alpha, fit_intercept=True, updatable=True), X, Y)
    np.testing.assert_allclose(model.decision_function(X), scores, atol=2e-6)
    assert model.predict_topk(X, k=1)[0].ravel().tolist() == np.argmax(scores, axis=1).tolist()


def test_conjugate_gradients_say_where_single_precision_fails_them(caplog):
    X, Y, alpha = at_offset(1e6)
    with caplog.at_level(logging.WARNING):
        Ridge(alpha, solver="cg").fit(X, Y)
    assert "too ill-conditioned" in caplog.text


def test_what_double_precision_cannot_do_is_said(caplog):
    X, Y, alpha = at_offset(1e6)
    with caplog.at_level(logging.WARNING):
        Ridge(alpha, solver="dual", fit_intercept=True).fit(X, Y)
        assert not caplog.text
        Ridge(alpha, solver="dual").fit(X, Y)
    assert caplog.text.count("even for double precision") == 1


@pytest.mark.parametrize("side", ["primal", "dual"])
def test_a_large_problem_takes_double_precision_only_where_it_needs_it(rng, side, caplog, monkeypatch):
    monkeypatch.setattr("longtail.ridge.cost._SMALL", 0)
    with caplog.at_level(logging.INFO):
        Ridge(0.1, solver=side).fit(*planted(rng, 60, 90))
        assert "double precision" not in caplog.text
        X, Y, alpha = at_offset(1000)
        Ridge(alpha, solver=side).fit(X, Y)
        assert "factoring in double precision" in caplog.text
        assert "eigendecomposition" not in caplog.text


def test_a_label_that_needs_a_weak_direction_is_found_among_others(monkeypatch):
    monkeypatch.setattr("longtail.ridge.cost._SMALL", 0)
    X, Y, alpha = nearly_equal_columns(1e-3)
    rng = np.random.default_rng(5)
    easy = labels_of(rng, X[:, 2:3] / 100, 40)
    Y = np.column_stack([easy[:, :20], Y[:, :1], easy[:, 20:]])
    scores, allowed = oracle(X, Y, alpha, False)
    assert (error_of(Ridge(alpha, solver="primal").fit(X, Y), X, scores) <= allowed).all()


@intercepts
@pytest.mark.parametrize("solver", ["primal", "dual", "cg", "auto"])
@pytest.mark.parametrize("shape", [(8, 20), (60, 30)])
def test_without_a_penalty_every_solver_gives_the_smallest_solution(rng, solver, fit_intercept, shape):
    X = rng.normal(size=shape) * np.geomspace(0.3, 3, shape[1])
    X[:, -4:] = 2 * X[:, :4]
    Y = (rng.random((shape[0], 3)) < 0.4).astype(int)
    X = X.astype(np.float32)
    model = Ridge(0, solver=solver, tol=1e-6, fit_intercept=fit_intercept).fit(X, Y)
    Xc, Yc = (M - fit_intercept * M.mean(axis=0, dtype=np.float64) for M in (X, Y))
    np.testing.assert_allclose(model.coef_, np.linalg.pinv(Xc, rcond=1e-6) @ Yc, atol=2e-5)


def test_without_a_penalty_weak_directions_count():
    X, Y, _ = at_offset(1e3)
    scores, allowed = oracle(X, Y, 0, False)
    for model in (Ridge(0), Ridge(0, solver="dual"), Ridge(0, updatable=True)):
        assert (error_of(model.fit(X, Y), X, scores) <= allowed).all()


def test_an_offset_does_not_change_what_leave_one_out_says():
    X, Y, _ = at_offset(0)
    far = X + np.float32(4096)
    near = (far - np.float32(4096)).astype(np.float32)
    for solver in ("primal", "dual"):
        one, other = (RidgeCV(solver=solver, fit_intercept=True, alphas=(1, 10, 100)).fit(Z, Y) for Z in (near, far))
        np.testing.assert_allclose(one.cv_scores_, other.cv_scores_, atol=1e-3)
        np.testing.assert_allclose(one.coef_, other.coef_, atol=5e-5)


@pytest.mark.parametrize("density", [None, 0.6])
def test_intercept_explanation_and_scores_agree_far_from_zero(density, tmp_path):
    X, Y, alpha = years_and_ages()
    model = Ridge(alpha, fit_intercept=True, density=density).fit(X, Y)
    model.save(tmp_path / "model")
    scores = model.decision_function(X)
    coefficients = model.coef_.toarray() if density else model.coef_
    np.testing.assert_allclose(X.astype(np.float64) @ coefficients + model.intercept_, scores, atol=1e-6)
    np.testing.assert_allclose(scores.mean(axis=0), Y.mean(axis=0), atol=1e-6)
    loaded = longtail.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.decision_function(X), scores)
    np.testing.assert_array_equal(loaded.predict_topk(X[:1], k=6)[1][0], np.sort(scores[0])[::-1])
    assert loaded.explain(X[[7]], 2).score == pytest.approx(scores[7, 2], abs=1e-6)


def test_residuals_of_a_label_subset_keep_their_digits_far_from_zero():
    X, Y, alpha = years_and_ages()
    ridge = Ridge(alpha, fit_intercept=True)
    model = LabelSubsetClassifier(ridge, outliers="all", outlier_estimator=ridge, subset=[0, 3]).fit(X, Y)
    np.testing.assert_allclose(model.decision_function(X), ridge.fit(X, Y).decision_function(X), atol=2e-6)


def test_a_saved_model_is_updated_as_if_it_had_never_been_saved(tmp_path):
    X, Y, alpha = years_and_ages()
    model = Ridge(alpha, fit_intercept=True, updatable=True).fit(X[:300], Y[:300])
    model.save(tmp_path / "model")
    loaded = longtail.load(tmp_path / "model").partial_fit(X[300:], Y[300:])
    np.testing.assert_array_equal(loaded.coef_, model.partial_fit(X[300:], Y[300:]).coef_)


def test_a_model_saved_with_sums_in_single_precision_can_still_be_updated():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, size=(12, 4)).astype(np.float32)
    Y = (rng.random((12, 3)) < 0.4).astype(int)
    model = longtail.load(FROZEN)
    before = Ridge(0.5, fit_intercept=True).fit(X[:8], Y[:8])
    np.testing.assert_allclose(model.decision_function(X), before.decision_function(X), atol=1e-5)
    together = Ridge(0.5, fit_intercept=True).fit(X, Y)
    updated = model.partial_fit(X[8:], Y[8:])
    np.testing.assert_allclose(updated.decision_function(X), together.decision_function(X), atol=1e-5)


def test_a_first_row_far_from_the_others_does_no_harm():
    X, Y, alpha = at_offset(1e4)
    X[0] = -1e4
    scores, allowed = oracle(X, Y, alpha, True)
    model = Ridge(alpha, fit_intercept=True, updatable=True).partial_fit(X[:1], Y[:1]).partial_fit(X[1:], Y[1:])
    assert (error_of(model, X, scores) <= allowed).all()


def test_sums_in_any_order_are_the_same_and_sparse_text_stays_sparse():
    X, Y, _ = text_beside_far_columns()
    X, Y = sparse.csr_array(X), sparse.csr_array(Y.astype(np.float32))
    parts = [Statistics.of(X[rows], Y[rows], 1) for rows in (slice(0, 1), slice(1, 250), slice(250, 400))]
    whole = Statistics.of(X, Y, 1)
    for order in ((0, 1, 2), (2, 0, 1)):
        first, second, third = (parts[place] for place in order)
        merged = first.plus(second).plus(third)
        np.testing.assert_allclose(np.triu(merged.scatter), np.triu(whole.scatter), rtol=1e-9, atol=1e-9)
        assert merged.cross.nnz == whole.cross.nnz < whole.cross.shape[0] * whole.cross.shape[1]


def test_only_far_columns_are_shifted():
    X = sparse.csr_array(np.array([[0, 5.0, 7, 1], [2, 0, 7, 1], [0, 5, 7, -1], [0, 5, 8, 0]], dtype=np.float32))
    mean, square = (np.asarray(M.sum(axis=0)) / 4 for M in (X, X * X))
    centre = far_centre(mean, square)
    np.testing.assert_array_equal(centre, [0, 0, 7.25, 0])
    np.testing.assert_array_equal(shift_columns(X, centre).toarray(), X.toarray() - centre)
    holes = sparse.csr_array(np.where(np.arange(4)[:, None] == 1, 0, X.toarray()))
    np.testing.assert_array_equal(shift_columns(holes, centre).toarray(), holes.toarray() - centre)
    assert shift_columns(holes, centre).indices.dtype == holes.indices.dtype
    assert far_centre(mean * 0, square) is None
    assert shift_columns(X, None) is X


def test_the_plan_of_an_update_counts_the_sums(rng):
    X, Y = planted(rng)
    model = Ridge(updatable=True)
    first = model.memory_plan(X, Y).parts
    assert first["sums of features"] == 8 * 30 * 30
    assert first["sums of labels"] >= 12 * model.fit(X, Y).statistics_.cross.nnz
    assert model.memory_plan(X, Y).parts["sums of features"] == 3 * 8 * 30 * 30


def test_blocks_are_checked_only_where_they_are_harder_than_those_before(monkeypatch):
    from longtail.ridge.solvers import Factor

    checked = []
    is_precise = Factor.is_precise
    monkeypatch.setattr(Factor, "is_precise", lambda *given: checked.append(1) or is_precise(*given))
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(400, 30)), rng.random((400, 64)) < 0.2
    Y[:, 32:] = Y[:, :32]
    Ridge(block_size=1, solver="primal").fit(X, Y)
    assert 0 < len(checked) <= 32


def test_the_intercept_of_an_explanation_is_the_model_s_where_features_are_far_from_zero():
    rng = np.random.default_rng(0)
    X, Y = 1000 + rng.normal(size=(200, 4)), rng.random((200, 3)) < 0.3
    model = Ridge(fit_intercept=True).fit(X, Y)
    assert model.centre_ is not None
    for label in range(3):
        found = model.explain(X[:1], label)
        np.testing.assert_allclose(found.intercept, model.intercept_[label], rtol=1e-9)
        np.testing.assert_allclose(found.score, model.decision_function(X[:1])[0, label], atol=1e-4)
