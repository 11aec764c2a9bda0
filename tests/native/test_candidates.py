"""Candidate labels: joining sources, products of given pairs, the twins, and damaged matrices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from longtail import native


def native_only():
    if not native.is_native():
        pytest.skip("the native kernels are not built here")
    return native.kernels


def csr_arrays(matrix):
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data.astype(np.float32)


def random_pairs(rng, n_rows, n_items):
    starts = np.concatenate([[0], np.cumsum(rng.integers(0, 5, size=n_rows))]).astype(np.int64)
    return starts, rng.integers(0, n_items, size=int(starts[-1])).astype(np.int32)


def dots(kernels, rows, pairs, matrix, n_features, first=0, last=None):
    out = np.full(len(pairs[1]), 7, dtype=np.float32)
    last = len(rows[0]) - 1 if last is None else last
    kernels.pair_dots(*rows, first, last, *pairs, *matrix, n_features, out)
    return out


def test_labels_of_all_sources_are_joined_in_ascending_order(kernels):
    one, other = np.array([[3, 1, -1], [-1, -1, -1]]), np.array([[1, 7], [-1, -1]])
    counts, labels = kernels.join_candidates([one, other], 0, 2)
    assert counts.tolist() == [3, 0]
    assert labels.tolist() == [1, 3, 7]
    assert (counts.dtype, labels.dtype) == (np.int64, np.int32)


def test_no_sources_and_no_rows_give_no_labels(kernels):
    for sources, n_rows in (([], 2), ([np.zeros((0, 3), dtype=np.int64)], 0), ([np.zeros((2, 0), dtype=np.int64)], 2)):
        counts, labels = kernels.join_candidates(sources, 0, n_rows)
        assert counts.tolist() == [0] * n_rows
        assert len(labels) == 0


@given(st.integers(0, 2**32 - 1), st.integers(0, 3))
def test_blocks_of_rows_join_as_all_rows_do(seed, n_sources):
    rng = np.random.default_rng(seed)
    sources = [rng.integers(-2, 9, size=(7, rng.integers(0, 6))) for _ in range(n_sources)]
    for source in sources:
        source[rng.random(source.shape) < 0.1] = 2**31
    counts, labels = native_only().join_candidates(sources, 0, 7)
    twin = native.twins.join_candidates(sources, 0, 7)
    np.testing.assert_array_equal(counts, twin[0])
    np.testing.assert_array_equal(labels, twin[1])
    parts = [native.kernels.join_candidates(sources, *block) for block in ((0, 3), (3, 3), (3, 7))]
    np.testing.assert_array_equal(counts, np.concatenate([part[0] for part in parts]))
    np.testing.assert_array_equal(labels, np.concatenate([part[1] for part in parts]))


def test_products_of_pairs_are_those_of_the_matrices(kernels, rng):
    X = sparse.random_array((6, 20), density=0.3, rng=rng, format="csr", dtype=np.float32)
    M = sparse.random_array((9, 20), density=0.3, rng=rng, format="csr", dtype=np.float32)
    starts, items = random_pairs(rng, 6, 9)
    found = dots(kernels, csr_arrays(X), (starts, items), csr_arrays(M), 20)
    rows = np.repeat(np.arange(6), np.diff(starts))
    np.testing.assert_allclose(found, (X @ M.T).toarray()[rows, items], rtol=1e-6)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.1, 0.7]))
def test_products_do_not_depend_on_blocks_and_twin_and_kernel_agree(seed, density):
    rng = np.random.default_rng(seed)
    rows = csr_arrays(sparse.random_array((6, 20), density=0.4, rng=rng, format="csr"))
    matrix = csr_arrays(sparse.random_array((9, 20), density=density, rng=rng, format="csr"))
    pairs = random_pairs(rng, 6, 9)
    found = dots(native_only(), rows, pairs, matrix, 20)
    np.testing.assert_array_equal(found, dots(native.twins, rows, pairs, matrix, 20))
    for kernels in (native.kernels, native.twins):
        part = dots(kernels, rows, pairs, matrix, 20, first=2, last=4)
        inside = np.arange(len(part)) >= pairs[0][2]
        inside &= np.arange(len(part)) < pairs[0][4]
        np.testing.assert_array_equal(part, np.where(inside, found, np.float32(7)))


@given(st.integers(0, 2**32 - 1), st.sets(st.sampled_from([0, 1, 2]), min_size=1))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_matrices_of_any_bytes_are_read_within_their_arrays(seed, damaged):
    rng = np.random.default_rng(seed)
    rows = csr_arrays(sparse.random_array((6, 20), density=0.4, rng=rng, format="csr"))
    matrix = list(csr_arrays(sparse.random_array((9, 20), density=0.4, rng=rng, format="csr")))
    if 0 in damaged:
        matrix[0] = rng.choice([-(2**63), -1, 0, 30, 2**40, 2**63 - 1], size=10)
    if 1 in damaged:
        matrix[1] = rng.choice([-(2**31), -1, 0, 19, 20, 2**31 - 1], size=len(matrix[1])).astype(np.int32)
    if 2 in damaged:
        matrix[2] = matrix[2][: rng.integers(0, len(matrix[2]))]
    starts, items = random_pairs(rng, 6, 9)
    items[rng.random(len(items)) < 0.2] = rng.choice([-1, 9, 2**31 - 1])
    one, other = (dots(form, rows, (starts, items), matrix, 20) for form in (native_only(), native.twins))
    np.testing.assert_array_equal(one, other)
    assert np.isfinite(one).all()
