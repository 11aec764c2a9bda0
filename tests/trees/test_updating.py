"""An update of trees equals a training on all rows with the same hierarchy, and leaves the old model as it is."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from longtail import LabelTree, OneVsRest, load
from longtail.errors import InvalidInput
from longtail.estimator import Revision
from longtail.estimator.checks import planted
from longtail.labels import LabelHierarchy

EXACT = {"tol": 1e-6, "max_sweeps": 500, "prune": 0.0, "precision": 32}


@pytest.fixture(autouse=True)
def old_clusters(monkeypatch):
    """Updates keep the clusters, however many rows move."""
    monkeypatch.setattr("longtail.trees.model._CLUSTERED_ANEW", np.inf)


def data(seed=0, n_rows=400, n_labels=40):
    return planted(np.random.default_rng(seed), n_rows=n_rows, n_features=60, n_labels=n_labels)


def flat(labels, n_labels):
    return LabelHierarchy(np.array([0, len(labels)]), ~np.asarray(labels), n_labels)


def without_rows(X, Y, gone):
    kept = np.setdiff1d(np.arange(X.shape[0]), gone)
    return kept, X[kept], Y[kept]


def again(model, X, Y):
    """A training on all rows with the hierarchy of an updated model."""
    given = {"hierarchy": model.hierarchies_[0]} if isinstance(model, LabelTree) else {}
    return clone(model).set_params(**given).fit(X, Y)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
@pytest.mark.parametrize(
    "model",
    [LabelTree(leaf_size=5, branching=4, C=2.0, **EXACT), OneVsRest(C=2.0, **EXACT)],
    ids=["tree", "one-vs-rest"],
)
def test_an_update_equals_a_training_on_all_rows(model, loss):
    X, Y = data()
    old = np.arange(300)
    first = clone(model).set_params(loss=loss).fit(X[:300], Y[:300])
    changed = Y.toarray()[20:]
    changed[3, :4] = 1 - changed[3, :4]
    changed = sparse.csr_array(changed)
    revision = Revision.of(
        X[:300], Y[:300], X[20:], changed, kept=old[20:], labels=np.arange(Y.shape[1]), relabelled=[3]
    )
    updated = first.updated(revision)
    np.testing.assert_allclose(
        updated.decision_function(X), again(updated, X[20:], changed).decision_function(X), atol=3e-3
    )


def test_new_dropped_and_reordered_labels_equal_a_training_on_all_rows():
    X, Y = data()
    first = LabelTree(leaf_size=6, branching=4, **EXACT).fit(X[:300], Y[:300, :30])
    labels = np.concatenate([np.arange(5, 30), [-1] * 6])
    now = sparse.csr_array(Y[:, np.concatenate([np.arange(5, 30), np.arange(30, 36)])])
    now = sparse.csr_array(sparse.vstack([sparse.hstack([Y[:300, 5:30], sparse.csr_array((300, 6))]), now[300:]]))
    had = np.flatnonzero(np.diff(Y[:300, :5].indptr))
    updated = first.updated(
        Revision.of(X[:300], Y[:300, :30], X, now, kept=np.arange(300), labels=labels, relabelled=had)
    )
    expected = again(updated, X, now)
    assert updated.hierarchies_[0] == expected.hierarchies_[0]
    assert set(updated.hierarchies_[0].labels) == set(np.flatnonzero(np.bincount(now.indices, minlength=31)))
    np.testing.assert_allclose(updated.decision_function(X), expected.decision_function(X), atol=3e-3)


def test_a_leaf_that_grows_too_large_is_split():
    X, Y = data(n_labels=40)
    first = LabelTree(leaf_size=6, branching=4, **EXACT).fit(X[:200], Y[:200, :10])
    before = sparse.csr_array(sparse.hstack([Y[:200, :10], sparse.csr_array((200, 29))]))
    now = sparse.csr_array(sparse.vstack([before, Y[200:, :39]]))
    labels = np.concatenate([np.arange(10), np.full(29, -1)])
    updated = first.updated(Revision.of(X[:200], Y[:200, :10], X, now, kept=np.arange(200), labels=labels))
    hierarchy = updated.hierarchies_[0]
    assert np.diff(hierarchy.pointers)[np.unique(hierarchy.parents()[1])].max() <= 9
    assert len(hierarchy.labels) == 39
    np.testing.assert_allclose(updated.decision_function(X), again(updated, X, now).decision_function(X), atol=3e-3)


@pytest.mark.parametrize("negatives", ["siblings", "beam"])
def test_only_classifiers_whose_rows_changed_are_trained_again(negatives):
    X, Y = data(n_rows=2000, n_labels=60)
    model = LabelTree(leaf_size=8, branching=4, beam=3, negatives=negatives, n_trees=2).fit(X[:1999], Y[:1999])
    updated = model.updated(Revision.of(X[:1999], Y[:1999], X, Y, kept=np.arange(1999), labels=np.arange(60)))
    edges = sum(len(tree.hierarchy.children) for tree in updated.trees_)
    assert 0 < updated.n_trained_ < edges / 2
    same = [
        len(np.intersect1d(one.intercepts, other.intercepts))
        for one, other in zip(model.trees_, updated.trees_, strict=True)
    ]
    assert sum(same) >= edges - updated.n_trained_


def test_nothing_changed_trains_nothing_and_gives_the_same_weights():
    X, Y = data()
    model = LabelTree(leaf_size=5).fit(X, Y)
    updated = model.updated(Revision.of(X, Y, X, Y, kept=np.arange(400), labels=np.arange(40)))
    assert updated.n_trained_ == 0
    for name in ("weights", "scales", "intercepts", "masks", "counts", "slots", "first_weight"):
        np.testing.assert_array_equal(getattr(updated.trees_[0], name), getattr(model.trees_[0], name))


def test_staleness_adds_up_until_a_classifier_is_trained_again():
    X, Y = data(n_rows=900, n_labels=30)
    model = OneVsRest(tol=0.05).fit(X[:300], Y[:300])
    trained, most = [], 0.0
    for start in range(300, 900, 30):
        model = model.updated(
            Revision.of(
                X[:start], Y[:start], X[: start + 30], Y[: start + 30], kept=np.arange(start), labels=np.arange(30)
            )
        )
        trained.append(model.n_trained_)
        most = max(most, float(model.staleness_[0].max()))
    assert min(trained) < max(trained)
    assert most > 0
    full = OneVsRest(tol=0.05).fit(X, Y)
    difference = np.abs(model.decision_function(X) - full.decision_function(X))
    assert difference.mean() < 0.02


def test_the_old_model_stays_as_it_was_and_both_can_be_saved(tmp_path):
    from longtail import load

    X, Y = data()
    model = LabelTree(leaf_size=5, thresholds="f1", calibrate="platt").fit(X[:300], Y[:300])
    before = model.decision_function(X)
    revision = Revision.of(X[:300], Y[:300], X, Y, kept=np.arange(300), labels=np.arange(40))
    updated = model.updated(revision)
    np.testing.assert_array_equal(model.decision_function(X), before)
    assert not np.array_equal(updated.decision_function(X), before)
    assert updated.thresholds_.shape == (40,)
    updated.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.decision_function(X), updated.decision_function(X))
    np.testing.assert_array_equal(loaded.staleness_[0], updated.staleness_[0])
    np.testing.assert_allclose(
        loaded.updated(Revision.of(X, Y, X[1:], Y[1:], kept=np.arange(1, 400), labels=np.arange(40))).n_labels_, 40
    )


def test_a_tree_can_lose_all_labels_and_get_others():
    X, Y = data(n_labels=12)
    model = LabelTree(leaf_size=3).fit(X, Y)
    empty = model.updated(
        Revision.of(X, Y, X[:0], sparse.csr_array((0, 0)), kept=np.zeros(0, int), labels=np.zeros(0, int))
    )
    assert empty.n_labels_ == 0
    labels = np.full(12, -1)
    back = empty.updated(Revision.of(X[:0], sparse.csr_array((0, 0)), X, Y, kept=np.zeros(0, int), labels=labels))
    assert set(back.hierarchies_[0].labels) == set(range(11))


@pytest.mark.parametrize(
    "bad",
    [
        {"kept": [1, 0]},
        {"kept": [400]},
        {"labels": [0]},
        {"labels": np.zeros(40, int)},
        {"relabelled": [400]},
        {"kept": [0.5]},
    ],
)
def test_contradictions_are_refused(bad):
    X, Y = data()
    with pytest.raises(InvalidInput):
        Revision.of(X, Y, X, Y, **{"kept": np.arange(400), "labels": np.arange(40), **bad})


def grown(model, X, Y, first, last):
    kept = np.arange(first)
    return model.updated(Revision.of(X[:first], Y[:first], X[:last], Y[:last], kept, np.arange(Y.shape[1])))


def test_labels_are_clustered_again_when_a_quarter_of_the_rows_has_moved(monkeypatch):
    monkeypatch.setattr("longtail.trees.model._CLUSTERED_ANEW", 0.25)
    X, Y = data()
    model = LabelTree(leaf_size=5, negatives="beam", beam=2).fit(X[:300], Y[:300])
    before = grown(model, X, Y, 300, 340)
    assert before.hierarchies_ == model.hierarchies_
    assert (before.rows_clustered_, before.rows_moved_) == (300, 40)
    after = grown(before, X, Y, 340, 380)
    full = clone(model).fit(X[:380], Y[:380])
    assert after.hierarchies_ == full.hierarchies_
    assert (after.rows_clustered_, after.rows_moved_) == (380, 0)
    np.testing.assert_array_equal(after.decision_function(X), full.decision_function(X))


def test_a_given_tree_is_never_clustered_again(monkeypatch, tmp_path):
    monkeypatch.setattr("longtail.trees.model._CLUSTERED_ANEW", 0.25)
    X, Y = data()
    given = LabelTree(leaf_size=5).fit(X, Y).hierarchies_[0]
    model = LabelTree(leaf_size=50, hierarchy=given).fit(X[:200], Y[:200])
    model.save(tmp_path / "model")
    assert grown(load(tmp_path / "model"), X, Y, 200, 400).hierarchies_ == model.hierarchies_


def test_siblings_stay_while_their_rows_moved_little_together():
    X, Y = data(n_rows=3000, n_labels=60)
    model = OneVsRest().fit(X[:2990], Y[:2990])
    updated = grown(model, X, Y, 2990, 3000)
    gained = np.unique(Y[2990:].indices)
    stale = updated.staleness_[0]
    assert updated.n_trained_ < 60
    assert (stale[gained] == 0).all()
    assert stale.max() > 0
    exact = OneVsRest(tol=1e-6, max_sweeps=500).fit(X, Y)
    assert np.abs(updated.decision_function(X) - exact.decision_function(X)).mean() < 0.02
