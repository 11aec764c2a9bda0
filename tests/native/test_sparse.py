"""The sparse products of kernels and twins compared with dense algebra."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import sparse


def random_csr(rng, rows, columns, density, index_dtype):
    matrix = sparse.csr_array(sparse.random(rows, columns, density, format="csr", dtype=np.float32, random_state=rng))
    matrix.sort_indices()
    return sparse.csr_array(
        (matrix.data, matrix.indices.astype(index_dtype), matrix.indptr.astype(index_dtype)), shape=matrix.shape
    )


@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
@pytest.mark.parametrize("width", [1, 63, 64, 65, 200])
def test_multiply_equals_the_dense_product(kernels, rng, width, index_dtype):
    X = random_csr(rng, 37, 50, 0.2, index_dtype)
    dense = rng.normal(size=(50, width)).astype(np.float32)
    out = np.full((37, width), np.nan, dtype=np.float32)
    kernels.multiply(X.indptr, X.indices, X.data, dense, out)
    np.testing.assert_allclose(out, X.toarray().astype(np.float64) @ dense, atol=1e-5)


@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
def test_multiply_sparse_equals_the_dense_product(kernels, rng, index_dtype):
    X = random_csr(rng, 37, 50, 0.2, index_dtype)
    W = random_csr(rng, 50, 90, 0.1, np.int64)
    out = np.full((37, 90), np.nan, dtype=np.float32)
    kernels.multiply_sparse(X.indptr, X.indices, X.data, W.indptr, W.indices, W.data, out)
    np.testing.assert_allclose(out, X.toarray() @ W.toarray(), atol=1e-5)


@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
@pytest.mark.parametrize("cuts", [[0, 40], [0, 1, 17, 40]])
def test_gram_fills_the_upper_triangle_in_any_blocks(kernels, rng, cuts, index_dtype):
    X = random_csr(rng, 60, 40, 0.3, index_dtype)
    transpose = sparse.csr_array(X.T)
    column_indptr, column_rows = transpose.indptr.astype(index_dtype), transpose.indices.astype(index_dtype)
    out = np.full((40, 40), 7, dtype=np.float32)
    for first, last in itertools.pairwise(cuts):
        kernels.gram_rows(X.indptr, X.indices, X.data, column_indptr, column_rows, first, last, out[first:last])
    expected = X.toarray().T @ X.toarray()
    np.testing.assert_allclose(np.triu(out), np.triu(expected), atol=1e-5)
    assert (out[np.tril_indices(40, -1)] == 7).all()


@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
def test_sums_have_the_precision_of_the_result(kernels, rng, index_dtype):
    X = random_csr(rng, 60, 40, 0.3, index_dtype)
    Xt = sparse.csr_array(X.T)
    starts, rows = Xt.indptr.astype(index_dtype), Xt.indices.astype(index_dtype)
    dense = X.toarray().astype(np.float64)
    gram, product = np.zeros((40, 40)), np.full((40, 40), np.nan)
    kernels.gram_rows(X.indptr, X.indices, X.data, starts, rows, 0, 40, gram)
    kernels.multiply_sparse(starts, rows, Xt.data, X.indptr, X.indices, X.data, product)
    np.testing.assert_allclose(gram, np.triu(dense.T @ dense), rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(product, dense.T @ dense, rtol=1e-14, atol=1e-14)


def test_rows_may_be_cut_out_of_a_longer_matrix(kernels, rng):
    X = random_csr(rng, 37, 50, 0.2, np.int32)
    W = random_csr(rng, 50, 90, 0.1, np.int32)
    part = X.indptr[10:21]
    out = np.full((10, 90), np.nan, dtype=np.float32)
    kernels.multiply_sparse(part, X.indices, X.data, W.indptr, W.indices, W.data, out)
    np.testing.assert_allclose(out, X[10:20].toarray() @ W.toarray(), atol=1e-5)
    kernels.multiply(part, X.indices, X.data, W.toarray(), out)
    np.testing.assert_allclose(out, X[10:20].toarray() @ W.toarray(), atol=1e-5)


def test_products_of_nothing_are_zero(kernels):
    X = sparse.csr_array((3, 4), dtype=np.float32)
    out = np.full((3, 5), np.nan, dtype=np.float32)
    kernels.multiply(X.indptr, X.indices, X.data, np.ones((4, 5), dtype=np.float32), out)
    assert (out == 0).all()
    square = np.ones((4, 4), dtype=np.float32)
    columns = sparse.csr_array(X.T)
    kernels.gram_rows(X.indptr, X.indices, X.data, columns.indptr, columns.indices, 0, 4, square)
    assert (np.triu(square) == 0).all()
