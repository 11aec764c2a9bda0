"""Columns far from zero are measured from a centre, so that no digits are lost where they are centred in float32.

X'X - n mm' and Xw + b are small differences of large numbers where a column's mean is large beside its spread. Such a
column is non-zero in nearly every row, so it can be shifted without X growing; every other column stays as it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.parallel import split

_CELLS = 2**20  # weights that are made float64 at once
# A column is far from zero if mean² is more than this share of its mean square: below that at most a digit is lost.
_FAR = 0.9


def far_centre(mean: Array, mean_square: Array) -> Array | None:
    """The means of the columns far from zero, 0 for all others, in float32; None where no column is far."""
    # A column of which a share p is not zero has mean ** 2 <= p * mean_square: a far column is nearly dense.
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
    for rows in split(len(vector), max(1, _CELLS // max(1, len(sums)))):
        sums += vector[rows] @ coefficients[rows]
    return sums
