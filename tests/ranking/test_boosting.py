"""BoostedTrees: the scores of scikit-learn from plain arrays, Shapley values, and states that are checked."""

from __future__ import annotations

import json
from itertools import combinations
from math import factorial
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_info, threadpool_limits

from longtail.errors import InvalidInput, ModelFormatError, Unavailable
from longtail.ranking import BoostedTrees
from longtail.ranking.boosting import _as_arrays
from longtail.store import State
from tests.ranking.forests import random_forest, walk

ARRAYS = ("features", "thresholds", "values", "counts")


@pytest.fixture(autouse=True, scope="module")
def one_openmp_thread():
    """scikit-learn's own threads wait for each other in a busy loop, which takes long where cores are shared."""
    with threadpool_limits(1, user_api="openmp"):
        yield


def pairs(rng, n=1500, scale=1.0):
    features = (scale * rng.normal(size=(n, 4))).astype(np.float32)
    features[:, 2] = np.round(features[:, 2] / scale)
    chances = 1 / (1 + np.exp(2 - (features[:, 0] / scale + 2 * features[:, 1] / scale * features[:, 2])))
    return features, rng.random(n) < chances


def same(one, other):
    return (one.n_features, one.baseline) == (other.n_features, other.baseline) and all(
        getattr(one, name).dtype == getattr(other, name).dtype
        and np.array_equal(getattr(one, name), getattr(other, name))
        for name in ARRAYS
    )


@pytest.mark.parametrize("scale", [1e-38, 1.0, 1e37])
def test_scores_are_those_of_scikit_learn(rng, scale):
    features, hits = pairs(rng, scale=scale)
    ranker = BoostedTrees.fit(features, hits, rounds=20, leaves=9, learning_rate=0.3, min_pairs=10, l2=1.0)
    model = HistGradientBoostingClassifier(
        max_iter=20,
        max_leaf_nodes=9,
        learning_rate=0.3,
        min_samples_leaf=10,
        l2_regularization=1.0,
        early_stopping=False,
        random_state=0,
    ).fit(features, hits)
    limits = np.concatenate([ranker.thresholds, np.nextafter(ranker.thresholds, np.float32(np.inf))])
    assert len(limits) > 200
    extremes = np.array([0, -0.0, 1e-45, 3.4e38, -3.4e38, np.inf, -np.inf], dtype=np.float32)
    tried = np.concatenate([features, rng.choice(np.concatenate([limits, extremes]), (5000, 4))])
    np.testing.assert_array_equal(ranker.raw(tried), model.decision_function(tried))
    np.testing.assert_allclose(ranker.probability(tried), model.predict_proba(tried)[:, 1], rtol=1e-12)


def test_neighbouring_values_are_told_apart(rng):
    """The threshold of scikit-learn is between them, where float32 has no number."""
    low = np.float32(1.1)
    features = np.repeat([low, np.nextafter(low, np.float32(2))], 100).astype(np.float32)[:, None]
    ranker = BoostedTrees.fit(features, features[:, 0] > low, rounds=5)
    scores = ranker.raw(features)
    assert scores[:100].max() < scores[100:].min()


def test_hits_get_higher_scores(rng):
    features, hits = pairs(rng, 4000)
    ranker = BoostedTrees.fit(features[:2000], hits[:2000], rounds=30, leaves=8)
    chances = ranker.probability(features[2000:])
    assert chances[hits[2000:]].mean() > chances[~hits[2000:]].mean() + 0.2
    assert abs(chances.mean() - hits[2000:].mean()) < 0.05


def test_threads_change_neither_the_trees_nor_the_scores(rng):
    features, hits = pairs(rng, 9000)
    before = threadpool_info()
    with threadpool_limits(1, user_api="openmp"):
        one = BoostedTrees.fit(features, hits, rounds=5)
    with threadpool_limits(3, user_api="openmp"):
        three = BoostedTrees.fit(features, hits, rounds=5)
    assert same(one, three)
    assert [pool["num_threads"] for pool in threadpool_info()][: len(before)] == [p["num_threads"] for p in before]
    np.testing.assert_array_equal(one.raw(features, n_jobs=1), one.raw(features, n_jobs=3))


@pytest.mark.parametrize(("n", "hits", "odds"), [(0, 0, 1), (8, 0, 1 / 9), (8, 8, 9)])
def test_without_both_hits_and_misses_there_are_no_trees(n, hits, odds):
    ranker = BoostedTrees.fit(np.zeros((n, 2), np.float32), np.full(n, hits > 0))
    assert ranker.n_trees == 0
    np.testing.assert_allclose(ranker.raw(np.ones((3, 2), np.float32)), np.log(odds))
    np.testing.assert_allclose(ranker.contributions(np.ones(2, np.float32)), [0, 0, np.log(odds)])
    assert same(BoostedTrees.from_state(ranker.to_state()), ranker)


@pytest.mark.parametrize("features", [np.ones((400, 3)), np.eye(2)], ids=["constant features", "two pairs"])
def test_where_no_split_is_possible_every_pair_gets_the_share_of_hits(features):
    ranker = BoostedTrees.fit(features, np.arange(len(features)) % 2 == 0, rounds=3)
    np.testing.assert_allclose(ranker.probability(features), 0.5)
    np.testing.assert_allclose(ranker.contributions(features[0]), 0, atol=1e-12)
    assert same(BoostedTrees.from_state(ranker.to_state()), ranker)


def test_no_pairs_get_no_scores():
    forest = random_forest(np.random.default_rng(0), 2, 5, n_features=3)
    assert forest.raw(np.zeros((0, 3), np.float32)).shape == (0,)


def by_brute_force(forest, pair):
    n = forest.n_features
    values = {
        chosen: walk(forest, pair, set(chosen)) for size in range(n + 1) for chosen in combinations(range(n), size)
    }
    found = np.zeros(n + 1)
    found[-1] = values[()]
    for feature in range(n):
        for chosen, value in values.items():
            if feature not in chosen:
                weight = factorial(len(chosen)) * factorial(n - len(chosen) - 1) / factorial(n)
                found[feature] += weight * (values[tuple(sorted((*chosen, feature)))] - value)
    return found


@given(st.integers(0, 2**32 - 1), st.integers(0, 3), st.integers(1, 12), st.integers(1, 5))
def test_contributions_are_shapley_values(seed, n_trees, most_leaves, n_features):
    rng = np.random.default_rng(seed)
    forest = random_forest(rng, n_trees, most_leaves, n_features)
    pair = rng.integers(-2, 4, n_features).astype(np.float32)
    np.testing.assert_allclose(forest.contributions(pair), by_brute_force(forest, pair), atol=1e-12)


def test_contributions_add_up_to_the_score_of_large_trees(rng):
    forest = random_forest(rng, 60, 32, n_features=40)
    for pair in rng.normal(size=(5, 40)).astype(np.float32):
        assert forest.contributions(pair).sum() == pytest.approx(forest.raw(pair[None])[0], abs=1e-10)


@pytest.mark.parametrize(
    "wrong",
    [
        *({"rounds": value} for value in (0, 1001, 1.5, True)),
        *({"leaves": value} for value in (1, 33, None)),
        *({"learning_rate": value} for value in (0, -1, np.nan)),
        *({"min_pairs": value} for value in (0, 2.5)),
        {"l2": -1},
    ],
)
def test_a_bad_parameter_is_named(wrong):
    with pytest.raises(InvalidInput) as found:
        BoostedTrees.fit(np.zeros((4, 1), np.float32), np.array([1, 0, 1, 0], bool), **wrong)
    assert found.value.code == "bad_parameter"
    assert found.value.name == next(iter(wrong))


@pytest.mark.parametrize(
    ("features", "hits"),
    [
        (np.zeros((4, 0)), np.zeros(4)),
        (np.zeros((4, 257)), np.zeros(4)),
        (np.zeros(4), np.zeros(4)),
        (np.zeros((4, 2)), np.zeros(3)),
        (np.zeros((4, 2)), np.zeros((4, 1))),
        (np.full((4, 2), np.nan), np.arange(4) % 2),
        (np.full((4, 2), np.inf), np.arange(4) % 2),
    ],
)
def test_pairs_that_cannot_be_learned_from_are_refused(features, hits):
    with pytest.raises(InvalidInput):
        BoostedTrees.fit(features, hits)


@pytest.mark.parametrize("features", [np.zeros((2, 4)), np.zeros(3), np.full((2, 3), np.nan)])
def test_pairs_that_cannot_be_scored_are_refused(features):
    forest = random_forest(np.random.default_rng(0), 2, 5, n_features=3)
    with pytest.raises(InvalidInput):
        forest.raw(features)


def fitted_model():
    features, hits = pairs(np.random.default_rng(0), 300)
    return HistGradientBoostingClassifier(max_iter=3, early_stopping=False, max_leaf_nodes=6).fit(features, hits)


def renamed(nodes):
    nodes.dtype.names = tuple("split" if name == "feature_idx" else name for name in nodes.dtype.names)


def swapped(nodes):
    nodes["left"], nodes["right"] = nodes["right"].copy(), nodes["left"].copy()


def categorical(nodes):
    nodes["is_categorical"][0] = 1


def cut_short(nodes):
    nodes["is_leaf"][-1] = 0


@pytest.mark.parametrize("change", [renamed, swapped, categorical, cut_short])
def test_other_trees_than_expected_of_scikit_learn_are_refused(change):
    model = fitted_model()
    for (tree,) in model._predictors:
        tree.nodes = tree.nodes.astype(tree.nodes.dtype.descr)  # a copy with a dtype of its own
        change(tree.nodes)
    with pytest.raises(Unavailable, match="scikit-learn"):
        _as_arrays(model)


@pytest.mark.parametrize("missing", ["_predictors", "_baseline_prediction"])
def test_other_attributes_than_expected_of_scikit_learn_are_refused(missing):
    model = fitted_model()
    there = {name: getattr(model, name) for name in ("_predictors", "_baseline_prediction") if name != missing}
    with pytest.raises(Unavailable, match=missing):
        _as_arrays(SimpleNamespace(**there))


@given(st.integers(0, 2**32 - 1), st.integers(0, 5), st.integers(1, 32))
def test_a_state_gives_the_same_trees_again(seed, n_trees, most_leaves):
    forest = random_forest(np.random.default_rng(seed), n_trees, most_leaves, n_features=3)
    state = forest.to_state()
    again = BoostedTrees.from_state(State(state.kind, facts=json.loads(json.dumps(state.facts)), arrays=state.arrays))
    assert same(again, forest)
    assert again.n_trees == n_trees


def test_trees_do_not_change_with_the_arrays_they_were_loaded_from():
    forest = random_forest(np.random.default_rng(0), 4, 9, n_features=3)
    state = random_forest(np.random.default_rng(0), 4, 9, n_features=3).to_state()
    loaded = BoostedTrees.from_state(state)
    for array in state.arrays.values():
        array[:] = 30000
    assert same(loaded, forest)


def entry(name, place, value):
    def apply(state):
        state.arrays[name] = state.arrays[name].copy()
        state.arrays[name][place] = value

    return pytest.param(apply, id=f"{name}[{place}]={value}")


def fact(name, value):
    return pytest.param(lambda state: state.facts.__setitem__(name, value), id=f"{name}={value}")


def changed(name, word, function):
    return pytest.param(lambda state: state.arrays.__setitem__(name, function(state.arrays[name])), id=f"{name} {word}")


def nodes(word, found):
    """Other nodes, with as many thresholds, values and counts as they need."""

    def apply(state):
        features = np.array(found, dtype=np.int16)
        splits, leaves = int((features >= 0).sum()), int((features < 0).sum())
        state.arrays.update(features=features, thresholds=np.zeros(splits, np.float32))
        state.arrays.update(values=np.zeros(leaves), counts=np.ones(leaves, np.int64))

    return pytest.param(apply, id=f"nodes {word}")


@pytest.mark.parametrize(
    "attack",
    [
        *(changed(name, "short", lambda array: array[:-1]) for name in ARRAYS),
        *(changed(name, "long", lambda array: np.append(array, array[-1:])) for name in ARRAYS),
        *(changed(name, "of another type", lambda array: array.astype(np.int32)) for name in ARRAYS),
        *(changed(name, "square", lambda array: array.reshape(1, -1)) for name in ARRAYS),
        *(changed(name, "missing", lambda array: None) for name in ARRAYS),
        *(entry("features", 0, value) for value in (3, -2, 32767, -32768)),
        *(entry(name, 0, value) for name in ("thresholds", "values") for value in (np.nan, np.inf, -np.inf)),
        *(entry("counts", 0, value) for value in (0, -1, 2**32 + 1, 2**63 - 1)),
        *(fact("n_features", value) for value in (None, 0, 2, 257, 2.0, True)),
        *(fact("baseline", value) for value in (None, np.nan, np.inf, "0", True)),
        nodes("incomplete", [0, -1]),
        nodes("without leaves", [0, 0, 0]),
        nodes("incomplete after a tree", [-1, 0, -1]),
        nodes("of a tree with 33 leaves", [0] * 32 + [-1] * 33),
        nodes("of 1001 trees", [-1] * 1001),
        nodes("too many", [-1] * 63_001),
    ],
)
def test_a_state_that_does_not_fit_together_is_refused(attack):
    state = random_forest(np.random.default_rng(0), 3, 8, n_features=3).to_state()
    hostile = State("BoostedTrees", facts=dict(state.facts), arrays=dict(state.arrays))
    attack(hostile)
    with pytest.raises(ModelFormatError):
        BoostedTrees.from_state(hostile)


@given(st.lists(st.integers(-1, 2), max_size=40))
def test_whatever_nodes_are_accepted_can_be_walked(found):
    features = np.array(found, dtype=np.int16)
    leaves = int((features < 0).sum())
    arrays = {
        "features": features,
        "thresholds": np.zeros(len(found) - leaves, np.float32),
        "values": np.arange(leaves, dtype=np.float64),
        "counts": np.ones(leaves, np.int64),
    }
    state = State("BoostedTrees", facts={"n_features": 3, "baseline": 0.5}, arrays=arrays)
    try:
        forest = BoostedTrees.from_state(state)
    except ModelFormatError:
        with pytest.raises((StopIteration, RuntimeError)):
            walk(SimpleNamespace(baseline=0.5, **arrays), np.zeros(3))
        return
    for pair in np.array([[0, 1, 0], [1, 0, 1]], dtype=np.float32):
        assert forest.raw(pair[None])[0] == walk(forest, pair)


def test_the_mean_of_rankers_has_the_mean_score_and_explains_it():
    rng = np.random.default_rng(0)
    features = rng.random((400, 3), dtype=np.float32)
    hits = features[:, 0] + features[:, 1] > 1
    one = BoostedTrees.fit(features[::2], hits[::2], rounds=7, min_pairs=5)
    other = BoostedTrees.fit(features[1::2], hits[1::2], rounds=5, min_pairs=5)
    mean = BoostedTrees.mean([one, other])
    assert mean.n_trees == 12
    np.testing.assert_allclose(mean.raw(features), (one.raw(features) + other.raw(features)) / 2, rtol=1e-12)
    np.testing.assert_allclose(mean.contributions(features[0]).sum(), mean.raw(features[:1])[0], rtol=1e-9)


def test_rankers_of_other_features_have_no_mean():
    one = BoostedTrees.fit(np.ones((4, 2), np.float32), np.ones(4, bool))
    other = BoostedTrees.fit(np.ones((4, 3), np.float32), np.ones(4, bool))
    for rankers in ([], [one, other]):
        with pytest.raises(InvalidInput, match="same number of features"):
            BoostedTrees.mean(rankers)
