"""From labels of groups to labels of rows."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from longtail.aggregated import GroupRobustLabelVectors, assign_labels, random_groups
from longtail.aggregated.aggregation import Aggregation
from longtail.errors import InvalidInput, NotEnoughMemory
from tests.aggregated.examples import grouped_problem, overlapping_groups, planted_problem, unit_rows

RULES = ("argmax", "count", "joint")
SEEDS = st.integers(0, 2**32 - 1)


def assigned(X, groups, labels, rule, **params):
    vectors = GroupRobustLabelVectors(**params).fit(X, groups, labels).label_vectors_
    return assign_labels(X, groups, labels, vectors, rule)


@pytest.mark.parametrize("rule", RULES)
def test_groups_of_one_row_get_their_own_labels_back(rng, rule):
    X, Y, groups, labels = grouped_problem(rng, size=1)
    found = assigned(X, groups, labels, rule)
    np.testing.assert_array_equal(found.row_labels.toarray(), Y.toarray())
    assert np.isinf(found.confidences).all()


@given(seed=SEEDS, rule=st.sampled_from(RULES))
def test_each_label_of_a_group_is_placed_as_often_as_the_rule_says_and_only_on_members(seed, rule):
    rng = np.random.default_rng(seed)
    X = unit_rows(rng, 30, 12)
    groups = overlapping_groups(rng, 30, 8)
    counts = rng.integers(0, 4, size=(8, 5))
    found = assigned(X, groups, counts, rule, n_iter=3)
    sizes = np.asarray(groups.sum(axis=0)).astype(int)
    expected = np.minimum(counts, sizes[:, None]) if rule != "argmax" else np.minimum(counts, sizes[:, None] > 0)
    placed = np.zeros_like(counts)
    np.add.at(placed, (found.groups, found.labels), 1)
    np.testing.assert_array_equal(placed, expected)
    cells = np.stack([found.groups, found.labels, found.rows])
    assert len(np.unique(cells, axis=1).T) == len(cells.T)
    assert groups.toarray()[found.rows, found.groups].all()
    union = np.minimum(1, groups.toarray() @ counts)
    assert (found.row_labels.toarray() <= union).all()
    np.testing.assert_array_equal(Aggregation.of(groups, counts).union().toarray(), union)


@given(seed=SEEDS)
def test_in_groups_that_do_not_overlap_argmax_places_each_label_of_a_group_once(seed):
    X, _, groups, labels = grouped_problem(np.random.default_rng(seed))
    assert assigned(X, groups, labels, "argmax").row_labels.nnz == labels.nnz
    assert assigned(X, groups, labels, "count").row_labels.nnz <= labels.sum()


@given(seed=SEEDS, rule=st.sampled_from(("argmax", "count")))
def test_the_best_members_get_the_label_and_confidence_is_the_lead_over_the_next(seed, rule):
    rng = np.random.default_rng(seed)
    X, _, groups, labels = grouped_problem(rng, n_rows=24)
    vectors = unit_rows(rng, labels.shape[1], X.shape[1])
    found = assign_labels(X, groups, labels, vectors, rule)
    similarity = X.toarray().astype(np.float64) @ vectors.toarray().T
    for group, label, row, similar, lead in zip(*found[1:], strict=True):
        members = np.flatnonzero(groups.toarray()[:, group])
        mine = found.rows[(found.groups == group) & (found.labels == label)]
        others = [similarity[i, label] for i in members if i not in mine]
        assert similar == pytest.approx(similarity[row, label], abs=1e-6)
        assert lead == pytest.approx(similar - max(others, default=-np.inf), abs=1e-5)
        assert lead >= 0


def test_ties_go_to_the_first_member():
    X = np.ones((3, 1), dtype=np.float32)
    for rule, count, expected in (("argmax", 2, [1, 0, 0]), ("count", 2, [1, 1, 0]), ("joint", 1, [1, 0, 0])):
        found = assign_labels(X, np.ones((3, 1)), [[count]], [[1.0]], rule)
        assert found.row_labels.toarray().ravel().tolist() == expected, rule


def test_labels_that_look_alike_share_a_group_only_under_the_joint_rule():
    X = np.array([[1, 0], [0.8, 0.6]], dtype=np.float32)
    vectors = [[1.0, 0.0], [0.9, 0.1]]
    separate = assign_labels(X, np.ones((2, 1)), [[1, 1]], vectors, "count").row_labels.toarray()
    together = assign_labels(X, np.ones((2, 1)), [[1, 1]], vectors, "joint").row_labels.toarray()
    np.testing.assert_array_equal(separate, [[1, 1], [0, 0]])
    np.testing.assert_array_equal(together, [[1, 0], [0, 1]])


@given(seed=SEEDS, merge=st.sampled_from(["set", "list"]))
def test_the_joint_rule_gives_no_row_more_than_its_share(seed, merge):
    X, _, groups, labels = grouped_problem(np.random.default_rng(seed), merge=merge, n_labels=15)
    found = assigned(X, groups, labels, "joint")
    share = -(-labels.sum(axis=1) // np.asarray(groups.sum(axis=0)).astype(int))
    rows = np.asarray(found.row_labels.sum(axis=1))
    assert (rows <= groups @ share).all()


def test_the_joint_rule_is_the_best_way_to_share_out(rng):
    from itertools import permutations

    X = unit_rows(rng, 4, 6, density=1)
    vectors = unit_rows(rng, 4, 6, density=1)
    found = assign_labels(X, np.ones((4, 1)), np.ones((1, 4)), vectors, "joint")
    similarity = X.toarray() @ vectors.toarray().T
    best = max(sum(similarity[row, label] for label, row in enumerate(order)) for order in permutations(range(4)))
    assert found.similarities.sum() == pytest.approx(best, abs=1e-5)


@pytest.mark.parametrize("rule", RULES)
def test_what_was_planted_is_recovered(rng, rule):
    X, Y, groups, labels = planted_problem(rng, noise=0.05)
    found = assigned(X, groups, labels, rule)
    np.testing.assert_array_equal(found.row_labels.toarray(), Y.toarray())


@given(seed=SEEDS, rule=st.sampled_from(RULES))
def test_the_order_of_groups_and_labels_does_not_matter(seed, rule):
    rng = np.random.default_rng(seed)
    X, _, groups, labels = grouped_problem(rng, n_rows=30)
    vectors = unit_rows(rng, labels.shape[1], X.shape[1], density=1)
    columns, names = rng.permutation(groups.shape[1]), rng.permutation(labels.shape[1])
    one = assign_labels(X, groups, labels, vectors, rule).row_labels.toarray()
    other = assign_labels(X, groups[:, columns], labels[columns][:, names], vectors[names], rule).row_labels.toarray()
    np.testing.assert_array_equal(other, one[:, names])


def test_nothing_to_place_places_nothing():
    found = assign_labels(np.eye(3, dtype=np.float32), np.zeros((3, 2)), np.ones((2, 2)), np.ones((2, 3)))
    assert found.row_labels.shape == (3, 2)
    assert found.row_labels.nnz == len(found.rows) == 0


def test_bad_input_is_refused_with_reasons():
    X, groups = np.eye(3, dtype=np.float32), np.ones((3, 1))
    with pytest.raises(InvalidInput, match="rule is 'best'"):
        assign_labels(X, groups, [[1]], [[1.0, 0, 0]], rule="best")
    with pytest.raises(InvalidInput, match="2 label vectors, but group_labels has 1 columns"):
        assign_labels(X, groups, [[1]], np.eye(3)[:2])
    with pytest.raises(InvalidInput, match="label_vectors has 2 features"):
        assign_labels(X, groups, [[1]], [[1.0, 0]])


def test_thousands_of_groups_and_labels_stay_sparse(rng):
    n_rows, n_labels, n_features = 20_000, 50_000, 4_000
    X = sparse.random_array((n_rows, n_features), density=1e-3, rng=rng, format="csr", dtype=np.float32)
    groups = random_groups(n_rows, 5)
    labels = sparse.random_array((groups.shape[1], n_labels), density=3e-4, rng=rng, format="csr")
    labels.data[:] = 1
    tracemalloc.start()
    try:
        found = assigned(X, groups, labels, "count", n_iter=2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.row_labels.nnz == labels.nnz
    # A byte for each cell of the smallest matrix that should not be dense: rows x features, groups x labels and labels
    # x features are larger.
    assert peak < n_rows * n_features
    union = Aggregation.of(groups, labels).union()
    assert union.nnz == 5 * labels.nnz


def test_memory_is_planned_before_it_is_taken(rng, monkeypatch):
    X, _, groups, labels = grouped_problem(rng)
    vectors = unit_rows(rng, labels.shape[1], X.shape[1])
    monkeypatch.setenv("LONGTAIL_MEMORY", "1K")
    with pytest.raises(NotEnoughMemory, match=r"assigning labels to rows needs .*\(members of groups "):
        assign_labels(X, groups, labels, vectors)
    with pytest.raises(NotEnoughMemory, match=r"every label of a group to every member needs .*such as 'eagle'"):
        Aggregation.of(groups, labels).union()
