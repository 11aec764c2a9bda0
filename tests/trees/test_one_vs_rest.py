"""OneVsRest is one classifier per label over all rows."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from longtail import LabelTree, OneVsRest
from longtail.errors import NotEnoughMemory
from longtail.estimator.checks import planted
from longtail.labels import LabelHierarchy


@pytest.fixture
def seed():
    """One seed is enough here; hypothesis tries others where they matter."""
    return 0


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_every_label_has_the_classifier_of_liblinear(rng, loss):
    X, Y = planted(rng)
    model = OneVsRest(loss, C=2.0, prune=0.0, precision=32, tol=1e-6, max_sweeps=1000).fit(X, Y)
    assert model.gap_ <= 1e-6
    options = {"C": 2.0, "dual": True, "tol": 1e-8, "max_iter": 100_000}
    for label in range(11):
        reference = (
            LinearSVC(**options) if loss == "squared_hinge" else LogisticRegression(solver="liblinear", **options)
        )
        reference.fit(X, Y[:, [label]].toarray().ravel())
        weights = np.zeros(30)
        features, found = model.trees_[0].edge_weights(0, label)
        weights[features] = found
        np.testing.assert_allclose(weights, reference.coef_[0], atol=5e-3 * np.abs(reference.coef_).max())
        if loss == "logistic":
            expected = reference.predict_proba(X)[:, 1]
            np.testing.assert_allclose(model.decision_function(X)[:, label], expected, atol=3e-3)


def test_it_is_a_label_tree_of_one_node(rng):
    X, Y = planted(rng)
    hierarchy = LabelHierarchy([0, 11], ~np.arange(11), n_labels=12)
    one = OneVsRest(prune=0.1).fit(X, Y)
    other = LabelTree(prune=0.1, hierarchy=hierarchy).fit(X, Y)
    assert one.hierarchies_ == other.hierarchies_
    for a, b in zip(one.predict_topk(X), other.predict_topk(X), strict=True):
        np.testing.assert_array_equal(a, b)


def test_more_labels_than_a_block_are_learned(rng):
    X, Y = planted(rng, 60, 30, 300)
    model = OneVsRest(prune=0.0, precision=32, tol=1e-6, max_sweeps=200).fit(X, Y)
    part = OneVsRest(prune=0.0, precision=32, tol=1e-6, max_sweeps=200).fit(X, Y[:, 250:299])
    np.testing.assert_allclose(model.decision_function(X)[:, 250:299], part.decision_function(X), atol=5e-3)


def test_too_little_memory_is_said_before_anything_is_learned(rng, monkeypatch):
    X, Y = planted(rng)
    monkeypatch.setattr("longtail.trees.training.kernels", None)
    monkeypatch.setenv("LONGTAIL_MEMORY", "10K")
    with pytest.raises(NotEnoughMemory, match=r"OneVsRest needs .*prune"):
        OneVsRest().fit(X, Y)
