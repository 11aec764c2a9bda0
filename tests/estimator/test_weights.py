"""Weights of rows and relevance of labels: a weight of 2 is the row twice, and relevance is what it says."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from longtail import AggregatedClassifier, LabelSubsetClassifier, LabelTree, OneVsRest, Ridge, RidgeCV, in_pieces
from longtail.errors import InvalidInput
from longtail.estimator.checks import planted
from longtail.ranking import TwoStage
from tests.estimator.centroids import Centroids

_EXACT = {"tol": 1e-6, "max_sweeps": 1000, "prune": 0.0, "precision": 32}
LEARNERS = {
    "primal": (Ridge(solver="primal"), 1e-5),
    "dual": (Ridge(solver="dual"), 1e-5),
    "primal with intercepts": (Ridge(solver="primal", fit_intercept=True), 1e-5),
    "dual with intercepts": (Ridge(solver="dual", fit_intercept=True), 1e-5),
    "conjugate gradients": (Ridge(solver="cg", tol=1e-7, fit_intercept=True), 1e-4),
    "eigenvectors": (Ridge(weighting="loss", fit_intercept=True), 1e-5),
    "updatable": (Ridge(updatable=True, fit_intercept=True, weighting="target"), 1e-5),
    "one alpha": (RidgeCV(alphas=(0.7,), fit_intercept=True), 1e-5),
    "one-vs-rest": (OneVsRest(**_EXACT), 3e-3),
    "logistic": (OneVsRest(loss="logistic", weighting="loss", **_EXACT), 3e-3),
    "tree": (LabelTree(leaf_size=3, branching=2, **_EXACT), 3e-3),
    "tree with negatives of the beam": (LabelTree(leaf_size=2, negatives="beam", **_EXACT), 3e-3),
    "subset": (LabelSubsetClassifier(Ridge(0.5), subset=[0, 3, 5], outliers=2, outlier_estimator=Ridge(2.0)), 1e-5),
}


@pytest.fixture
def data(rng):
    X, Y = planted(rng)
    return X + sparse.csr_array(np.full(X.shape, 3.0)) * (np.arange(X.shape[1]) == 4), Y


@pytest.mark.parametrize("name", LEARNERS)
def test_a_row_of_weight_2_is_the_row_twice_and_one_of_weight_0_is_absent(name, data, rng):
    learner, tolerance = LEARNERS[name]
    X, Y = data
    weights = rng.integers(0, 4, size=X.shape[0])
    rows = np.repeat(np.arange(len(weights)), weights)
    weighted = clone(learner).fit(X, Y, sample_weight=weights).decision_function(X)
    repeated = clone(learner).fit(X[rows], Y[rows]).decision_function(X)
    np.testing.assert_allclose(weighted, repeated, atol=tolerance)
    assert np.abs(repeated - clone(learner).fit(X, Y).decision_function(X)).max() > 20 * tolerance


@pytest.mark.parametrize("name", ["primal with intercepts", "one-vs-rest"])
def test_weights_need_not_be_whole_numbers(name, data):
    learner, tolerance = LEARNERS[name]
    X, Y = data
    weights = np.where(np.arange(X.shape[0]) % 2, 0.5, 1.5)
    three = np.repeat(np.arange(X.shape[0]), np.where(np.arange(X.shape[0]) % 2, 1, 3))
    half = {"alpha": 2.0} if name.startswith("primal") else {"C": 0.5}  # half the weight, twice the relative penalty
    weighted = clone(learner).fit(X, Y, sample_weight=weights).decision_function(X)
    repeated = clone(learner).set_params(**half).fit(X[three], Y[three]).decision_function(X)
    np.testing.assert_allclose(weighted, repeated, atol=tolerance)


def test_a_number_of_weights_to_keep_is_kept_with_weights_of_rows(data):
    X, Y = data
    model = OneVsRest(prune=3, precision=32).fit(X, Y, sample_weight=np.linspace(0.1, 2, X.shape[0]))
    layer = model.output_layer()
    assert np.diff(sparse.csr_array(layer.weights).indptr).max() == 3


def test_more_siblings_than_a_block_holds_are_weighted_alike(rng):
    X = rng.normal(size=(300, 12)).astype(np.float32)
    Y = np.eye(300)[:, :290] + np.eye(300, k=-1)[:, :290]
    weights = rng.integers(1, 3, size=300)
    rows = np.repeat(np.arange(300), weights)
    learner = OneVsRest(**_EXACT)
    weighted = clone(learner).fit(X, Y, sample_weight=weights).decision_function(X)
    np.testing.assert_allclose(weighted, clone(learner).fit(X[rows], Y[rows]).decision_function(X), atol=3e-3)


def test_updates_of_weighted_rows_equal_one_fit(data):
    X, Y = data
    weights = np.linspace(0.2, 3, X.shape[0])
    whole = Ridge(updatable=True, fit_intercept=True).fit(X, Y, sample_weight=weights)
    parts = Ridge(updatable=True, fit_intercept=True)
    for part in (slice(0, 33), slice(33, None)):
        parts.partial_fit(X[part], Y[part], sample_weight=weights[part])
    np.testing.assert_allclose(parts.decision_function(X), whole.decision_function(X), atol=1e-5)


def test_a_weighted_updatable_model_is_saved_with_its_total_weight(data, tmp_path):
    from longtail import load

    X, Y = data
    model = Ridge(updatable=True, fit_intercept=True).fit(X, Y, sample_weight=np.linspace(0.2, 3, X.shape[0]))
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    for each in (model, again):
        each.partial_fit(X[:5], Y[:5])
    np.testing.assert_allclose(again.decision_function(X), model.decision_function(X), atol=1e-6)


def test_ridge_predicts_relevance_itself(data):
    X, Y = data
    dense = X.toarray()
    graded = Y.multiply(np.linspace(0.1, 1, X.shape[0])[:, None]).tocsr()
    expected = np.linalg.solve(dense.T @ dense + np.eye(X.shape[1]), dense.T @ graded.toarray())
    for solver in ("primal", "dual"):
        np.testing.assert_allclose(Ridge(solver=solver).fit(X, graded).coef_, expected, atol=1e-4)


@pytest.mark.parametrize("learner", [OneVsRest(**_EXACT), LabelTree(leaf_size=3, **_EXACT)], ids=["flat", "tree"])
def test_trees_take_relevance_as_the_cost_of_missing_a_label(learner, data):
    X, Y = data
    graded = sparse.csr_array(Y * 0.5)
    half = clone(learner).fit(X, graded).decision_function(X)
    whole = clone(learner).fit(X, Y).decision_function(X)
    assert half.sum() < whole.sum()
    same = clone(learner).fit(X, sparse.csr_array(Y)).decision_function(X)
    np.testing.assert_array_equal(same, whole)


def test_relevance_and_weights_multiply_in_one_vs_rest(data):
    X, Y = data
    few, many = X[:40], sparse.csr_array(Y[:40])
    weighted = OneVsRest(**_EXACT).fit(few, sparse.csr_array(many * 0.5), sample_weight=np.full(40, 2.0))
    # A cost of 1 for each positive pair, and of 2 for each negative one.
    other = OneVsRest(C=2.0, **_EXACT).fit(few, sparse.csr_array(many * 0.5))
    np.testing.assert_allclose(weighted.decision_function(X), other.decision_function(X), atol=3e-3)


def test_calibration_and_thresholds_take_weights_and_relevance(data):
    X, Y = data
    model = OneVsRest(calibrate="platt", thresholds="f1", holdout=0.3)
    model.fit(X, sparse.csr_array(Y * 0.75), sample_weight=np.linspace(0.5, 2, X.shape[0]))
    assert model.calibrations_
    assert model.thresholds_ is not None


def test_two_stages_pass_weights_to_their_learners(data):
    X, Y = data
    learner = OneVsRest(tol=1e-4)
    weights = np.linspace(0.1, 3, X.shape[0])
    model = TwoStage([("all", learner)], rounds=2).fit(X, Y, sample_weight=weights)
    alone = clone(learner).fit(X, Y, sample_weight=weights)
    np.testing.assert_array_equal(model.sources_[0].estimator.predict_topk(X, 3)[1], alone.predict_topk(X, 3)[1])


def test_learners_that_cannot_weigh_rows_say_so(data):
    X, Y = data
    weights = np.linspace(0.1, 3, X.shape[0])
    refusing = [Centroids(), LabelSubsetClassifier(n_labels=3, decoder="l1"), LabelSubsetClassifier(Centroids())]
    for learner in refusing:
        with pytest.raises(InvalidInput, match="cannot weigh rows") as raised:
            learner.fit(X, Y, sample_weight=weights)
        assert raised.value.code == "no_sample_weight"
    with pytest.raises(InvalidInput, match="cannot weigh rows"):
        AggregatedClassifier(Ridge()).fit(X, np.eye(X.shape[0]), Y, sample_weight=weights)
    with pytest.raises(InvalidInput, match="only 0 and 1") as raised:
        Centroids().fit(X, 0.5 * Y)
    assert raised.value.code == "no_relevance"


def test_weights_train_in_memory_only(data, tmp_path):
    X, Y = data
    for arguments in ((Y, np.full(X.shape[0], 2.0)), (sparse.csr_array(0.5 * Y), None)):
        with in_pieces(tmp_path / "work"), pytest.raises(InvalidInput, match="in memory only") as raised:
            OneVsRest().fit(X, *arguments)
        assert raised.value.code == "not_in_pieces"
