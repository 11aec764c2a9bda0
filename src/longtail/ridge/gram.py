"""The sums that ridge needs: X'X, X'Y by label blocks, column sums; and shifts of columns that are far from zero.

Centred features are X - 1m' with m the column means. The matrix stays sparse because
(X - 1m')'(X - 1m') = X'X - n mm'. If a column's mean is large beside its spread, that difference and Xw + b lose
digits in float32. Such a column is non-zero in nearly every row, so it can be shifted without X growing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.errors import InvalidInput
from longtail.native import kernels
from longtail.parallel import blas_threads, split

_LONGEST = 1e17  # largest length of all features together: squares of it must stay within 32-bit floats
_ENTRIES = 2**24  # entries of a sparse matrix that are summed at once
_CELLS = 2**20  # weights that are made float64 at once
_FAR = 0.9  # a column is far from zero if mean² is more than this share of its mean square; below, one digit is lost


def check_length(X: Any) -> None:
    """Raise `InvalidInput` if the sums of squares would not fit into float32."""
    length = float(np.sqrt(column_squares(X).sum()))
    if length > _LONGEST:
        raise InvalidInput(f"the features are too large for 32-bit sums (length {length:.1e}); scale the features")


def transpose(X: Any) -> Any:
    """The transpose in CSR with sorted indices and the index dtype of `X`."""
    turned = sparse.csr_array(X.T)
    index = X.indices.dtype
    return sparse.csr_array(
        (turned.data, turned.indices.astype(index, copy=False), turned.indptr.astype(index, copy=False)),
        shape=turned.shape,
    )


def gram_rows(X: Any, Xt: Any, rows: slice, out: Array) -> None:
    """Write some rows of the symmetric X'X, from the diagonal on, to `out`, summed in its precision."""
    kernels.gram_rows(X.indptr, X.indices, X.data, Xt.indptr, Xt.indices, rows.start, rows.stop, out)


def balanced_blocks(X: Any, Xt: Any, pieces: int) -> list[slice]:
    """Slices of features of about equal work: a feature costs the non-zeros to its right in the rows that have it."""
    lengths = np.diff(X.indptr).astype(np.float64)
    total = np.concatenate([[0.0], np.cumsum(lengths[Xt.indices])])
    cost = np.diff(total[Xt.indptr]) * np.linspace(1, 0, X.shape[1], endpoint=False) + 1
    edges = np.searchsorted(np.cumsum(cost), np.linspace(0, cost.sum(), pieces + 1)[1:-1])
    bounds = np.unique(np.concatenate([[0], edges, [X.shape[1]]])).tolist()
    return [slice(start, stop) for start, stop in itertools.pairwise(bounds)]


def add_outer(rows: Array, left: Array, right: Array) -> None:
    """Add left right' to some rows of a matrix, in place; -nm and m turn X'X into (X - 1m')'(X - 1m')."""
    left, right = (part.astype(rows.dtype, copy=False) for part in (left, right))
    for block in split(len(rows), 1024):
        rows[block] += left[block, None] * right[None, :]


def column_sums(X: Any, weights: Array | None = None) -> Array:
    """Sums of the columns in float64, of rows with these weights."""
    if weights is not None:
        factors = np.repeat(weights, np.diff(X.indptr))
        return _by_column(X, lambda entries: X.data[entries].astype(np.float64) * factors[entries])
    return _by_column(X, lambda entries: X.data[entries])


def scale_rows(X: Any, factors: Array) -> Any:
    """Each row of `X` times its factor."""
    data = X.data * np.repeat(factors.astype(X.data.dtype), np.diff(X.indptr))
    return sparse.csr_array((data, X.indices, X.indptr), shape=X.shape)


def column_squares(X: Any) -> Array:
    """Sums of squares of the columns in float64."""
    return _by_column(X, lambda entries: np.square(X.data[entries], dtype=np.float64))


def column_lengths(X: Any) -> Array:
    """The number of entries of each column."""
    return _by_column(X, lambda _: None)


def _by_column(X: Any, values: Callable[[slice], Array | None]) -> Array:
    """Sums over the entries of each column; a few entries at a time, because X may be mapped and larger than memory."""
    sums = np.zeros(X.shape[1])
    for entries in split(len(X.indices), _ENTRIES):
        sums += np.bincount(X.indices[entries], weights=values(entries), minlength=X.shape[1])
    return sums


def label_sums(X: Any, Yt: Any, block: slice, dtype: Any) -> Array:
    """Y'X for the labels of `block`, one label per row, dense, summed in `dtype`."""
    out = np.empty((block.stop - block.start, X.shape[1]), dtype=dtype)
    part = Yt.indptr[block.start : block.stop + 1]
    kernels.multiply_sparse(part, Yt.indices, Yt.data, X.indptr, X.indices, X.data, out)
    return out


def column_means(X: Any, weights: Array | None = None) -> Array:
    """Means of the columns in float64, of rows with these weights."""
    total = X.shape[0] if weights is None else float(weights.sum(dtype=np.float64))
    return column_sums(X, weights) / total


def centre_of(X: Any) -> Array | None:
    """The means of the columns of `X` that are far from zero, as `far_centre` gives them."""
    return far_centre(column_means(X), column_squares(X) / X.shape[0])


def far_centre(mean: Array, mean_square: Array) -> Array | None:
    """The means of the columns far from zero and 0 for all others, in float32; None if no column is far."""
    # A column with a share p of non-zeros has mean ** 2 <= p * mean_square, so a far column is nearly dense.
    centre: Array = np.where(mean**2 > _FAR * mean_square, mean, 0).astype(np.float32)
    return centre if centre.any() else None


def shift_columns(X: Any, centre: Array | None) -> Any:
    """The sparse X - 1 centre'; columns whose centre is 0 keep their zeros."""
    if centre is None:
        return X
    far = np.flatnonzero(centre)
    offsets = centre[X.indices]
    if np.count_nonzero(offsets) == X.shape[0] * len(far):
        return sparse.csr_array((X.data - offsets, X.indices, X.indptr), shape=X.shape)
    starts = np.arange(0, X.shape[0] * len(far) + 1, len(far))
    constant = (np.tile(centre[far], X.shape[0]), np.tile(far, X.shape[0]), starts)
    shifted = sparse.csr_array(X - sparse.csr_array(constant, shape=X.shape))
    index = X.indices.dtype
    arrays = (shifted.data, shifted.indices.astype(index, copy=False), shifted.indptr.astype(index, copy=False))
    return sparse.csr_array(arrays, shape=X.shape)


def weighted_sum(coefficients: Any, vector: Array) -> Array:
    """vector' coefficients in float64, for coefficients of shape (n_features, n_labels)."""
    if sparse.issparse(coefficients):
        return np.asarray(coefficients.T @ vector)
    sums = np.zeros(coefficients.shape[1])
    with blas_threads(1):  # whose number would change the last digits
        for rows in split(len(vector), max(1, _CELLS // max(1, len(sums)))):
            sums += vector[rows] @ coefficients[rows]
    return sums
