"""Rare labels: both kinds of weighting find more of them, measured by PSP."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from longtail import LabelTree, OneVsRest
from longtail.data import load_data_set
from longtail.estimator import column_counts
from longtail.metrics import inverse_propensity, psp_at_k
from longtail.text import RowScaling
from tests.trees.test_calibration import planted

WEIGHTINGS = ["loss", "score"]


def psp(name, log, make):
    """PSP@1, 3 and 5 on the test rows, in percent."""
    train, test = load_data_set(name, "train"), load_data_set(name, "test")
    scale = RowScaling(log=log)
    X = scale.fit_transform(train.features)
    weights = inverse_propensity(train.label_counts, train.n_rows)
    top, _ = make().fit(X, train.labels).predict_topk(scale.transform(test.features))
    return np.array([100 * psp_at_k(test.labels, top, k, weights) for k in (1, 3, 5)])


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("make", [LabelTree, OneVsRest])
def test_psp_rises_on_bibtex(benchmark_data, make, weighting):
    benchmark_data("bibtex")
    before, after = (psp("bibtex", False, lambda each=each: make(weighting=each)) for each in (None, weighting))
    assert (after > before).all()


@pytest.mark.slow
@pytest.mark.parametrize(("weighting", "rise"), [("loss", (2, 2, 2)), ("score", (5, 2.5, 1.5))])
def test_psp_rises_on_eurlex(benchmark_data, weighting, rise):
    benchmark_data("eurlex-4k")
    before, after = (psp("eurlex-4k", True, lambda each=each: LabelTree(weighting=each)) for each in (None, weighting))
    assert (after > before + rise).all()


def test_a_miss_costs_in_proportion_to_the_inverse_propensity_and_c_on_average(rng):
    X, Y = planted(0, n_rows=300)
    model = LabelTree(weighting="loss", C=0.7)
    costs = model._miss_costs(X, Y)
    np.testing.assert_allclose(costs / costs[0], model.inverse_propensity_ / model.inverse_propensity_[0], rtol=1e-5)
    assert costs[Y.indices].mean() == pytest.approx(0.7, rel=1e-5)
    rare, frequent = np.argsort(column_counts(Y))[[0, -1]]
    assert costs[rare] > 0.7 > costs[frequent]


@pytest.mark.parametrize("weighting", [None, "score"])
def test_without_weighted_losses_every_miss_costs_c(weighting):
    X, Y = planted(0, n_rows=100)
    costs = LabelTree(weighting=weighting, C=0.7)._miss_costs(X, Y)
    np.testing.assert_array_equal(costs, np.float32(0.7))


def test_labels_that_are_all_alike_are_not_weighed():
    """If all labels have the same number of rows, weighting changes nothing."""
    rng = np.random.default_rng(0)
    Y = sparse.csr_array(np.tile(np.eye(6, dtype=np.float32), (10, 1)))
    X = sparse.csr_array((Y @ rng.random((6, 9)) + rng.random((60, 9))).astype(np.float32))
    raw = LabelTree(leaf_size=3).fit(X, Y).predict_topk(X, k=3)
    for weighting in WEIGHTINGS:
        labels, scores = LabelTree(leaf_size=3, weighting=weighting).fit(X, Y).predict_topk(X, k=3)
        np.testing.assert_array_equal(labels, raw[0])
        np.testing.assert_allclose(scores, raw[1], rtol=1e-3)


def test_scores_are_multiplied_by_the_inverse_propensity_relative_to_the_rarest():
    X, Y = planted(0, n_rows=300)
    raw, weighed = (OneVsRest(weighting=each).fit(X, Y) for each in (None, "score"))
    factors = weighed.inverse_propensity_ / weighed.inverse_propensity_.max()
    np.testing.assert_allclose(weighed.decision_function(X), raw.decision_function(X) * factors, rtol=1e-4, atol=1e-7)


def test_no_labels_at_all_are_no_error():
    model = LabelTree(weighting="loss").fit(np.eye(4), np.zeros((4, 3)))
    assert (model.predict_topk(np.eye(4), k=1)[0] == -1).all()
