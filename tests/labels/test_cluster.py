"""Learned label trees: balanced, complete, the same for the same seed, and better than chance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from longtail.data.formats.repository import read_repository
from longtail.errors import InvalidInput
from longtail.labels import LabelHierarchy, bisection, cluster_labels, from_parents, label_vectors, split_wide


def topics(rng, n_topics=12, per_topic=20, words=30):
    """Labels of planted topics, each with words of its own; topic after topic."""
    vectors = np.zeros((n_topics * per_topic, n_topics * words), dtype=np.float32)
    for topic in range(n_topics):
        rows, columns = slice(topic * per_topic, (topic + 1) * per_topic), slice(topic * words, (topic + 1) * words)
        vectors[rows, columns] = rng.random((per_topic, words))
    return sparse.csr_array(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def random_vectors(seed, n, d=25):
    rng = np.random.default_rng(seed)
    vectors = rng.random((n, d)).astype(np.float32) * (rng.random((n, d)) < 0.3)
    vectors[:, 0] += 0.1
    return sparse.csr_array(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def sizes_below(tree):
    bounds = tree.label_order()[1]
    return bounds[:, 1] - bounds[:, 0]


@given(st.integers(1, 90), st.integers(1, 20), st.integers(2, 9), st.integers(0, 5))
def test_every_label_is_there_once_and_parts_of_a_node_differ_by_at_most_one(n, leaf_size, branching, seed):
    tree = cluster_labels(random_vectors(seed, n), leaf_size, branching, random_state=seed, n_jobs=1)
    assert tree.labels.tolist() == list(range(n))
    sizes = sizes_below(tree)
    for node in range(tree.n_nodes):
        children = tree.children[tree.pointers[node] : tree.pointers[node + 1]]
        if (children < 0).all():
            assert len(children) <= leaf_size
            assert (np.diff(~children) > 0).all()
        else:
            assert (children >= 0).all()
            assert 2 <= len(children) <= branching
            assert np.ptp(sizes[children]) <= 1
    fewest = 0
    while branching**fewest * leaf_size < n:
        fewest += 1
    assert tree.depth == fewest + 1


def test_branching_is_even_over_the_levels_and_leaves_are_few():
    tree = cluster_labels(random_vectors(0, 3993), n_jobs=1)
    assert np.diff(tree.levels).tolist() == [1, 7, 42]


@pytest.mark.parametrize("large", [0, 2**23])
def test_the_same_seed_gives_the_same_tree_whatever_the_threads(rng, large, monkeypatch):
    monkeypatch.setattr(bisection, "_LARGE", large)
    vectors = topics(rng)
    one, two, other = (
        cluster_labels(vectors, 5, 4, random_state=seed, n_jobs=jobs) for seed, jobs in ((3, 1), (3, 2), (4, 2))
    )
    assert one == two
    assert one != other


def test_none_as_seed_gives_other_trees(rng):
    vectors = topics(rng)
    assert cluster_labels(vectors, 5, random_state=None) != cluster_labels(vectors, 5, random_state=None)


def test_large_nodes_are_divided_like_small_ones(rng, monkeypatch):
    vectors = topics(rng)
    small = cluster_labels(vectors, 10, 4)
    monkeypatch.setattr(bisection, "_LARGE", 0)
    assert cluster_labels(vectors, 10, 4) == small


def test_labels_of_one_topic_stay_together(rng):
    tree = cluster_labels(topics(rng, n_topics=2, per_topic=20), leaf_size=20)
    leaves = [~tree.children[tree.pointers[node] : tree.pointers[node + 1]] for node in (1, 2)]
    assert sorted(leaf.tolist() for leaf in leaves) == [list(range(20)), list(range(20, 40))]


def test_labels_with_an_empty_vector_are_left_out(rng):
    vectors = sparse.csr_array(topics(rng, n_topics=3, per_topic=4)).toarray()
    vectors[[0, 7]] = 0
    explicit_zero = sparse.csr_array(vectors)
    explicit_zero.data[explicit_zero.indptr[3] : explicit_zero.indptr[4]] = 0
    tree = cluster_labels(explicit_zero, leaf_size=3)
    assert tree.labels.tolist() == [1, 2, 4, 5, 6, 8, 9, 10, 11]
    assert tree.n_labels == 12


def test_without_any_label_there_are_no_nodes():
    for shape in ((0, 0), (5, 3), (0, 3)):
        tree = cluster_labels(sparse.csr_array(shape))
        assert (tree.n_nodes, tree.depth, tree.n_leaves, tree.n_labels) == (0, 0, 0, shape[0])


@pytest.mark.parametrize("n", [1, 7])
def test_few_labels_need_the_root_only(n):
    tree = cluster_labels(random_vectors(0, n), leaf_size=7)
    assert tree.n_nodes == tree.n_leaves == tree.depth == 1
    assert tree.labels.tolist() == list(range(n))


@pytest.mark.parametrize("distinct", [1, 2, 3])
def test_vectors_that_repeat_are_divided_all_the_same(distinct):
    vectors = np.eye(3, dtype=np.float32)[np.arange(50) % distinct]
    tree = cluster_labels(vectors, leaf_size=4, branching=16)
    assert tree.labels.tolist() == list(range(50))
    assert np.ptp(sizes_below(tree)[tree.levels[1] : tree.levels[2]]) <= 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"leaf_size": 0}, "leaf_size is 0; expected a whole number of at least 1"),
        ({"leaf_size": 2.5}, "leaf_size is 2.5"),
        ({"branching": 1}, "branching is 1; expected a whole number of at least 2"),
        ({"branching": True}, "branching is True"),
        ({"random_state": -1}, "random_state is -1"),
        ({"random_state": "x"}, "random_state is 'x'"),
        ({"n_jobs": 0}, "n_jobs is 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options, message):
    with pytest.raises(InvalidInput, match=message):
        cluster_labels(random_vectors(0, 10), **options)


def test_vectors_not_of_length_1_are_refused():
    with pytest.raises(InvalidInput, match="an entry of 7; expected vectors of norm 1"):
        cluster_labels(np.array([[7.0, 1.0]]))


def test_a_wide_class_is_divided_and_the_rest_stays(rng):
    vectors = topics(rng, n_topics=6, per_topic=10)
    names = [f"label {i}" for i in range(60)]
    parents = {name: "wide" if i < 50 else "narrow" for i, name in enumerate(names)}
    tree = from_parents({**parents, "narrow": "all", "wide": "all"}, 60, names)
    divided = split_wide(tree, vectors, leaf_size=10, branching=4)
    assert divided.labels.tolist() == list(range(60))
    assert np.diff(divided.pointers).max() <= 10
    assert {divided.node_names[node] for node in divided.path(55)} == {"all", "narrow"}
    ways = [[divided.node_names[node] for node in divided.path(label)] for label in range(50)]
    assert all(way[:2] == ["all", "wide"] and way[2].startswith("wide / ") for way in ways)
    assert len(set(divided.node_names)) == divided.n_nodes
    assert divided == split_wide(tree, vectors, leaf_size=10, branching=4, n_jobs=1)


def test_classes_below_a_wide_class_are_grouped_by_what_is_below_them(rng):
    vectors = topics(rng, n_topics=2, per_topic=40)
    # Twenty classes of four labels, the first ten of one topic, and two labels of their own at the root.
    parents = np.concatenate([80 + np.arange(80) // 4, np.full(20, 100), [-1]])
    parents[[0, 79]] = 100
    tree = split_wide(from_parents(parents, 80), vectors, leaf_size=11, branching=2)
    tops = tree.children[: tree.pointers[1]]
    order, bounds = tree.label_order()
    below = [set(order[slice(*bounds[top])].tolist()) for top in tops]
    assert sorted(map(min, below)) == [0, 40]
    assert sorted(map(len, below)) == [40, 40]


def test_a_narrow_hierarchy_comes_back_as_it_was(rng):
    tree = cluster_labels(topics(rng), 10, 5)
    assert split_wide(tree, topics(rng), leaf_size=10) is tree


def test_labels_without_a_vector_survive_the_division_of_a_class():
    flat = LabelHierarchy([0, 30], ~np.arange(30), 30)
    tree = split_wide(flat, sparse.csr_array((30, 4)), leaf_size=10)
    assert tree.labels.tolist() == list(range(30))
    assert np.diff(tree.pointers).max() == 10


def test_as_many_vectors_as_labels_are_needed():
    with pytest.raises(InvalidInput, match="2 vectors, but the hierarchy has 3 labels"):
        split_wide(LabelHierarchy([0, 3], [~0, ~1, ~2], 3), np.eye(2))


def test_eurlex_is_clustered_far_better_than_chance(benchmark_data):
    corpus = read_repository(benchmark_data("eurlex-4k") / "train.txt.gz")
    vectors = label_vectors(corpus.features, corpus.labels)
    tree = cluster_labels(vectors)
    positives = np.flatnonzero(np.bincount(corpus.labels.indices, minlength=corpus.n_labels))
    np.testing.assert_array_equal(tree.labels, positives)
    shuffled = np.random.default_rng(0).permutation(tree.labels)
    learned, random = (
        mean_similarity(vectors, np.array_split(order, 42)) for order in (tree.label_order()[0], shuffled)
    )
    assert learned > random + 0.1


def mean_similarity(vectors, groups):
    return sum(np.linalg.norm(vectors[group].sum(axis=0)) for group in groups) / sum(map(len, groups))
