"""Thresholds are exactly the best on the rows they were tuned on, and better than 0.5 on others."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics import f1_score

import longtail
from longtail import LabelTree, OneVsRest
from longtail.data import load_data_set
from longtail.errors import InvalidInput, ModelFormatError
from longtail.text import RowScaling
from longtail.trees.thresholds import Candidates, is_true, tune_thresholds
from tests.trees.test_calibration import planted


def given_labels(found, thresholds):
    return found.scores >= thresholds[found.labels]


def micro_f1(found, thresholds):
    chosen = given_labels(found, thresholds)
    return 2 * (chosen & found.hits).sum() / max(1, chosen.sum() + found.positives.sum())


def label_f1(found, thresholds):
    chosen = given_labels(found, thresholds)
    n_labels = len(found.positives)
    right = np.bincount(found.labels, weights=chosen & found.hits, minlength=n_labels)
    count = np.bincount(found.labels, weights=chosen, minlength=n_labels)
    return 2 * right / np.maximum(count + found.positives, 1)


def every_threshold(found):
    """A row for each way of cutting the candidates of all labels."""
    ways = [np.append(np.unique(found.scores[found.labels == label]), 9) for label in range(len(found.positives))]
    return np.array(list(itertools.product(*ways)), dtype=np.float32)


@st.composite
def tiny(draw, n_labels=3, most=9):
    n = draw(st.integers(0, most))
    labels = np.array(draw(st.lists(st.integers(0, n_labels - 1), min_size=n, max_size=n)), dtype=np.int64)
    # Few distinct scores, so that there are ties.
    scores = np.array(draw(st.lists(st.integers(1, 6), min_size=n, max_size=n)), dtype=np.float32) / 6
    hits = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)), dtype=bool)
    missed = np.array(draw(st.lists(st.integers(0, 2), min_size=n_labels, max_size=n_labels)))
    return Candidates(labels, scores, hits, np.bincount(labels, weights=hits, minlength=n_labels).astype(int) + missed)


@given(tiny())
def test_the_pooled_f1_is_the_best_of_all_thresholds(found):
    tuned = tune_thresholds(found, "f1", fewest_hits=0)
    best = max(micro_f1(found, thresholds) for thresholds in every_threshold(found))
    assert micro_f1(found, tuned) == pytest.approx(best)


@given(tiny())
def test_the_f1_of_each_label_is_the_best_of_all_thresholds(found):
    tuned = label_f1(found, tune_thresholds(found, "macro_f1", fewest_hits=0))
    best = np.max([label_f1(found, thresholds) for thresholds in every_threshold(found)], axis=0)
    np.testing.assert_allclose(tuned, best)


@given(tiny(n_labels=4, most=30), st.integers(0, 6))
def test_the_pooled_f1_is_never_worse_than_with_one_threshold_for_all(found, fewest_hits):
    tuned = tune_thresholds(found, "f1", fewest_hits)
    best = max(micro_f1(found, np.full(4, cut, np.float32)) for cut in np.append(found.scores, 9))
    assert micro_f1(found, tuned) >= best - 1e-12


@given(tiny(n_labels=4, most=30), st.sampled_from(["f1", "macro_f1"]), st.integers(0, 4))
def test_labels_of_few_rows_share_one_threshold(found, objective, fewest_hits):
    tuned = tune_thresholds(found, objective, fewest_hits)
    assert len(np.unique(tuned[found.positives < fewest_hits])) <= 1
    assert tuned.dtype == np.float32
    assert (tuned > 0).all()


def test_with_true_chances_the_threshold_is_half_the_f1(rng):
    """If scores are probabilities, half of the best pooled F1 is the best threshold."""
    scores = rng.random(200_000).astype(np.float32)
    hits = rng.random(200_000) < scores
    found = Candidates(np.zeros(200_000, np.int64), scores, hits, np.array([hits.sum()]))
    tuned = tune_thresholds(found, "f1")
    assert tuned[0] == pytest.approx(micro_f1(found, tuned) / 2, abs=0.02)


def test_thresholds_lie_in_the_middle_of_the_gap():
    scores = np.array([0.875, 0.25], dtype=np.float32)
    found = Candidates(np.zeros(2, np.int64), scores, np.array([True, False]), np.array([1]))
    for objective in ("f1", "macro_f1"):
        assert tune_thresholds(found, objective, fewest_hits=1).tolist() == [0.5625]


def test_without_candidates_or_hits_the_threshold_stays_a_half():
    nothing = Candidates(np.zeros(0, np.int64), np.zeros(0, np.float32), np.zeros(0, bool), np.array([0, 3]))
    wrong = Candidates(np.zeros(2, np.int64), np.ones(2, np.float32), np.zeros(2, bool), np.array([0, 3]))
    for objective in ("f1", "macro_f1"):
        assert tune_thresholds(nothing, objective).tolist() == [0.5, 0.5]
        assert tune_thresholds(wrong, objective).tolist() == [0.5, 0.5]


def test_candidates_are_compared_with_the_truth(rng):
    _, Y = planted(0, n_rows=40)
    rows, labels = rng.integers(0, 40, 300), rng.integers(0, 30, 300)
    np.testing.assert_array_equal(is_true(rows, labels, Y), Y.toarray()[rows, labels] == 1)
    assert not is_true(rows, labels, sparse.csr_array(Y.shape)).any()


@pytest.mark.parametrize("objective", ["f1", "macro_f1"])
@pytest.mark.parametrize("params", [{}, {"calibrate": "platt"}, {"weighting": "score"}])
def test_predict_gives_what_was_tuned(objective, params):
    X, Y = planted(0)
    model = LabelTree(leaf_size=8, n_trees=2, **params).fit(X[:900], Y[:900])
    model.tune_thresholds_on(X[900:], Y[900:], objective)
    found = Candidates.of(*model.predict_topk(X[900:], k=100), Y[900:])
    predicted = model.predict(X[900:])
    assert f1_score(Y[900:], predicted, average="micro") == pytest.approx(micro_f1(found, model.thresholds_), abs=1e-3)
    macro = f1_score(Y[900:], predicted, average="macro", zero_division=0)
    assert macro == pytest.approx(label_f1(found, model.thresholds_).mean(), abs=1e-3)


@pytest.mark.parametrize(("objective", "average"), [("f1", "micro"), ("macro_f1", "macro")])
@pytest.mark.parametrize("make", [LabelTree, OneVsRest])
def test_f1_rises_on_rows_nobody_has_seen(make, objective, average, seed):
    X, Y = planted(seed)
    before, after = (
        make(thresholds=each, holdout=0.2).fit(X[:1000], Y[:1000]).predict(X[1000:]) for each in (None, objective)
    )
    assert f1_score(Y[1000:], after, average=average) > f1_score(Y[1000:], before, average=average) + 0.02


@pytest.mark.parametrize(("objective", "average"), [("f1", "micro"), ("macro_f1", "macro")])
def test_f1_rises_on_bibtex(benchmark_data, objective, average):
    benchmark_data("bibtex")
    train, test = load_data_set("bibtex", "train"), load_data_set("bibtex", "test")
    scale = RowScaling()
    X, X_test = scale.fit_transform(train.features), scale.transform(test.features)
    before, after = (LabelTree(thresholds=each).fit(X, train.labels).predict(X_test) for each in (None, objective))
    assert f1_score(test.labels, after, average=average) > f1_score(test.labels, before, average=average) + 0.01


def test_saved_and_loaded_models_predict_alike(tmp_path):
    X, Y = planted(0)
    model = LabelTree(leaf_size=8, thresholds="macro_f1", calibrate="isotonic").fit(X, Y)
    model.save(tmp_path / "model")
    again = longtail.load(tmp_path / "model")
    np.testing.assert_array_equal(again.thresholds_, model.thresholds_)
    assert (again.predict(X) != model.predict(X)).nnz == 0


@pytest.mark.parametrize("bad", [np.nan, np.inf, 0, -0.5])
def test_nonsense_in_saved_thresholds_is_refused(bad):
    X, Y = planted(0, n_rows=200)
    state = LabelTree(thresholds="f1").fit(X, Y).to_state()
    thresholds = state.arrays["thresholds"].copy()
    thresholds[3] = bad
    with pytest.raises(ModelFormatError, match="thresholds"):
        LabelTree.from_state(replace(state, arrays={**state.arrays, "thresholds": thresholds}))
    with pytest.raises(ModelFormatError, match="thresholds"):
        LabelTree.from_state(replace(state, arrays={**state.arrays, "thresholds": thresholds[:4]}))


def test_an_unknown_objective_is_refused():
    X, Y = planted(0, n_rows=100)
    with pytest.raises(InvalidInput, match="objective is 'F1'"):
        LabelTree().fit(X, Y).tune_thresholds_on(X, Y, "F1")
