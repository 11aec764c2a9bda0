"""Group-robust label vectors: what the paper says of them, on anything."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from longtail.aggregated import GroupRobustLabelVectors, aggregate_labels, vectors
from longtail.errors import InvalidInput, LongtailError
from longtail.labels import label_vectors
from tests.aggregated.examples import grouped_problem, overlapping_groups, planted_problem, unit_rows

SEEDS = st.integers(0, 2**32 - 1)


def fit(X, groups, group_labels, **params):
    return GroupRobustLabelVectors(**params).fit(X, groups, group_labels)


@given(seed=SEEDS, n_iter=st.integers(0, 30), step=st.floats(0, 10))
def test_groups_of_one_row_give_the_label_vectors_of_rows(seed, n_iter, step):
    X, Y, groups, labels = grouped_problem(np.random.default_rng(seed), size=1)
    found = fit(X, groups, labels, n_iter=n_iter, step=step).label_vectors_
    np.testing.assert_allclose(found.toarray(), label_vectors(X, Y).toarray(), atol=1e-6)


@given(seed=SEEDS, step=st.floats(0, 5))
def test_the_objective_never_falls(seed, step):
    rng = np.random.default_rng(seed)
    X = unit_rows(rng, 40, 15)
    groups = overlapping_groups(rng, 40, 10)
    labels = rng.random((10, 6)) < 0.5
    path = [fit(X, groups, labels, n_iter=n, step=step).objective_ for n in range(8)]
    assert all((later >= earlier - 1e-6).all() for earlier, later in itertools.pairwise(path))


@given(seed=SEEDS)
def test_the_objective_is_at_most_the_number_of_groups(seed):
    X, _, groups, labels = grouped_problem(np.random.default_rng(seed))
    assert (fit(X, groups, labels).objective_ <= (labels.toarray() > 0).sum(axis=0) + 1e-6).all()


@pytest.mark.parametrize("size", [1e-24, 1e-35, 1e-12, 1e12])
def test_rows_of_any_length_have_the_same_vectors(rng, size):
    X, _, groups, labels = grouped_problem(rng)
    usual, scaled = fit(X, groups, labels), fit(X * np.float32(size), groups, labels)
    np.testing.assert_allclose(scaled.label_vectors_.toarray(), usual.label_vectors_.toarray(), atol=1e-4)
    np.testing.assert_allclose(scaled.objective_ / size, usual.objective_, rtol=1e-4)


def test_rows_at_the_end_of_floats_count_as_empty(rng):
    X, _, groups, labels = grouped_problem(rng)
    model = fit(X * np.float32(1e-40), groups, labels)
    assert model.label_vectors_.nnz == 0
    assert (model.objective_ == 0).all()


def test_short_rows_that_cancel_out_have_a_vector_of_length_1():
    X = np.float32(1e-24) * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]], dtype=np.float32)
    model = fit(X, [[1, 0], [1, 0], [0, 1], [0, 1]], [[1, 1], [1, 1]])
    assert np.linalg.norm(model.label_vectors_.toarray(), axis=1) == pytest.approx([1, 1])


def test_the_objective_is_what_the_vectors_reach(rng):
    X, _, groups, labels = grouped_problem(rng)
    model = fit(X, groups, labels)
    products = X.toarray() @ model.label_vectors_.toarray().T
    for label in range(labels.shape[1]):
        best = [products[groups.toarray()[:, j] > 0, label].max() for j in np.flatnonzero(labels.toarray()[:, label])]
        assert model.objective_[label] == pytest.approx(sum(best), abs=1e-5)


@given(seed=SEEDS)
def test_renaming_rows_groups_and_labels_renames_the_result(seed):
    rng = np.random.default_rng(seed)
    X, _, groups, labels = grouped_problem(rng, n_rows=30)
    rows, columns, names = (rng.permutation(n) for n in (30, groups.shape[1], labels.shape[1]))
    one = fit(X, groups, labels, n_iter=5).objective_
    other = fit(X[rows], groups[rows][:, columns], labels[columns][:, names], n_iter=5).objective_
    np.testing.assert_allclose(other, one[names], atol=1e-5)


def test_a_planted_answer_is_found(rng):
    X, _, groups, labels = planted_problem(rng)
    found = fit(X, groups, labels, n_iter=200).label_vectors_.toarray()
    np.testing.assert_allclose(found, np.eye(6), atol=1e-3)


def test_a_planted_answer_is_kept_once_it_is_there(rng):
    # Each label in groups of its own rows only, and one group in which it could be taken for another.
    X = np.eye(3, dtype=np.float32)[[0, 0, 0, 1, 1, 1, 0, 1]]
    groups = np.kron(np.eye(4), np.ones((2, 1)))
    labels = np.array([[1, 0], [1, 1], [0, 1], [0, 0]])
    for n_iter in (1, 50):
        vectors = fit(X, groups, labels, n_iter=n_iter, step=1e6).label_vectors_.toarray()
        np.testing.assert_allclose(vectors, np.eye(3)[:2], atol=1e-5)


def test_a_full_step_ends_where_the_vector_equals_its_direction(rng):
    X, _, groups, labels = grouped_problem(rng, n_rows=40)
    model = fit(X, groups, labels, n_iter=300, step=1e6)
    vectors, members = model.label_vectors_.toarray(), groups.toarray() > 0
    for label, row in enumerate(vectors):
        picks = []
        for group in np.flatnonzero(labels.toarray()[:, label]):
            rows = np.flatnonzero(members[:, group])
            picks.append(rows[np.argmax(X[rows] @ row)])
        direction = np.asarray(X[picks].sum(axis=0)).ravel()
        np.testing.assert_allclose(row, direction / np.linalg.norm(direction), atol=1e-4)


def opposite_rows(n_groups=4):
    """Groups of x and -x, both labels in each: the sum of all members is nothing."""
    x = np.array([0.6, 0.8, 0.0], dtype=np.float32)
    X = np.tile(np.stack([x, -x]), (n_groups, 1))
    groups = np.kron(np.eye(n_groups), np.ones((2, 1)))
    return X, groups, np.ones((n_groups, 2)), x


def test_members_that_cancel_out_start_from_one_of_them_and_labels_from_different_ones():
    X, groups, labels, x = opposite_rows()
    assert label_vectors(X, groups @ labels).nnz == 0  # what is lost if groups are ignored
    model = fit(X, groups, labels)
    np.testing.assert_allclose(model.objective_, 4, atol=1e-6)
    np.testing.assert_allclose(model.label_vectors_.toarray(), [x, -x], atol=1e-6)


def test_rows_of_zeros_groups_without_members_and_labels_without_groups_are_defined():
    X = sparse.csr_array(np.array([[0, 0], [0, 0], [1, 0]], dtype=np.float32))
    groups = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0]])
    model = fit(X, groups, np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]))
    np.testing.assert_array_equal(model.label_vectors_.toarray(), [[0, 0], [1, 0], [0, 0], [0, 0]])
    np.testing.assert_array_equal(model.objective_, [0, 1, 0, 0])


def test_threads_do_not_change_a_bit(rng):
    X, _, groups, labels = grouped_problem(rng, n_rows=300, n_labels=40)
    one, many = (fit(X, groups, labels, n_jobs=jobs) for jobs in (1, 3))
    np.testing.assert_array_equal(one.label_vectors_.data, many.label_vectors_.data)
    np.testing.assert_array_equal(one.objective_, many.objective_)


def test_repeated_membership_counts_once():
    X = np.eye(2, dtype=np.float32)
    twice = sparse.coo_array(([1, 1, 1], ([0, 0, 1], [0, 0, 0])), shape=(2, 1))
    np.testing.assert_allclose(fit(X, twice, [[1]], n_iter=0).label_vectors_.toarray(), [[0.5**0.5] * 2], atol=1e-6)


@pytest.mark.parametrize(
    ("groups", "labels", "words"),
    [
        (np.ones((3, 2)), np.ones((3, 1)), "group 2 has labels but no members"),
        (np.ones((3, 2)), np.ones((1, 1)), "group 1 has no row of labels"),
        (np.ones((4, 2)), np.ones((2, 1)), "groups has 4 rows, but X has 3"),
        (np.ones((3, 2)), -np.ones((2, 1)), "row 0 holds -1"),
        (np.ones((3, 2)), np.array([[1], [0.5]]), "row 1 holds 0.5"),
        (np.ones((3, 2)), np.array([[1], [np.nan]]), "row 1 holds nan"),
        (np.ones((3, 2)), np.array([[1], [1e19]]), "row 1 holds 1e"),
        (np.full((3, 2), 0.5), np.ones((2, 1)), "groups must hold whole numbers"),
    ],
)
def test_contradictions_name_the_group(groups, labels, words):
    with pytest.raises(InvalidInput, match=words):
        fit(np.eye(3, dtype=np.float32), groups, labels)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_rows_are_counted_in_64_bits_where_32_are_too_few(rng, monkeypatch, index):
    X = unit_rows(rng, 6, 10)
    X.indptr, X.indices = X.indptr.astype(index), X.indices.astype(index)
    seen = []
    plain = sparse.csr_array.__getitem__
    monkeypatch.setattr(sparse.csr_array, "__getitem__", lambda X, rows: seen.append(X.indptr.dtype) or plain(X, rows))
    rows = np.repeat(np.arange(6), 4)
    for limit, wide in ((4 * X.nnz, index), (4 * X.nnz - 1, np.int64)):
        monkeypatch.setattr(vectors, "LARGEST_INDEX", limit)
        found = vectors.take_rows(X, rows)
        assert seen.pop() == wide
        np.testing.assert_array_equal(found.toarray(), np.repeat(X.toarray(), 4, axis=0))
    assert X.indices.dtype == index


def test_rows_too_long_to_add_up_are_refused():
    with pytest.raises(InvalidInput, match="scale the rows"):
        fit(np.full((2, 1), 1e20, dtype=np.float32), np.ones((2, 1)), [[1]])


def test_every_bad_parameter_is_refused_by_name(rng):
    X, _, groups, labels = grouped_problem(rng)
    for name, constraint in GroupRobustLabelVectors._parameters.items():
        for bad in constraint.bad_values():
            with pytest.raises(LongtailError, match=name):
                fit(X, groups, labels, **{name: bad})


def test_set_and_list_merge_give_the_same_vectors(rng):
    X, Y, groups, labels = grouped_problem(rng)
    once = aggregate_labels(Y, groups, "set")
    assert (labels.toarray() > 1).any()
    np.testing.assert_array_equal(
        fit(X, groups, labels).label_vectors_.toarray(), fit(X, groups, once).label_vectors_.toarray()
    )
