"""TreeWeights: packed weights come back; anything else is refused or harmless."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.errors import ModelFormatError
from longtail.labels import LabelHierarchy
from longtail.store import State
from longtail.trees.weights import DENSE, TreeWeights
from tests.labels.trees import hierarchies
from tests.trees.packed_trees import LARGE_ARRAYS, flat, packed, random_tree, with_bytes

TREE = LabelHierarchy([0, 3, 6, 9], [1, 2, ~0, ~1, ~2, ~3, ~10, ~4, ~5], n_labels=11)


@pytest.fixture
def seed():
    """One seed is enough here; hypothesis tries others where they matter."""
    return 0


def edge_features(n_features):
    """Features around every power of two below `n_features`, where buckets may begin and end."""
    around = [2**i + j for i in range(20) for j in (-1, 0, 1)]
    return np.array(sorted({0, n_features - 1, *(f for f in around if 0 <= f < n_features)}))


def check_packed(tree, weights, step=None):
    """Every edge has its column of `weights`, up to this many of its steps."""
    edge = 0
    for node in range(tree.hierarchy.n_nodes):
        for slot in range(tree.hierarchy.pointers[node + 1] - tree.hierarchy.pointers[node]):
            features, found = tree.edge_weights(node, slot)
            assert (np.diff(features) > 0).all()
            column = np.zeros(weights.shape[0], dtype=np.float32)
            column[features] = found
            expected = weights[:, edge].astype(np.float32)
            tolerance = 0 if step is None else step * np.abs(expected).max() / 32767
            np.testing.assert_allclose(column, expected, rtol=0, atol=tolerance)
            edge += 1
    assert edge == weights.shape[1]


@pytest.mark.parametrize("n_features", [1, 2, 63, 64, 65, 1000, 2**16, 2**16 + 1, 2**17 + 3, 2**18])
@pytest.mark.parametrize("density", [0.1, 0.9])
def test_the_weights_of_an_edge_are_those_that_were_packed(rng, n_features, density):
    weights = np.zeros((n_features, 7))
    used = edge_features(n_features)
    weights[used] = rng.normal(size=(len(used), 7)) * (rng.random((len(used), 7)) < density)
    tree = packed(flat(7), weights, np.zeros(7))
    check_packed(tree, weights)
    check_packed(packed(flat(7), weights, np.zeros(7), precision=16), weights, step=0.51)


@given(hierarchies(), st.integers(1, 300), st.integers(0, 10**6))
def test_any_tree_gives_back_what_was_packed(hierarchy, n_features, seed):
    rng = np.random.default_rng(seed)
    edges = len(hierarchy.children)
    weights = rng.normal(size=(n_features, edges)) * (rng.random((n_features, edges)) < rng.choice([0.05, 0.3, 1.0]))
    intercepts = rng.normal(size=edges).astype(np.float32)
    tree = packed(hierarchy, weights, intercepts)
    check_packed(tree, weights)
    np.testing.assert_array_equal(tree.intercepts, intercepts)


@pytest.mark.parametrize("n_children", [1, 255, 256, 257, 300, 513])
@pytest.mark.parametrize("density", [0.1, 1.0])
def test_children_beyond_a_block_begin_another(rng, n_children, density):
    weights = rng.normal(size=(20, n_children)) * (rng.random((20, n_children)) < density)
    tree = packed(flat(n_children), weights, np.zeros(n_children))
    assert len(tree.shifts) == -(-n_children // 256)
    check_packed(tree, weights)


def test_low_bits_are_stored_only_where_a_mask_has_too_few_bits(rng):
    weights = np.zeros((64 * 64, 3))
    weights[::32] = 1
    assert len(packed(flat(3), weights, np.zeros(3)).lows) == 0
    weights[32] = 0
    tree = packed(flat(3), weights, np.zeros(3))
    width = 1 << (int(tree.shifts[0]) & 0x7F)
    assert tree.lows.tolist() == [feature % width for feature in np.flatnonzero(weights[:, 0]).tolist()]
    check_packed(tree, weights)


def test_a_block_with_half_of_its_weights_is_dense_and_one_with_fewer_is_not(rng):
    half = np.zeros((10, 4))
    half[:, ::2] = 1
    fewer = half.copy()
    fewer[0, 0] = 0
    for weights, dense, n_weights in ((half, True, 40), (fewer, False, 19)):
        tree = packed(flat(4), weights, np.zeros(4))
        assert bool(tree.shifts[0] & DENSE) == dense
        assert tree.n_weights == n_weights
        check_packed(tree, weights)


def test_sixteen_bits_hold_each_childs_largest_weight_whatever_its_size():
    sizes = 10.0 ** np.arange(-44, 38, 3)
    weights = np.stack([sizes, -sizes / 3, sizes / 65536])
    tree = packed(flat(len(sizes)), weights, np.zeros(len(sizes)), precision=16)
    large = sizes > 1e-30
    for slot in np.flatnonzero(large):
        features, found = tree.edge_weights(0, slot)
        assert features.tolist() == [0, 1]
        np.testing.assert_allclose(found, weights[:2, slot], rtol=1e-4)
    for slot in np.flatnonzero(~large):
        assert len(tree.edge_weights(0, slot)[0]) == 0
    assert (tree.scales > 0).all()


def test_sixteen_bits_take_less_room(rng):
    short, full = (random_tree(np.random.default_rng(0), flat(50), 400, precision=bits) for bits in (16, 32))
    assert short.weights.dtype == np.int16
    assert full.weights.dtype == np.float32
    assert short.n_weights == full.n_weights
    assert full.n_bytes - short.n_bytes == 2 * full.n_weights


@given(hierarchies(), st.sampled_from([16, 32]), st.integers(0, 10**6))
def test_a_state_gives_the_same_tree_again(hierarchy, precision, seed):
    tree = random_tree(np.random.default_rng(seed), hierarchy, precision=precision)
    again = TreeWeights.from_state(tree.to_state())
    assert again.hierarchy == tree.hierarchy
    assert again.n_features == tree.n_features
    for name, array in tree.for_search().items():
        found = again.for_search()[name]
        assert found.dtype == array.dtype
        np.testing.assert_array_equal(found, array)


def change(name, function):
    def apply(state):
        state.arrays[name] = function(state.arrays[name].copy())

    return pytest.param(apply, id=f"{name} {function.__name__.strip('_')}")


def fact(name, value):
    return pytest.param(lambda state: state.facts.__setitem__(name, value), id=f"{name}={value}")


def missing(name):
    return pytest.param(lambda state: state.arrays.pop(name), id=f"{name} missing")


def short(array):
    return array[:-1]


def long(array):
    return np.append(array, array[-1:])


def double(array):
    return array.astype(np.float64)


def negative(array):
    array[0] = -1
    return array


def beyond(array):
    array[-1] += 1
    return array


def falling(array):
    array[1], array[2] = array[2], array[1] - 1
    return array


def infinite(array):
    array[-1] = np.inf
    return array


def nan(array):
    array[0] = np.nan
    return array


def square(array):
    return array.reshape(1, -1)


def huge(array):
    array[-1] = 2**62
    return array


SMALL = ("pointers", "children", "intercepts", "scales", "first_bucket", "first_row", "first_low", "first_weight")
ALL = (*SMALL, *LARGE_ARRAYS)


@pytest.mark.parametrize(
    "attack",
    [
        *(change(name, function) for name in ALL for function in (short, long, double, square)),
        *(missing(name) for name in ALL),
        *(
            change(f"first_{of}", function)
            for of in ("bucket", "row", "low", "weight")
            for function in (negative, beyond, falling, huge)
        ),
        *(change(name, function) for name in ("intercepts", "scales") for function in (infinite, nan)),
        *(change("pointers", function) for function in (negative, beyond, huge)),
        *(change("children", function) for function in (huge, beyond)),
        *(fact("n_features", value) for value in (None, 0, -1, 2**31, 2**70, 3.5, True, "3000")),
        *(fact("n_labels", value) for value in (None, 0, -1, 10, 3.5)),
    ],
)
def test_a_state_that_does_not_fit_together_is_refused(attack):
    state = random_tree(np.random.default_rng(0), TREE, 3000, density=0.002).to_state()
    hostile = State("TreeWeights", facts=dict(state.facts), arrays=dict(state.arrays))
    attack(hostile)
    with pytest.raises(ModelFormatError):
        TreeWeights.from_state(hostile)


@pytest.mark.parametrize("name", LARGE_ARRAYS)
@pytest.mark.parametrize("precision", [16, 32])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_weights_of_edges_from_any_bytes_are_of_features_that_exist(name, precision):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        tree = random_tree(rng, TREE, density=rng.choice([0.1, 0.9]), precision=precision)
        state = tree.to_state()
        state.arrays[name] = with_bytes(rng, tree, (name,))[name]
        hostile = TreeWeights.from_state(state)
        for slot in range(3):
            features, weights = hostile.edge_weights(1, slot)
            assert len(features) == len(weights) <= tree.n_weights
            assert ((features >= 0) & (features < 30)).all()
