"""SciPy twins of the sparse products."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array


def _csr(indptr: Array, indices: Array, data: Array, width: int) -> Any:
    """The matrix of these rows; `indptr` may be a slice of a longer one that does not start at 0."""
    entries = slice(indptr[0], indptr[-1])
    return sparse.csr_array((data[entries], indices[entries], indptr - indptr[0]), shape=(len(indptr) - 1, width))


def multiply(indptr: Array, indices: Array, data: Array, dense: Array, out: Array) -> None:
    """Write the product of a CSR matrix and a dense matrix to `out`."""
    out[:] = _csr(indptr, indices, data, dense.shape[0]) @ dense


def multiply_sparse(
    indptr: Array,
    indices: Array,
    data: Array,
    right_indptr: Array,
    right_indices: Array,
    right_data: Array,
    out: Array,
) -> None:
    """Write the product of two CSR matrices to the dense `out`, summed in its precision."""
    left = _csr(indptr, indices, data.astype(out.dtype, copy=False), len(right_indptr) - 1)
    out[:] = (left @ _csr(right_indptr, right_indices, right_data, out.shape[1])).toarray()


def gram_rows(
    indptr: Array,
    indices: Array,
    data: Array,
    column_indptr: Array,
    column_rows: Array,
    first: int,
    last: int,
    out: Array,
) -> None:
    """Write rows `first` to `last` of the upper triangle of X'X to `out`, which has these rows; what is left of the
    diagonal is not changed.

    `column_indptr` and `column_rows` list the rows of X that have each feature (the transpose of X). Sums have the
    precision of `out`.
    """
    width = out.shape[1]
    X = _csr(indptr, indices, data.astype(out.dtype, copy=False), width)
    upper = np.triu((X[:, first:last].T @ X[:, first:]).toarray())
    rows, columns = np.triu_indices(upper.shape[0], m=upper.shape[1])
    out[rows, columns + first] = upper[rows, columns]
