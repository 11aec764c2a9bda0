"""Calibrated scores: probabilities that hold on unseen rows, in the order of the uncalibrated scores."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit

import longtail
from longtail import LabelTree, OneVsRest
from longtail.data import load_data_set
from longtail.errors import InvalidInput, ModelFormatError
from longtail.text import RowScaling
from longtail.trees.calibration import Calibration, fit_sigmoid, fit_table
from longtail.trees.thresholds import Candidates

METHODS = ["platt", "isotonic"]


def planted(seed, n_rows=1500, n_features=60, n_labels=30):
    """Rows that show their labels, most of the time."""
    rng = np.random.default_rng(seed)
    Y = (rng.random((n_rows, n_labels)) < rng.uniform(0.02, 0.25, n_labels)).astype(np.float32)
    Y[np.arange(n_rows), rng.integers(0, n_labels, n_rows)] = 1
    seen = Y * (rng.random(Y.shape) < 0.7) + (rng.random(Y.shape) < 0.05)
    X = seen @ rng.random((n_labels, n_features)) ** 8 + 0.3 * rng.random((n_rows, n_features))
    return RowScaling().fit_transform(X.astype(np.float32)), sparse.csr_array(Y)


def expected_calibration_error(model, X, Y, n_bins=15):
    """Mean distance between score and share of hits over bins of equal width, weighted by their candidates."""
    found = Candidates.of(*model.predict_topk(X, k=20), Y)
    bins = np.minimum((found.scores * n_bins).astype(int), n_bins - 1)
    scores = np.bincount(bins, weights=found.scores, minlength=n_bins)
    hits = np.bincount(bins, weights=found.hits, minlength=n_bins)
    return float(np.abs(scores - hits).sum() / len(found.scores))


def sizes_and_hashes(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.rglob("*.npy"))}


@pytest.mark.parametrize(("method", "share"), [("platt", 0.8), ("isotonic", 0.3)])
@pytest.mark.parametrize("make", [LabelTree, OneVsRest])
def test_the_calibration_error_falls_clearly_on_rows_nobody_has_seen(make, method, share, seed):
    X, Y = planted(seed)
    params = {"leaf_size": 8, "n_trees": 2} if make is LabelTree else {}
    raw = make(**params).fit(X[:1000], Y[:1000])
    calibrated = make(calibrate=method, holdout=0.2, **params).fit(X[:1000], Y[:1000])
    before, after = (expected_calibration_error(model, X[1000:], Y[1000:]) for model in (raw, calibrated))
    assert after < share * before


@pytest.mark.parametrize(("method", "share"), [("platt", 0.35), ("isotonic", 0.25)])
def test_the_calibration_error_falls_clearly_on_bibtex(benchmark_data, method, share):
    benchmark_data("bibtex")
    train, test = load_data_set("bibtex", "train"), load_data_set("bibtex", "test")
    scale = RowScaling()
    X, X_test = scale.fit_transform(train.features), scale.transform(test.features)
    raw = LabelTree().fit(X, train.labels)
    calibrated = LabelTree(calibrate=method).fit(X, train.labels)
    before, after = (expected_calibration_error(model, X_test, test.labels) for model in (raw, calibrated))
    assert after < share * before


@pytest.mark.parametrize("method", METHODS)
def test_one_tree_ranks_as_it_did_and_scores_stay_chances(method, seed):
    X, Y = planted(seed)
    raw = LabelTree(leaf_size=8).fit(X[:1000], Y[:1000])
    calibrated = LabelTree(leaf_size=8, calibrate=method).fit(X[:1000], Y[:1000])
    labels, _ = raw.predict_topk(X[1000:], k=20)
    same, scores = calibrated.predict_topk(X[1000:], k=20)
    np.testing.assert_array_equal(same, labels)
    assert (np.diff(scores, axis=1) <= 0).all()
    assert (scores > 0).all()
    assert (scores <= 1).all()


@pytest.mark.parametrize("method", METHODS)
def test_each_tree_has_its_own_calibration(method):
    X, Y = planted(0)
    model = LabelTree(leaf_size=8, n_trees=3, calibrate=method, C=0.5).fit(X, Y)
    assert len(model.calibrations_) == 3
    at = np.log(np.linspace(0.05, 0.95, 10))
    found = np.array([each.probability(at) for each in model.calibrations_])
    assert (np.ptp(found, axis=0) > 0).any()
    # With one tree left the model says what that tree's calibration says.
    alone = LabelTree(leaf_size=8).fit(X, Y)
    alone.trees_ = model.trees_[1:2]
    alone.__dict__.pop("_search")
    raw = alone.predict_topk(X[:50], k=3)[1]
    alone.calibrations_ = model.calibrations_[1:2]
    alone.__dict__.pop("_search")
    np.testing.assert_allclose(
        alone.predict_topk(X[:50], k=3)[1], model.calibrations_[1].probability(np.log(raw)), atol=1e-4
    )


@pytest.mark.parametrize(("method", "share"), [("platt", 0.9), ("isotonic", 0.3)])
def test_own_rows_calibrate_a_fitted_model_and_replace_what_was_there(method, share):
    X, Y = planted(0)
    model = LabelTree(leaf_size=8).fit(X[:800], Y[:800])
    before = expected_calibration_error(model, X[1100:], Y[1100:])
    assert model.calibrate_on(X[800:1100], Y[800:1100], method) is model
    first = model.calibrations_
    assert expected_calibration_error(model, X[1100:], Y[1100:]) < share * before
    model.tune_thresholds_on(X[800:1100], Y[800:1100])
    model.calibrate_on(X[800:1100], Y[800:1100], method)
    np.testing.assert_array_equal(model.calibrations_[0].knots, first[0].knots)
    assert model.calibrations_[0].slope == first[0].slope
    assert model.thresholds_ is None


def test_the_final_model_is_trained_on_all_rows():
    X, Y = planted(0)
    raw, calibrated = (LabelTree(leaf_size=8, calibrate=method).fit(X, Y) for method in (None, "platt"))
    for one, other in zip(raw.trees_, calibrated.trees_, strict=True):
        np.testing.assert_array_equal(one.weights, other.weights)


def test_held_out_rows_are_not_trained_on():
    """Noise can be memorised: only held-out rows show that nothing was learned."""
    rng = np.random.default_rng(0)
    X = sparse.csr_array(rng.random((400, 900)).astype(np.float32))
    Y = sparse.csr_array(np.eye(4, dtype=np.float32)[rng.integers(0, 4, 400)])
    model = OneVsRest(C=100.0, calibrate="platt", holdout=0.25).fit(X, Y)
    labels, scores = model.predict_topk(X, k=1)
    assert np.mean(np.take_along_axis(Y.toarray(), labels, axis=1)) > 0.9
    assert scores.mean() < 0.6


@pytest.mark.parametrize("method", METHODS)
def test_saved_and_loaded_models_score_alike(method, tmp_path):
    X, Y = planted(0)
    model = LabelTree(leaf_size=8, n_trees=2, calibrate=method).fit(X, Y)
    model.save(tmp_path / "model")
    again = longtail.load(tmp_path / "model")
    for one, other in zip(model.predict_topk(X), again.predict_topk(X), strict=True):
        np.testing.assert_array_equal(one, other)
    assert again.get_params() == model.get_params()


@pytest.mark.parametrize("method", METHODS)
def test_the_same_seed_gives_the_same_bytes(method, tmp_path):
    X, Y = planted(0)
    for name, n_jobs in (("one", 1), ("other", 2)):
        LabelTree(leaf_size=8, calibrate=method, thresholds="f1", n_jobs=n_jobs).fit(X, Y).save(tmp_path / name)
    assert sizes_and_hashes(tmp_path / "one") == sizes_and_hashes(tmp_path / "other")


BAD = {
    "a slope below 0": np.array([-1, 0]),
    "a slope that is no number": np.array([np.nan, 0]),
    "an offset without end": np.array([1, np.inf]),
    "a number too many": np.array([1, 0, 0]),
    "no knots": np.zeros((2, 0)),
    "knots that fall": np.array([[-1, -2], [0.1, 0.2]]),
    "knots that stay": np.array([[-1, -1], [0.1, 0.2]]),
    "a knot that is no number": np.array([[np.nan, -1], [0.1, 0.2]]),
    "values that fall": np.array([[-2, -1], [0.2, 0.1]]),
    "a value that is no number": np.array([[-2, -1], [np.nan, 0.1]]),
    "a value above 1": np.array([[-2, -1], [0.5, 1.1]]),
    "a value below 0": np.array([[-2, -1], [-0.1, 1]]),
    "a third line": np.zeros((3, 2)),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_nonsense_in_a_saved_calibration_is_refused(bad):
    X, Y = planted(0, n_rows=200)
    state = LabelTree(calibrate="platt").fit(X, Y).to_state()
    LabelTree.from_state(state)
    with pytest.raises(ModelFormatError, match="calibration0"):
        LabelTree.from_state(replace(state, arrays={**state.arrays, "calibration0": bad.astype(np.float32)}))


def test_a_tree_without_its_calibration_is_refused():
    X, Y = planted(0, n_rows=200)
    state = LabelTree(calibrate="platt", n_trees=2).fit(X, Y).to_state()
    arrays = {name: array for name, array in state.arrays.items() if name != "calibration1"}
    with pytest.raises(ModelFormatError, match="calibration1"):
        LabelTree.from_state(replace(state, arrays=arrays))


def test_too_few_rows_to_hold_any_out_are_refused():
    with pytest.raises(InvalidInput, match="leaves none to train on"):
        LabelTree(calibrate="platt").fit([[1.0]], [[1]])


def test_rows_of_another_form_are_refused():
    X, Y = planted(0, n_rows=100)
    model = LabelTree().fit(X, Y)
    with pytest.raises(InvalidInput, match="trained on 30"):
        model.calibrate_on(X, Y[:, :7])
    with pytest.raises(InvalidInput, match="no rows"):
        model.calibrate_on(X[:0], Y[:0])
    with pytest.raises(InvalidInput, match="method is 'plat'"):
        model.calibrate_on(X, Y, "plat")


def test_the_sigmoid_is_the_lowest_point_of_the_smoothed_loss(rng):
    scores = -rng.exponential(3, 500)
    hits = rng.random(500) < expit(1.7 * scores + 2)
    slope, offset = fit_sigmoid(scores, hits)
    n_hits = hits.sum()
    targets = np.where(hits, (n_hits + 1) / (n_hits + 2), 1 / (500 - n_hits + 2))

    def loss(p):
        logits = p[0] * scores + p[1]
        return (np.logaddexp(0, logits) - targets * logits).sum() + 0.005 * ((p[0] - 1) ** 2 + p[1] ** 2)

    best = minimize(loss, [1, 0], method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-9}).x
    np.testing.assert_allclose([slope, offset], best, atol=1e-3)


def test_a_planted_sigmoid_is_found(rng):
    scores = -rng.exponential(2, 50_000)
    slope, offset = fit_sigmoid(scores, rng.random(50_000) < expit(0.6 * scores + 0.8))
    assert slope == pytest.approx(0.6, abs=0.05)
    assert offset == pytest.approx(0.8, abs=0.1)


def test_scores_that_mislead_get_a_slope_of_zero():
    scores = np.log(np.linspace(0.01, 1, 100))
    slope, offset = fit_sigmoid(scores, np.arange(100) < 30)
    assert slope == 0
    assert expit(offset) == pytest.approx(0.3, abs=0.02)


@pytest.mark.parametrize("hits", [np.zeros(50, dtype=bool), np.ones(50, dtype=bool)])
def test_candidates_that_are_all_right_or_all_wrong_leave_room_for_doubt(hits):
    scores = -np.linspace(0, 1e6, 50)
    for method in METHODS:
        found = Calibration.fit(method, scores, hits).probability(np.zeros(1, dtype=np.float32))
        assert 0 < found[0] <= 1
        assert (found[0] > 0.5) == hits[0]


candidates = st.lists(st.tuples(st.floats(-50, 0, width=32), st.booleans()), max_size=60)


@given(candidates, st.sampled_from(METHODS), st.lists(st.floats(-200, 0, width=32), min_size=2, max_size=20))
def test_a_higher_score_never_has_a_lower_chance(found, method, at):
    calibration = Calibration.fit(method, np.array([s for s, _ in found]), np.array([h for _, h in found], dtype=bool))
    chances = calibration.probability(np.sort(np.array(at, dtype=np.float32)))
    assert (np.diff(chances) >= 0).all()
    assert (chances >= 0).all()
    assert (chances <= 1).all()


@given(candidates.filter(len))
def test_the_table_keeps_the_number_of_hits(found):
    """Isotonic regression moves hits between neighbours and loses none; nor does replacing a step by a point."""
    scores = np.array([s for s, _ in found], dtype=np.float32)
    hits = np.array([h for _, h in found], dtype=bool)
    knots, values = fit_table(scores, hits)
    assert (np.diff(knots) > 0).all()
    assert (np.diff(values) >= 0).all()
    # The share of hits lies within the table.
    assert values[0] - 1e-6 <= max(hits.mean(), 1 / (len(hits) + 2))
    assert hits.mean() <= values[-1] + 1e-6


@pytest.mark.parametrize(
    "calibration",
    [Calibration(0.7, -0.4), Calibration.fit("isotonic", np.array([-3.0, -2.0, -1.0]), np.array([0, 1, 1]))],
    ids=["sigmoid", "table"],
)
def test_the_search_says_what_the_calibration_says(kernels, calibration):
    X, Y = planted(0, n_rows=200)
    model = LabelTree(leaf_size=8).fit(X, Y)
    arrays = [tree.for_search() for tree in model.trees_]
    raw, calibrated = (kernels.TreeSearch(model.n_features_in_, model.n_labels_, False, 1.0, arrays) for _ in range(2))
    calibrated.calibrate(0, calibration.slope, calibration.offset, calibration.knots, calibration.values)
    labels, scores = model._best(raw, X[:20], 10, None, None)
    same, chances = model._best(calibrated, X[:20], 10, None, None)
    np.testing.assert_array_equal(same, labels)
    np.testing.assert_allclose(calibration.probability(np.log(scores)), chances, rtol=1e-4, atol=1e-7)
