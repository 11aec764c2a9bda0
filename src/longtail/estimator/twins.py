"""Labels that have the very same weights: no input tells their scores apart."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array

_DIGEST = 16


def first_twins(weights: Any, offsets: Array | None = None) -> Array:
    """For each label the first one that has the same weights and, where given, the same offset: mostly itself.

    Parameters
    ----------
    weights : array or csr_array of shape (n_labels, n_features)
    offsets : array of n_labels, or None

    Returns
    -------
    first : int64 array of n_labels

    Examples
    --------
    >>> first_twins(np.array([[1.0], [2.0], [1.0]])).tolist()
    [0, 1, 0]
    """
    added = np.zeros(weights.shape[0]) if offsets is None else offsets + 0.0  # -0 becomes 0
    seen: dict[bytes, int] = {}
    rows: Iterator[tuple[Array, ...]]
    first = np.empty(len(added), dtype=np.int64)
    if sparse.issparse(weights):
        plain = sparse.csr_array(weights, copy=True)
        plain.sum_duplicates()
        plain.eliminate_zeros()
        rows = ((plain.indices[a:b], plain.data[a:b]) for a, b in pairwise(plain.indptr.tolist()))
    else:
        rows = ((row + 0.0,) for row in weights)
    for label, (parts, offset) in enumerate(zip(rows, added, strict=True)):
        # Rows themselves as keys would hold all the weights once more.
        digest = blake2b(offset.tobytes(), digest_size=_DIGEST)
        for part in parts:
            digest.update(np.ascontiguousarray(part).data)
        first[label] = seen.setdefault(digest.digest(), label)
    return first
