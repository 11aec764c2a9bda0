"""The beam search compared with brute force and its twin, and on damaged arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail import native
from longtail.labels import LabelHierarchy
from longtail.native.tree_search import log_probability
from tests.labels.trees import hierarchies
from tests.trees.packed_trees import LARGE_ARRAYS, flat, packed, random_rows, random_tree, with_bytes

WIDE = 10**6
losses = pytest.mark.parametrize("logistic", [False, True], ids=["squared_hinge", "logistic"])
precisions = pytest.mark.parametrize("precision", [16, 32])

# Nodes with nodes and labels, a chain, missing labels; labels at different depths.
RAGGED = LabelHierarchy(
    [0, 4, 6, 9, 11, 12, 14],
    [1, 2, ~0, ~9, 3, ~1, ~2, 4, ~3, ~4, ~5, 5, ~6, ~7],
    n_labels=11,
)


@pytest.fixture
def seed():
    """One is enough here; hypothesis generates others where they matter."""
    return 0


def native_only():
    if not native.is_native():
        pytest.skip("the native kernels are not built here")
    return native.kernels


def searcher(form, trees, logistic=False, path_weight=1.0):
    arrays = [tree.for_search() for tree in trees]
    return form.TreeSearch(trees[0].n_features, trees[0].hierarchy.n_labels, logistic, path_weight, arrays)


def topk(search, rows, k, beam=WIDE, allowed=None, factors=None, first=0, last=None):
    n_rows = len(rows.indptr) - 1
    labels, scores = np.full((n_rows, k), -7), np.full((n_rows, k), 7, dtype=np.float32)
    last = n_rows if last is None else last
    search.topk(rows.indptr, rows.indices, rows.data, first, last, beam, allowed, factors, labels, scores)
    return labels[first:last], scores[first:last]


def everything(search, rows, n_labels, beam=WIDE, factors=None):
    scores = np.zeros((len(rows.indptr) - 1, n_labels), dtype=np.float32)
    search.all(rows.indptr, rows.indices, rows.data, 0, len(scores), beam, factors, scores)
    return scores


def dense_rows(rows):
    dense = np.zeros((len(rows.indptr) - 1, rows.n_columns))
    dense[np.repeat(np.arange(len(dense)), np.diff(rows.indptr)), rows.indices] = rows.data
    return dense


def brute_force(tree, rows, logistic, path_weight=1.0):
    """Log scores of every label, -inf for labels that are not in the tree: sums along the path in float64."""
    hierarchy, X = tree.hierarchy, dense_rows(rows)
    logs = np.full((len(X), hierarchy.n_labels), -np.inf)
    for label in hierarchy.labels.tolist():
        path = hierarchy.path(label)
        total = np.zeros(len(X))
        for node, child in zip(path, [*path[1:], ~label], strict=True):
            first = int(hierarchy.pointers[node])
            slot = int(np.flatnonzero(hierarchy.children[first : hierarchy.pointers[node + 1]] == child)[0])
            features, weights = tree.edge_weights(node, slot)
            margin = X[:, features] @ weights.astype(np.float64) + float(tree.intercepts[first + slot])
            total += log_probability(margin, logistic) * (1.0 if child < 0 else path_weight)
        logs[:, label] = total
    return logs


def check_topk(found, full, k):
    """The result is the k best of `full` without scores of 0, ties to the lowest label."""
    labels, scores = found
    for row, given_labels, given_scores in zip(full, labels, scores, strict=True):
        order = [label for label in np.lexsort((np.arange(len(row)), -row)) if row[label] > 0][:k]
        assert given_labels.tolist() == order + [-1] * (k - len(order))
        np.testing.assert_allclose(given_scores[: len(order)], row[order], rtol=1e-5)
        assert (given_scores[len(order) :] == -np.inf).all()


def test_sure_classifiers_are_told_apart_and_scores_never_rise_above_one():
    margins = np.linspace(-30, 30, 601)
    for logistic in (False, True):
        logs = log_probability(margins, logistic)
        assert (np.diff(logs) > 0).all()
        assert (logs < 0).all()


@losses
@pytest.mark.parametrize("beam", [1, 2, WIDE])
def test_the_nodes_above_a_label_can_weigh_less(kernels, logistic, beam, rng):
    tree = random_tree(rng, RAGGED)
    rows = random_rows(rng, 20)
    search, twin = (searcher(form, [tree], logistic, 0.25) for form in (kernels, native.twins))
    if beam == WIDE:
        check_topk(topk(search, rows, 4), np.exp(brute_force(tree, rows, logistic, 0.25)), 4)
    for found, expected in zip(topk(search, rows, 4, beam), topk(twin, rows, 4, beam), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4)


@losses
@precisions
def test_a_wide_beam_finds_what_brute_force_finds(kernels, logistic, precision, rng):
    tree = random_tree(rng, RAGGED, precision=precision)
    rows = random_rows(rng, 20)
    logs = brute_force(tree, rows, logistic)
    expected = np.exp(logs)
    search = searcher(kernels, [tree], logistic)
    np.testing.assert_allclose(everything(search, rows, 11), expected, rtol=1e-4, atol=1e-37)
    labels, scores = topk(search, rows, 4)
    np.testing.assert_array_equal(labels, np.argsort(-logs, axis=1, kind="stable")[:, :4])
    np.testing.assert_allclose(scores, np.take_along_axis(expected, labels, axis=1), rtol=1e-4, atol=1e-37)


@pytest.mark.parametrize("n_children", [*range(1, 50), 71, 256, 257, 300])
@pytest.mark.parametrize("density", [0.05, 0.9])
def test_a_node_may_have_any_number_of_children(kernels, n_children, density, rng):
    tree = random_tree(rng, flat(n_children), density=density)
    rows = random_rows(rng, 3)
    k = min(10, n_children)
    labels, _ = topk(searcher(kernels, [tree]), rows, k)
    np.testing.assert_array_equal(labels, np.argsort(-brute_force(tree, rows, False), axis=1, kind="stable")[:, :k])


@given(hierarchies(), st.integers(1, 6), st.integers(1, 25), st.integers(1, 12), st.integers(0, 10**6), st.booleans())
def test_any_search_gives_what_its_twin_gives(hierarchy, beam, k, n_rows, seed, masked):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, hierarchy, 8, density=rng.choice([0.1, 0.4, 0.9]), grid=0.5)
    rows = random_rows(rng, n_rows, 8, density=rng.choice([0.0, 0.2, 0.8]), grid=1)
    allowed = rng.random(hierarchy.n_labels) < 0.4 if masked else None
    results = [topk(searcher(form, [tree]), rows, k, beam, allowed) for form in (native_only(), native.twins)]
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-5)


@settings(max_examples=25)
@given(hierarchies(max_labels=16), st.integers(1, 6), st.integers(1, 4), st.integers(0, 10**6), st.booleans())
def test_trees_are_averaged_as_the_twin_does(hierarchy, beam, n_trees, seed, logistic):
    rng = np.random.default_rng(seed)
    trees = [random_tree(rng, hierarchy, 8) for _ in range(n_trees)]
    rows = random_rows(rng, 6, 8)
    factors = rng.uniform(0.1, 1, size=hierarchy.n_labels).astype(np.float32)
    one, other = (searcher(form, trees, logistic) for form in (native_only(), native.twins))
    full = everything(other, rows, hierarchy.n_labels, beam, factors)
    np.testing.assert_allclose(everything(one, rows, hierarchy.n_labels, beam, factors), full, rtol=1e-4, atol=1e-36)
    labels, scores = topk(one, rows, 5, beam, factors=factors)
    np.testing.assert_allclose(scores, topk(other, rows, 5, beam, factors=factors)[1], rtol=1e-4, atol=1e-36)
    there = labels >= 0
    rows_there, _ = np.nonzero(there)
    np.testing.assert_allclose(full[rows_there, labels[there]], scores[there], rtol=1e-4, atol=1e-36)


def forest(rng, n_labels, n_trees, n_leaves=8):
    """Trees with two levels over different random groups of the labels."""
    pointers = np.concatenate([[0, n_leaves], n_leaves + np.arange(1, n_leaves + 1) * n_labels // n_leaves])
    groups = (np.concatenate([np.arange(1, n_leaves + 1), ~rng.permutation(n_labels)]) for _ in range(n_trees))
    return [random_tree(rng, LabelHierarchy(pointers, children, n_labels)) for children in groups]


def calibrate(search, method, n_trees):
    nothing, knots = np.zeros(0, np.float32), np.linspace(-20, 0, 30, dtype=np.float32)
    for tree in range(n_trees):
        if method == "platt":
            search.calibrate(tree, 0.5 + tree, -0.3, nothing, nothing)
        elif method == "isotonic":
            search.calibrate(tree, 1.0, 0.0, knots, np.exp(knots / (2 + tree)))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("method", [None, "platt", "isotonic"])
@pytest.mark.parametrize("k", [1, 5, 9])
def test_the_trees_of_a_large_forest_count_for_the_labels_that_the_twin_says(k, method, weighted, rng):
    trees, rows = forest(rng, 120, 3), random_rows(rng, 40)
    factors = rng.uniform(0.1, 1, size=120).astype(np.float32) if weighted else None
    searches = [searcher(form, trees, path_weight=0.25) for form in (native_only(), native.twins)]
    for search in searches:
        calibrate(search, method, len(trees))
    (labels, scores), (twin_labels, twin_scores) = (topk(search, rows, k, 5, factors=factors) for search in searches)
    np.testing.assert_array_equal(labels, twin_labels)
    np.testing.assert_allclose(scores, twin_scores, rtol=1e-4)


@pytest.mark.parametrize("n_trees", [2, 3, 5])
def test_what_a_forest_leaves_out_is_small_beside_the_scores_it_gives(kernels, n_trees, rng):
    trees, rows, k = forest(rng, 120, n_trees), random_rows(rng, 20), 5
    search = searcher(kernels, trees)
    labels, scores = topk(search, rows, k)
    full = everything(search, rows, 120)
    means = np.take_along_axis(full, labels, axis=1)
    assert (scores <= means * (1 + 1e-5)).all()
    # All trees but one can leave out a label. Its score in them is below 30 % of the first tree's k-th best score,
    # or below the score in the last of 16 places of the first tree or of their own.
    best = [np.sort(everything(searcher(kernels, [tree]), rows, 120), axis=1)[:, ::-1] for tree in trees]
    last = np.max([each[:, [15]] for each in best], axis=0)
    most = (n_trees - 1) / n_trees * np.maximum(0.3 * best[0][:, [k - 1]], last)
    assert (means - scores <= most + 1e-6).all()
    assert (scores < means * (1 - 1e-3)).any()


def test_a_forest_with_a_place_for_every_label_leaves_out_none(kernels, rng):
    trees, rows = forest(rng, 120, 3), random_rows(rng, 10)
    search = searcher(kernels, trees)
    check_topk(topk(search, rows, 40), everything(search, rows, 120), 40)


@given(st.integers(1, 8), st.integers(1, 6), st.integers(1, 70), st.integers(0, 10**6))
@settings(max_examples=25)
def test_a_row_alone_gets_what_it_gets_among_others_in_a_forest(k, beam, n_rows, seed):
    rng = np.random.default_rng(seed)
    trees, rows = forest(rng, 90, 3), random_rows(rng, n_rows)
    search = searcher(native_only(), trees)
    labels, scores = topk(search, rows, k, beam)
    for row in rng.integers(0, n_rows, size=3):
        alone = topk(search, rows, k, beam, first=row, last=row + 1)
        np.testing.assert_array_equal(alone[0][0], labels[row])
        np.testing.assert_array_equal(alone[1][0], scores[row])


@given(hierarchies(max_nodes=20, max_labels=40), st.integers(1, 5), st.integers(1, 5), st.integers(0, 10**6))
def test_nodes_left_out_by_what_was_found_never_change_the_answer(hierarchy, beam, k, seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, hierarchy, 8, grid=0.5)
    rows = random_rows(rng, 8, 8, grid=1)
    factors = np.exp2(-rng.integers(0, 4, size=hierarchy.n_labels)).astype(np.float32) if seed % 2 else None
    search = searcher(native_only(), [tree])
    labels, scores = topk(search, rows, k, beam, factors=factors)
    # If all labels are requested, the search cannot skip any.
    all_labels, all_scores = topk(search, rows, max(k, hierarchy.n_labels), beam, factors=factors)
    np.testing.assert_array_equal(labels, all_labels[:, :k])
    np.testing.assert_array_equal(scores, all_scores[:, :k])
    if factors is None:
        np.testing.assert_array_equal(labels, topk(searcher(native.twins, [tree]), rows, k, beam)[0])


@given(hierarchies(), st.integers(1, 4), st.integers(1, 70), st.integers(0, 10**6), st.booleans())
def test_a_row_alone_gets_what_it_gets_among_others(hierarchy, beam, n_rows, seed, logistic):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, hierarchy, 20, density=rng.choice([0.1, 0.4, 0.9]), precision=int(rng.choice([16, 32])))
    rows = random_rows(rng, n_rows, 20)
    search = searcher(native_only(), [tree], logistic)
    labels, scores = topk(search, rows, 6, beam)
    for row in rng.integers(0, n_rows, size=3):
        alone = topk(search, rows, 6, beam, first=row, last=row + 1)
        np.testing.assert_array_equal(alone[0][0], labels[row])
        np.testing.assert_array_equal(alone[1][0], scores[row])


@precisions
@pytest.mark.parametrize("density", [0.003, 0.05, 0.6])
def test_features_of_large_directories_are_found_as_the_twin_finds_them(precision, density, rng):
    n_features = 20_000  # with few weights, a bit of a mask stands for several
    tree = random_tree(rng, RAGGED, n_features, density, precision, grid=0.25)
    rows = random_rows(rng, 40, n_features, density=0.01, grid=0.25)
    search = searcher(native_only(), [tree])
    found, expected = topk(search, rows, 3, beam=2), topk(searcher(native.twins, [tree]), rows, 3, beam=2)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-5)
    for row in range(3):
        alone = topk(search, rows, 3, beam=2, first=row, last=row + 1)
        np.testing.assert_array_equal(alone[0][0], found[0][row])
        np.testing.assert_array_equal(alone[1][0], found[1][row])


def test_large_directories_of_any_bytes_give_sound_scores_or_none(rng):
    tree, rows = random_tree(rng, RAGGED, 20_000, 0.01), random_rows(rng, 5, 20_000, density=0.05)
    for names in (LARGE_ARRAYS, *((name,) for name in LARGE_ARRAYS)):
        arrays = with_bytes(rng, tree, names)
        search = native_only().TreeSearch(20_000, 11, False, 1.0, [arrays])
        labels, scores = topk(search, rows, 3)
        assert ((labels >= -1) & (labels < 11)).all()
        assert (scores[labels >= 0] <= 1).all()


def test_rows_outside_the_range_are_not_written(kernels, rng):
    search = searcher(kernels, [random_tree(rng, RAGGED)])
    rows = random_rows(rng, 6)
    labels, scores = np.full((6, 3), -7), np.full((6, 3), 7, dtype=np.float32)
    search.topk(rows.indptr, rows.indices, rows.data, 2, 4, 5, None, None, labels, scores)
    assert (labels[[0, 1, 4, 5]] == -7).all()
    assert (scores[[0, 1, 4, 5]] == 7).all()
    assert (labels[2:4] >= 0).all()


@settings(max_examples=25)
@given(hierarchies(max_labels=15), st.integers(0, 10**6))
def test_a_beam_of_one_finds_the_only_label_that_is_allowed(hierarchy, seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, hierarchy, 8)
    rows = random_rows(rng, 3, 8)
    present = set(hierarchy.labels.tolist())
    for form, n_trees, some in ((native_only(), 1, 15), (native.kernels, 2, 15), (native.twins, 1, 2)):
        search = searcher(form, [tree] * n_trees)
        for label in range(min(some, hierarchy.n_labels)):
            labels, _ = topk(search, rows, 2, beam=1, allowed=np.arange(hierarchy.n_labels) == label)
            assert labels.tolist() == [[label if label in present else -1, -1]] * 3
        assert (topk(search, rows, 2, allowed=np.zeros(hierarchy.n_labels, dtype=bool))[0] == -1).all()


@settings(max_examples=25)
@given(hierarchies(), st.integers(1, 4), st.integers(0, 10**6))
def test_visits_are_those_of_the_twin_and_of_the_beam(hierarchy, beam, seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, hierarchy, 8, grid=0.5)
    rows = random_rows(rng, 9, 8, grid=1)
    arguments = (0, rows.indptr, rows.indices, rows.data, 2, 8, beam)
    visits = [searcher(form, [tree]).visited(*arguments) for form in (native_only(), native.twins)]
    for one, other in zip(*visits, strict=True):
        np.testing.assert_array_equal(one, other)
    parents = hierarchy.parents()[0]
    pairs = set(zip(visits[0][0].tolist(), visits[0][1].tolist(), strict=True))
    assert len(pairs) == len(visits[0][0])
    assert all(2 <= row < 8 and (parents[node] == 0 or (row, parents[node]) in pairs) for row, node in pairs)
    for row in range(2, 8):
        for first, last in zip(hierarchy.levels[1:-1], hierarchy.levels[2:], strict=True):
            assert sum(1 for r, node in pairs if r == row and first <= node < last) <= beam


def test_more_labels_than_the_beam_reaches_leave_minus_one(kernels, rng):
    rows = random_rows(rng, 5)
    labels, scores = topk(searcher(kernels, [random_tree(rng, RAGGED)]), rows, 40)
    assert (np.sort(labels[:, :9], axis=1) == RAGGED.labels).all()
    assert (labels[:, 9:] == -1).all()
    assert (scores[:, 9:] == -np.inf).all()


def test_a_tree_without_labels_gives_none(kernels, rng):
    tree = random_tree(rng, LabelHierarchy([0], [], n_labels=3))
    rows = random_rows(rng, 4)
    assert (topk(searcher(kernels, [tree]), rows, 2)[0] == -1).all()
    assert (topk(searcher(kernels, [tree]), rows, 2, allowed=np.ones(3, dtype=bool))[0] == -1).all()
    assert not everything(searcher(kernels, [tree]), rows, 3).any()
    assert [len(part) for part in searcher(kernels, [tree]).visited(0, *rows[:3], 0, 4, 2)] == [0, 0]


def test_a_beam_wider_than_memory_is_as_wide_as_the_tree(kernels, rng):
    search = searcher(kernels, [random_tree(rng, RAGGED)])
    rows = random_rows(rng, 5)
    np.testing.assert_array_equal(topk(search, rows, 3, beam=2**60)[0], topk(search, rows, 3, beam=6)[0])


@pytest.mark.parametrize("n_trees", [1, 3, 7, 10, 41])
def test_no_score_is_above_one_or_zero(kernels, n_trees):
    sure = packed(flat(2), np.zeros((2, 2)), np.array([50.0, -50.0]))
    rows = random_rows(np.random.default_rng(0), 1, 2)
    search = searcher(kernels, [sure] * n_trees)
    labels, scores = topk(search, rows, 2)
    assert labels.tolist() == [[0, 1]]
    for found in (scores[0], everything(search, rows, 2)[0]):
        assert 1 - 1e-5 < found[0] <= 1
        assert 0 < found[1] < 1e-30


def check_sound(search, rows, n_labels, allowed=None):
    labels, scores = topk(search, rows, 5, beam=3, allowed=allowed)
    given = labels >= 0
    assert ((labels >= -1) & (labels < n_labels)).all()
    assert ((scores[given] > 0) & (scores[given] <= 1)).all()
    assert (scores[~given] == -np.inf).all()
    assert (np.diff(scores, axis=1)[given[:, 1:]] <= 0).all()
    full = everything(search, rows, n_labels)
    assert ((full >= 0) & (full <= 1)).all()
    nodes = search.visited(0, rows.indptr, rows.indices, rows.data, 0, len(labels), 3)[1]
    assert ((nodes > 0) & (nodes < 7)).all()


@losses
@precisions
@pytest.mark.parametrize("names", [*((name,) for name in LARGE_ARRAYS), LARGE_ARRAYS], ids="-".join)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_arrays_of_any_bytes_give_sound_scores_or_none(kernels, names, precision, logistic):
    for seed in range(4 if kernels is not native.twins else 1):
        rng = np.random.default_rng(seed)
        tree = random_tree(rng, RAGGED, density=rng.choice([0.1, 0.9]), precision=precision)
        arrays = [with_bytes(rng, tree, names), tree.for_search(), with_bytes(rng, tree, names)]
        for n_trees in (1, 3):
            search = kernels.TreeSearch(30, 11, logistic, 1.0, arrays[:n_trees])
            for n_rows in (1, 40):
                check_sound(search, random_rows(rng, n_rows), 11)
        check_sound(search, random_rows(rng, 5), 11, allowed=rng.random(11) < 0.5)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38, -3e38])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_weight_that_is_no_number_spoils_its_own_label_only(kernels, value):
    tree = packed(flat(3), np.array([[1.0, value, 0.5]]), np.zeros(3))
    rows = random_rows(np.random.default_rng(0), 1, 1, density=1.0, grid=1)
    labels, scores = topk(searcher(kernels, [tree]), rows, 3)
    assert {0, 2} <= set(labels[0].tolist())
    spoiled = scores[0][labels[0] == 1]
    assert len(spoiled) == (value > 0)
    assert (spoiled == 1).all()
