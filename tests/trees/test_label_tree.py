"""LabelTree: seeds, paths, negatives, and edge cases of data."""

from __future__ import annotations

import copy
import pickle
import threading
from contextlib import contextmanager

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import longtail
from longtail import LabelTree, OneVsRest, progress
from longtail.errors import InvalidInput, NotEnoughMemory
from longtail.estimator.checks import planted
from longtail.labels import LabelHierarchy
from longtail.trees.examples import block_of, examples_of, layout_of
from tests.trees.packed_trees import blocks_of, members_of

TAXONOMY = LabelHierarchy([0, 3, 6, 10, 12], [1, 2, ~0, 3, ~1, ~2, ~3, ~4, ~5, ~6, ~7, ~11], n_labels=12)


@pytest.fixture
def seed():
    """One seed is enough here; hypothesis tries others where they matter."""
    return 0


negatives = pytest.mark.parametrize("negatives", ["siblings", "beam"])


def saved(model, folder):
    """The files that a model writes."""
    model.save(folder)
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix == ".npy"}


@negatives
def test_the_same_seed_gives_the_same_bytes_whatever_the_threads(negatives, tmp_path):
    X, Y = planted(np.random.default_rng(0), 150, 40, 40)
    settings = {"leaf_size": 5, "branching": 3, "n_trees": 2, "negatives": negatives, "beam": 2}
    one = saved(LabelTree(**settings, n_jobs=1).fit(X, Y), tmp_path / "1")
    for n_jobs in (2, 3):
        assert saved(LabelTree(**settings, n_jobs=n_jobs).fit(X, Y), tmp_path / str(n_jobs)) == one
    assert saved(LabelTree(**settings, random_state=1).fit(X, Y), tmp_path / "other") != one


def test_no_seed_and_the_largest_seed_can_be_used(rng):
    X, Y = planted(rng)
    weights = [LabelTree(leaf_size=3, random_state=None).fit(X, Y).trees_[0].weights.tobytes() for _ in range(3)]
    assert len(set(weights)) > 1
    assert LabelTree(random_state=2**31, n_trees=2).fit(X, Y).predict_topk(X, k=1)[0].min() >= 0


def test_trees_of_a_forest_differ_and_their_scores_are_averaged(rng):
    X, Y = planted(rng, 120, 30, 30)
    settings = {"leaf_size": 4, "precision": 32}
    forest = LabelTree(n_trees=3, **settings, random_state=5).fit(X, Y)
    trees = [LabelTree(**settings, random_state=5 + number).fit(X, Y) for number in range(3)]
    assert forest.hierarchies_[0] != forest.hierarchies_[1]
    expected = np.mean([tree.decision_function(X) for tree in trees], axis=0)
    np.testing.assert_allclose(forest.decision_function(X), expected, atol=1e-6)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
@pytest.mark.parametrize("n_trees", [1, 3])
@pytest.mark.parametrize("precision", [16, 32])
def test_explanations_follow_the_path_and_their_product_is_the_score(rng, loss, n_trees, precision):
    X, Y = planted(rng)
    model = LabelTree(2, 2, n_trees, loss, precision=precision, prune=0.02).fit(X, Y)
    full = model.decision_function(X)
    for row, label in ((0, 0), (3, 2), (7, 10), (20, 5)):
        found = model.explain(X[[row]], label)
        products = []
        for number, hierarchy in enumerate(model.hierarchies_, start=1):
            steps = [step for step in found.steps if step.tree == number]
            assert [step.node for step in steps] == hierarchy.path(label)
            products.append(np.prod([step.probability for step in steps]))
            for step in steps:
                assert step.contributions.sum() + step.intercept == pytest.approx(step.margin, abs=1e-12)
                assert (step.contributions != 0).all()
                assert (np.diff(np.abs(step.contributions)) <= 0).all()
        assert np.mean(products) == pytest.approx(full[row, label], rel=1e-4, abs=1e-37)
        assert found.score == pytest.approx(full[row, label], rel=1e-6)
        given, scores = model.predict_topk(X[[row]], 12)
        assert found.score == scores[given == label].sum()
        assert found.margin == pytest.approx(sum(step.margin for step in found.steps) / n_trees)
        assert found.contributions.sum() + found.intercept == pytest.approx(found.margin)


def test_an_explanation_is_of_one_row_and_a_label_that_exists(rng):
    X, Y = planted(rng)
    model = LabelTree().fit(X, Y)
    with pytest.raises(InvalidInput, match="one row"):
        model.explain(X[:2], 0)
    for label in (-1, 12, 1.0, True, "0"):
        with pytest.raises(InvalidInput, match="label is"):
            model.explain(X[[0]], label)
    unseen = model.explain(X[[3]], 11)
    assert (unseen.score, unseen.margin, unseen.steps) == (0, 0, ())


def test_predictions_are_the_labels_that_score_at_least_one_half(rng):
    X, Y = planted(rng)
    model = LabelTree(leaf_size=3, beam=100).fit(X, Y)
    predicted = model.predict(X).toarray()
    np.testing.assert_array_equal(predicted, model.decision_function(X) >= 0.5)
    assert predicted.any()


def test_what_is_learned_is_recalled(rng):
    X, Y = planted(rng, 200, 60, 20)
    labels, _ = LabelTree(leaf_size=5, C=100.0, prune=0.0, tol=1e-3, max_sweeps=200).fit(X, Y).predict_topk(X, k=1)
    labelled = np.flatnonzero(np.diff(Y.indptr))
    assert np.mean(Y.toarray()[labelled, labels[labelled, 0]]) > 0.9


@negatives
def test_a_taxonomy_is_used_as_it_is(rng, negatives):
    X, Y = planted(rng)
    model = LabelTree(hierarchy=TAXONOMY, negatives=negatives, beam=2).fit(X, Y)
    assert model.hierarchies_[0] == TAXONOMY.restricted_to(np.asarray(Y.sum(axis=0)) > 0)
    labels, _ = model.predict_topk(X, k=12)
    # Labels that are not in the taxonomy or have no rows are never given.
    assert set(labels.ravel().tolist()) <= {-1, *range(8)}
    assert set(LabelTree(hierarchy=TAXONOMY, beam=10).fit(X, Y).predict_topk(X, k=12)[0][:, :8].ravel()) == set(
        range(8)
    )


def test_a_hierarchy_over_other_labels_is_refused(rng):
    X, Y = planted(rng)
    with pytest.raises(InvalidInput, match="over 12 labels, but Y has 5"):
        LabelTree(hierarchy=TAXONOMY).fit(X, Y[:, :5])
    with pytest.raises(InvalidInput, match="hierarchy is a list"):
        LabelTree(hierarchy=[1, 2]).fit(X, Y)


def test_negatives_of_the_beam_change_only_nodes_that_got_some(rng, monkeypatch):
    X, Y = planted(rng)
    counts = []

    def spy(layout, members, negatives, block, n_rows, relevance):
        found = examples_of(layout, members, negatives, block, n_rows, relevance)
        counts.append((block.node, len(found.rows) - np.count_nonzero(np.diff(found.pointers))))
        return found

    monkeypatch.setattr("longtail.trees.training.examples_of", spy)
    settings = {"hierarchy": TAXONOMY, "prune": 0.0, "precision": 32, "beam": 1}
    plain = LabelTree(**settings).fit(X, Y)
    model = LabelTree(**settings, negatives="beam").fit(X, Y)
    hierarchy = model.hierarchies_[0]
    before, found = dict(counts[-2 * hierarchy.n_nodes : -hierarchy.n_nodes]), dict(counts[-hierarchy.n_nodes :])
    assert found[0] == before[0] == np.count_nonzero(np.diff(Y.indptr) == 0) > 0
    assert sum(found.values()) > sum(before.values())
    for node in range(hierarchy.n_nodes):
        one, other = (
            tree.intercepts[hierarchy.pointers[node] : hierarchy.pointers[node + 1]]
            for tree in (plain.trees_[0], model.trees_[0])
        )
        assert np.allclose(one, other, atol=1e-4) == (found[node] == before[node])


def test_whole_numbers_prune_to_so_many_weights_and_fractions_by_size(rng):
    X, Y = planted(rng)
    few = LabelTree(leaf_size=3, prune=4, precision=32).fit(X, Y).trees_[0]
    large = LabelTree(leaf_size=3, prune=0.3, precision=32).fit(X, Y).trees_[0]
    for node in range(few.hierarchy.n_nodes):
        for slot in range(few.hierarchy.pointers[node + 1] - few.hierarchy.pointers[node]):
            assert len(few.edge_weights(node, slot)[0]) == 4
            assert (np.abs(large.edge_weights(node, slot)[1]) > np.float32(0.3)).all()


def test_rare_labels_cost_more_to_miss_or_score_higher(rng):
    X, Y = planted(rng)
    plain, score = (LabelTree(weighting=weighting).fit(X, Y) for weighting in (None, "score"))
    factors = plain.inverse_propensity_ / plain.inverse_propensity_.max()
    np.testing.assert_allclose(score.decision_function(X), plain.decision_function(X) * factors, rtol=1e-5)
    dear = LabelTree(weighting="loss").fit(X, Y)
    assert dear.decision_function(X)[Y.toarray() > 0].mean() > plain.decision_function(X)[Y.toarray() > 0].mean()


def test_pickles_copies_and_clones_work(rng):
    X, Y = planted(rng)
    model = LabelTree(leaf_size=3, hierarchy=TAXONOMY).fit(X, Y)
    expected = model.predict_topk(X)
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), copy.copy(model), model):
        for one, other in zip(again.predict_topk(X), expected, strict=True):
            np.testing.assert_array_equal(one, other)
    fresh = clone(model)
    assert fresh.hierarchy == TAXONOMY
    with pytest.raises(NotFittedError):
        fresh.predict_topk(X)
    for method in (fresh.predict, fresh.decision_function, fresh.to_state, lambda X: fresh.explain(X, 0)):
        with pytest.raises(NotFittedError):
            method(X) if method != fresh.to_state else method()


def test_memory_that_is_read_only_and_wide_indices_are_learned_from(rng, tmp_path):
    X, Y = planted(rng)
    expected = LabelTree(leaf_size=3).fit(X, Y).predict_topk(X)
    for index in (np.int32, np.int64):
        parts = []
        for name, matrix in (("X", X), ("Y", Y)):
            arrays = {
                "data": matrix.data,
                "indices": matrix.indices.astype(index),
                "indptr": matrix.indptr.astype(index),
            }
            for part, array in arrays.items():
                np.save(tmp_path / f"{name}-{part}.npy", array)
            mapped = [np.load(tmp_path / f"{name}-{part}.npy", mmap_mode="r") for part in arrays]
            parts.append(sparse.csr_array(tuple(mapped), shape=matrix.shape))
        found = LabelTree(leaf_size=3).fit(*parts).predict_topk(parts[0])
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("estimator", [LabelTree, OneVsRest])
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
class TestEdges:
    def test_no_labels_at_all_give_none(self, estimator, loss, tmp_path):
        X, Y = planted(np.random.default_rng(0))
        for nothing in (Y * 0, sparse.csr_array((80, 0), dtype=np.float32)):
            model = estimator(loss=loss).fit(X, nothing)
            labels, scores = model.predict_topk(X, k=3)
            assert (labels == -1).all()
            assert (scores == -np.inf).all()
            assert not model.decision_function(X).any()
            assert model.predict(X).nnz == 0
            model.save(tmp_path / "model")
            assert (longtail.load(tmp_path / "model").predict_topk(X, k=3)[0] == -1).all()

    def test_a_label_that_every_row_has_is_given_to_all(self, estimator, loss):
        X, Y = planted(np.random.default_rng(0))
        Y = Y.toarray()
        Y[:, 4] = 1
        model = estimator(loss=loss).fit(X, Y)
        assert (model.predict(X).toarray()[:, 4] == 1).all()
        only = estimator(loss=loss).fit(X, Y[:, [4]])
        assert (only.predict_topk(X, k=2)[0] == [0, -1]).all()
        assert (only.predict(X).toarray() == 1).all()

    @pytest.mark.parametrize(
        "X", [np.zeros((20, 3)), np.ones((20, 3)), np.full((20, 3), 1e30), np.full((20, 3), -1e-30)]
    )
    def test_features_that_tell_nothing_leave_the_frequency_of_labels(self, estimator, loss, X):
        Y = np.zeros((20, 3))
        Y[:14, 2] = Y[14:, 0] = 1
        for prune in (0.1, 0.0, 2):
            model = estimator(loss=loss, prune=prune).fit(X, Y)
            labels, scores = model.predict_topk(X, k=3)
            if estimator is LabelTree and not X.any():  # labels without any feature have no place in a learned tree
                assert (labels == -1).all()
                continue
            assert np.isfinite(scores[:, :2]).all()
            assert (labels == labels[0]).all()
            if abs(X[0, 0]) < 1e20:
                assert (labels == [2, 0, -1]).all()

    def test_rows_without_features_or_labels_are_no_obstacle(self, estimator, loss):
        X, Y = planted(np.random.default_rng(1))
        X, Y = X.toarray(), Y.toarray()
        X[::3], Y[::4] = 0, 0
        labels, scores = estimator(loss=loss).fit(X, Y).predict_topk(X)
        assert (labels >= 0).all()
        assert (labels[::3] == labels[0]).all()
        assert ((scores > 0) & (scores <= 1)).all()


class Stopped(KeyboardInterrupt):
    pass


def stop_at(description):
    @contextmanager
    def listen(found, total):
        def advance(amount):
            if found == description:
                raise Stopped

        yield advance

    return listen


@pytest.mark.parametrize("moment", ["clustering labels", "training classifiers", "searching for negatives"])
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_a_fit_that_is_interrupted_leaves_an_unfitted_model_and_no_threads(moment, n_jobs):
    X, Y = planted(np.random.default_rng(0), 100, 30, 30)
    model = LabelTree(leaf_size=3, negatives="beam", n_jobs=n_jobs)
    threads = threading.active_count()
    for fitted_before in (False, True):
        if fitted_before:
            model.fit(X[:, :20], Y[:, :25])
        with pytest.raises(Stopped), progress.listening(stop_at(moment)):
            model.fit(X, Y)
        assert threading.active_count() == threads
        with pytest.raises(NotFittedError):
            model.decision_function(X)
        assert model.fit(X, Y).decision_function(X).shape == (100, 30)


def test_a_fit_that_is_refused_leaves_the_model_as_it_was(rng):
    X, Y = planted(rng)
    model = LabelTree(leaf_size=3).fit(X, Y)
    expected = model.predict_topk(X)[0]
    with pytest.raises(InvalidInput):
        model.fit(X, 2 * Y)
    with pytest.raises(InvalidInput):
        model.set_params(C=-1).fit(X[:, :4], Y)
    np.testing.assert_array_equal(model.predict_topk(X)[0], expected)


def test_too_little_memory_is_said_before_anything_is_learned(rng, monkeypatch):
    X, Y = planted(rng)
    plan = LabelTree().memory_plan(X, Y)
    assert LabelTree(n_trees=5).memory_plan(X, Y).total > plan.total
    assert LabelTree(negatives="beam").memory_plan(X, Y).total > plan.total
    for module in ("training", "model"):
        monkeypatch.setattr(f"longtail.trees.{module}.kernels", None)
    monkeypatch.setattr("longtail.labels.vectors.kernels", None)
    monkeypatch.setenv("LONGTAIL_MEMORY", "10K")
    with pytest.raises(NotEnoughMemory, match=r"LabelTree needs .*prune"):
        LabelTree().fit(X, Y)


def test_all_scores_at_once_are_refused_where_they_do_not_fit(rng, monkeypatch):
    X, Y = planted(rng)
    model = LabelTree().fit(X, Y)
    monkeypatch.setenv("LONGTAIL_MEMORY", "1K")
    with pytest.raises(NotEnoughMemory, match="predict_topk"):
        model.decision_function(X)


def test_training_examples_of_a_learned_tree_are_led_to_its_leaves(rng):
    X, Y = planted(rng)
    model = LabelTree(leaf_size=3, branching=2).fit(X, Y)
    hierarchy = model.hierarchies_[0]
    layout, members = layout_of(hierarchy, np.ones(12, np.float32)), members_of(Y)
    leaves = [
        node for node in range(hierarchy.n_nodes) if (hierarchy.children[hierarchy.pointers[node] :][:1] < 0).all()
    ]
    found = [examples_of(layout, members, (), block_of(layout, node), X.shape[0]) for node in leaves]
    assert sum(len(each.slots) for each in found) == Y.nnz
    assert len(blocks_of(hierarchy)) == hierarchy.n_nodes == len(model.trees_[0].shifts)
