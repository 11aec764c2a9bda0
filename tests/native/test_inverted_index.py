"""The inverted index: order, ties, masks, its twin, and damaged arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from longtail import native


def random_matrix(rng, n_rows, n_columns, density, grid=None):
    """Random values; on a `grid` sums are exact in any order, and ties are frequent."""
    dense = rng.normal(size=(n_rows, n_columns)) * (rng.random((n_rows, n_columns)) < density)
    return sparse.csr_array((dense if grid is None else np.rint(dense / grid) * grid).astype(np.float32))


def arrays_of(matrix):
    """The number of items, starts, items and values of an index of the rows of a matrix."""
    by_feature = matrix.tocsc()
    return (
        matrix.shape[0],
        by_feature.indptr.astype(np.int64),
        by_feature.indices.astype(np.int32),
        by_feature.data.astype(np.float32),
    )


def topk(kernels, arrays, queries, k, mask=None, first=0, last=None):
    items = np.full((queries.shape[0], k), -7, dtype=np.int64)
    scores = np.full((queries.shape[0], k), 7, dtype=np.float32)
    last = queries.shape[0] if last is None else last
    rows = queries.indptr.astype(np.int64), queries.indices.astype(np.int32), queries.data
    kernels.InvertedIndex(*arrays).topk(*rows, first, last, mask, items, scores)
    return items, scores


def one_row(*values):
    return sparse.csr_array(np.array([values], dtype=np.float32))


def native_only():
    if not native.is_native():
        pytest.skip("the native kernels are not built here")
    return native.kernels


def test_the_best_items_come_first_and_ties_go_to_the_lowest(kernels):
    arrays = arrays_of(sparse.csr_array(np.array([[1, 0], [1, 2], [0, 3], [3, 0], [0, 0]], dtype=np.float32)))
    items, scores = topk(kernels, arrays, one_row(1, 1), 3)
    assert items.tolist() == [[1, 2, 3]]
    assert scores.tolist() == [[3, 3, 3]]


def test_only_items_with_a_positive_product_are_found(kernels):
    arrays = arrays_of(sparse.csr_array(np.array([[1, 1], [1, -1], [1, -2], [0, 0]], dtype=np.float32)))
    items, scores = topk(kernels, arrays, one_row(1, 1), 6)
    assert items.tolist() == [[0, -1, -1, -1, -1, -1]]
    assert scores.tolist() == [[2] + [-np.inf] * 5]


@pytest.mark.parametrize("n_items", [40, 4000])
def test_items_outside_the_mask_do_not_compete(kernels, n_items):
    values = np.arange(1, 41, dtype=np.float32)
    arrays = (n_items, np.array([0, 40]), np.arange(40, dtype=np.int32), values)
    mask = np.zeros(n_items, dtype=bool)
    mask[[3, 20]] = True
    assert topk(kernels, arrays, one_row(1), 3, mask)[0].tolist() == [[20, 3, -1]]


def test_rows_outside_the_range_are_not_written(kernels, rng):
    arrays, queries = arrays_of(random_matrix(rng, 9, 4, 0.9)), random_matrix(rng, 6, 4, 0.9)
    items, scores = topk(kernels, arrays, queries, 3, first=2, last=4)
    assert (items[[0, 1, 4, 5]] == -7).all()
    assert (scores[[0, 1, 4, 5]] == 7).all()
    assert (items[2:4] >= -1).all()


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (5, 3)])
def test_an_empty_index_finds_nothing(kernels, shape):
    arrays = arrays_of(sparse.csr_array(shape, dtype=np.float32))
    queries = sparse.csr_array(np.ones((2, shape[1]), dtype=np.float32))
    assert (topk(kernels, arrays, queries, 2)[0] == -1).all()


def test_a_row_without_features_finds_nothing(kernels, rng):
    arrays = arrays_of(random_matrix(rng, 9, 4, 0.9))
    assert (topk(kernels, arrays, one_row(0, 0, 0, 0), 2)[0] == -1).all()


# Few entries in many items and many entries in few are searched in different ways.
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 12),
    st.sampled_from([5, 60, 400]),
    st.sampled_from([0.01, 0.1, 0.6]),
    st.sampled_from([None, 0.5]),
    st.booleans(),
)
def test_twin_and_kernel_agree_in_every_bit(seed, k, n_items, density, grid, masked):
    rng = np.random.default_rng(seed)
    arrays, queries = arrays_of(random_matrix(rng, n_items, 15, density, grid)), random_matrix(rng, 6, 15, 0.3, grid)
    mask = rng.random(n_items) < 0.5 if masked else None
    one = topk(native_only(), arrays, queries, k, mask)
    other = topk(native.twins, arrays, queries, k, mask)
    np.testing.assert_array_equal(one[0], other[0])
    np.testing.assert_array_equal(one[1], other[1])


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.02, 0.5]))
def test_a_row_alone_gets_what_it_gets_among_others(seed, density):
    rng = np.random.default_rng(seed)
    arrays, queries = arrays_of(random_matrix(rng, 100, 15, density)), random_matrix(rng, 8, 15, 0.3)
    items, scores = topk(native_only(), arrays, queries, 4)
    for row in range(8):
        alone = topk(native.kernels, arrays, queries, 4, first=row, last=row + 1)
        np.testing.assert_array_equal(alone[0][row], items[row])
        np.testing.assert_array_equal(alone[1][row], scores[row])


@given(st.integers(0, 2**32 - 1), st.sets(st.sampled_from([1, 2, 3]), min_size=1), st.sampled_from([0.02, 0.5]))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_arrays_of_any_bytes_give_items_that_exist(seed, damaged, density):
    rng = np.random.default_rng(seed)
    arrays = list(arrays_of(random_matrix(rng, 100, 15, density)))
    for place in damaged:
        arrays[place] = np.frombuffer(rng.bytes(arrays[place].nbytes), dtype=arrays[place].dtype)
    queries = random_matrix(rng, 6, 15, 0.3)
    one, other = (topk(form, arrays, queries, 4) for form in (native_only(), native.twins))
    assert ((one[0] >= -1) & (one[0] < 100)).all()
    np.testing.assert_array_equal(one[0], other[0])
    np.testing.assert_array_equal(one[1], other[1])


def test_bounds_and_items_outside_the_arrays_are_ignored(kernels):
    starts = np.array([-(2**63), 2, 2**63 - 1, 1])
    items = np.array([0, 1, 2**31 - 1, -1, -(2**31), 3], dtype=np.int32)
    found, scores = topk(kernels, (4, starts, items, np.ones(5, dtype=np.float32)), one_row(1, 2, 4), 3)
    assert found.tolist() == [[0, 1, -1]]
    assert scores.tolist() == [[1, 1, -np.inf]]
