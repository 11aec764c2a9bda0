"""Votes of neighbours for labels: sums, order, ties, masks, the twins, and damaged label matrices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail import native

# Row 0 has the labels 0 and 2, row 1 the label 2, row 2 none, row 3 the labels 1, 2 and 3.
INDPTR = np.array([0, 2, 3, 3, 6])
INDICES = np.array([0, 2, 2, 1, 2, 3], dtype=np.int32)
N_LABELS = 5


def best(kernels, neighbours, weights, k, mask=None, labels=(INDPTR, INDICES, N_LABELS), first=0, last=None):
    out = np.full((len(neighbours), k), -7, dtype=np.int64), np.full((len(neighbours), k), 7, dtype=np.float32)
    last = len(neighbours) if last is None else last
    kernels.neighbour_votes(neighbours, weights, first, last, *labels, mask, *out)
    return out


def of_pairs(kernels, neighbours, weights, starts, pairs, labels=(INDPTR, INDICES, N_LABELS), first=0, last=None):
    out = np.full(len(pairs), 7, dtype=np.float32)
    last = len(neighbours) if last is None else last
    kernels.pair_votes(neighbours, weights, first, last, *labels, starts, pairs, out)
    return out


def native_only():
    if not native.is_native():
        pytest.skip("the native kernels are not built here")
    return native.kernels


def test_each_neighbour_gives_its_weight_to_its_labels(kernels):
    neighbours = np.array([[0, 3, -1], [2, -1, -1]])
    weights = np.array([[0.5, 0.25, -np.inf], [1, -np.inf, -np.inf]], dtype=np.float32)
    labels, votes = best(kernels, neighbours, weights, 4)
    assert labels.tolist() == [[2, 0, 1, 3], [-1, -1, -1, -1]]
    assert votes.tolist() == [[0.75, 0.5, 0.25, 0.25], [-np.inf] * 4]


def test_labels_outside_the_mask_do_not_compete(kernels):
    mask = np.array([True, True, False, True, True])
    labels, _ = best(kernels, np.array([[0, 3]]), np.array([[0.5, 0.25]], dtype=np.float32), 2, mask)
    assert labels.tolist() == [[0, 1]]


def test_labels_without_votes_above_zero_are_left_out(kernels):
    weights = np.array([[0, -1]], dtype=np.float32)
    assert best(kernels, np.array([[0, 3]]), weights, 3)[0].tolist() == [[-1, -1, -1]]


def test_given_labels_get_their_votes(kernels):
    neighbours, weights = np.array([[0, 3], [1, 1]]), np.array([[0.5, 0.25], [1, 2]], dtype=np.float32)
    pairs = np.array([4, 2, 1, 2, 0], dtype=np.int32)
    assert of_pairs(kernels, neighbours, weights, np.array([0, 3, 5]), pairs).tolist() == [0, 0.75, 0.25, 3, 0]


def test_rows_outside_the_range_are_not_written(kernels):
    neighbours, weights = np.zeros((3, 1), dtype=np.int64), np.ones((3, 1), dtype=np.float32)
    labels, votes = best(kernels, neighbours, weights, 2, first=1, last=2)
    assert labels.tolist() == [[-7, -7], [0, 2], [-7, -7]]
    assert votes.tolist() == [[7, 7], [1, 1], [7, 7]]
    pairs = np.array([0, 2, 0], dtype=np.int32)
    assert of_pairs(kernels, neighbours, weights, np.arange(4), pairs, first=1, last=2).tolist() == [7, 1, 7]


def random_case(rng, n_rows=6, n_neighbours=8, n_items=12, n_labels=9):
    counts = rng.integers(0, 4, size=n_items)
    labels = np.concatenate([np.sort(rng.permutation(n_labels)[:count]) for count in counts]).astype(np.int32)
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    neighbours = rng.integers(-1, n_items, size=(n_rows, n_neighbours))
    weights = rng.choice([0.1, 0.3, 0.7, 1e-8, -0.2, 0.0], size=neighbours.shape).astype(np.float32)
    pairs = rng.integers(0, 5, size=n_rows)
    starts = np.concatenate([[0], np.cumsum(pairs)]).astype(np.int64)
    items = rng.integers(0, n_labels, size=int(starts[-1])).astype(np.int32)
    return neighbours, weights, (indptr, labels, n_labels), starts, items


def check_twins_agree(neighbours, weights, labels, starts, pairs, k, mask):
    one, other = (best(form, neighbours, weights, k, mask, labels) for form in (native_only(), native.twins))
    np.testing.assert_array_equal(one[0], other[0])
    np.testing.assert_array_equal(one[1], other[1])
    assert ((one[0] >= -1) & (one[0] < labels[2])).all()
    one, other = (of_pairs(form, neighbours, weights, starts, pairs, labels) for form in (native.kernels, native.twins))
    np.testing.assert_array_equal(one, other)


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.booleans())
def test_twins_and_kernels_agree_in_every_bit(seed, k, masked):
    rng = np.random.default_rng(seed)
    mask = rng.random(9) < 0.6 if masked else None
    check_twins_agree(*random_case(rng), k, mask)


@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
def test_label_matrices_of_any_bytes_give_labels_that_exist(seed, damage_starts, damage_labels):
    rng = np.random.default_rng(seed)
    neighbours, weights, (indptr, labels, n_labels), starts, pairs = random_case(rng)
    neighbours[0, :2] = 2**62, -(2**62)
    if damage_starts:
        indptr = rng.choice([-(2**63), -1, 0, 3, 2**40, 2**63 - 1], size=len(indptr))
    if damage_labels:
        labels = rng.choice([-(2**31), -1, 0, 8, 9, 2**31 - 1], size=len(labels)).astype(np.int32)
    check_twins_agree(neighbours, weights, (indptr, labels, n_labels), starts, pairs, 4, None)


def test_the_matrix_of_no_labels_gives_none(kernels):
    labels = np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32), 0
    neighbours, weights = np.zeros((2, 1), dtype=np.int64), np.ones((2, 1), dtype=np.float32)
    assert (best(kernels, neighbours, weights, 2, labels=labels)[0] == -1).all()
    assert len(of_pairs(kernels, neighbours, weights, np.zeros(3, np.int64), labels[1], labels)) == 0
