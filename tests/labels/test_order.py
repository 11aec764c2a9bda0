"""Orders of labels: each place once, and where each kind says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from longtail.data.formats.repository import read_repository
from longtail.errors import InvalidInput
from longtail.labels import label_order, label_vectors

KINDS = ["given", "random", "frequency", "clustered"]


def rows_of_topics(seed, n_topics=8, labels_per_topic=8, rows_per_label=3, words=12):
    """Rows with one label each; labels are shuffled, and a row has words of the topic of its label only."""
    rng = np.random.default_rng(seed)
    n_labels = n_topics * labels_per_topic
    topic_of = rng.permutation(np.repeat(np.arange(n_topics), labels_per_topic))
    labels = np.repeat(np.arange(n_labels), rows_per_label)
    X = np.zeros((len(labels), n_topics * words), dtype=np.float32)
    for row, label in enumerate(labels):
        X[row, topic_of[label] * words + np.arange(words)] = rng.random(words) + 0.1
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    Y = sparse.csr_array((np.ones(len(labels)), (np.arange(len(labels)), labels)), shape=(len(labels), n_labels))
    return sparse.csr_array(X), Y, topic_of


@pytest.mark.parametrize("kind", KINDS)
def test_every_place_is_taken_once(kind, seed):
    X, Y, _ = rows_of_topics(seed)
    position = label_order(kind, Y.shape[1], X, Y, random_state=seed)
    assert position.dtype == np.int64
    assert sorted(position.tolist()) == list(range(Y.shape[1]))


@given(st.integers(1, 200), st.integers(0, 5))
def test_given_changes_nothing_and_random_follows_its_seed(n_labels, seed):
    assert label_order("given", n_labels).tolist() == list(range(n_labels))
    one, same = (label_order("random", n_labels, random_state=seed) for _ in range(2))
    assert one.tolist() == same.tolist()
    assert sorted(one.tolist()) == list(range(n_labels))


def test_random_orders_of_other_seeds_differ():
    orders = {tuple(label_order("random", 50, random_state=seed)) for seed in (0, 1, None)}
    assert len(orders) == 3


@given(st.integers(1, 30), st.integers(0, 20), st.integers(0, 5))
def test_frequent_labels_come_first_and_ties_go_to_the_lowest_label(n_labels, n_rows, seed):
    Y = np.random.default_rng(seed).random((n_rows, n_labels)) < 0.3
    position = label_order("frequency", n_labels, Y=Y)
    counts = Y.sum(axis=0)
    assert np.argsort(position).tolist() == sorted(range(n_labels), key=lambda label: (-counts[label], label))


def test_labels_of_a_topic_are_neighbours_in_the_clustered_order(seed):
    X, Y, topic_of = rows_of_topics(seed)
    position = label_order("clustered", Y.shape[1], X, Y, random_state=seed)
    by_chance = label_order("random", Y.shape[1], random_state=99)
    found, chance = (topic_of[np.argsort(places)] for places in (position, by_chance))
    assert np.mean(found[1:] == found[:-1]) > 3 * np.mean(chance[1:] == chance[:-1])


def test_the_clustered_order_follows_its_seed():
    X, Y, _ = rows_of_topics(0)
    one, same, other = (label_order("clustered", Y.shape[1], X, Y, random_state=state).tolist() for state in (3, 3, 4))
    assert one == same != other


def test_labels_without_rows_come_last_in_the_clustered_order():
    X, Y, _ = rows_of_topics(0)
    wide = sparse.hstack([sparse.csr_array((Y.shape[0], 3)), Y, sparse.csr_array((Y.shape[0], 2))]).tocsr()
    position = label_order("clustered", wide.shape[1], X, wide)
    n_seen = Y.shape[1]
    assert position[:3].tolist() == [n_seen, n_seen + 1, n_seen + 2]
    assert position[-2:].tolist() == [n_seen + 3, n_seen + 4]
    assert position[3:-2].tolist() == label_order("clustered", n_seen, X, Y).tolist()


def test_labels_of_which_nothing_is_known_stay_in_order():
    nothing = sparse.csr_array((4, 3))
    assert label_order("clustered", 3, sparse.csr_array((4, 9)), nothing).tolist() == [0, 1, 2]
    assert label_order("frequency", 3, Y=nothing).tolist() == [0, 1, 2]


def test_neighbours_are_more_similar_on_real_data_when_clustered(benchmark_data):
    corpus = read_repository(benchmark_data("bibtex") / "train.txt.gz")
    X, Y = corpus.features, corpus.labels
    vectors = label_vectors(X, Y)

    def distance_of_neighbours(kind):
        ordered = vectors[np.argsort(label_order(kind, Y.shape[1], X, Y))]
        return 1 - ordered[1:].multiply(ordered[:-1]).sum(axis=1).mean()

    nearest = distance_of_neighbours("clustered")
    assert all(nearest < 0.8 * distance_of_neighbours(kind) for kind in ("given", "random", "frequency"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("alphabetical", 3), "kind is 'alphabetical'; expected one of 'given', 'random'"),
        (("given", 0), "n_labels is 0"),
        (("random", 3, None, None, -1), "random_state is -1"),
        (("frequency", 3), "the order 'frequency' needs Y"),
        (("clustered", 3, None, np.eye(3)), "the order 'clustered' needs X"),
        (("clustered", 3, np.eye(3)), "the order 'clustered' needs Y"),
        (("frequency", 4, None, np.eye(3)), "Y has 3 labels, but n_labels is 4"),
    ],
)
def test_orders_that_cannot_be_made_are_refused(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        label_order(*arguments)
