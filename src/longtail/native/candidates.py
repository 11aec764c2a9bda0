"""NumPy twins of the kernels for candidate labels: joining sources, and products of given pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from longtail.arrays import Array
from longtail.native.clamped import bounds
from longtail.parallel import check_stop


def pair_dots(
    indptr: Array,
    indices: Array,
    data: Array,
    first: int,
    last: int,
    pair_starts: Array,
    pair_items: Array,
    m_indptr: Array,
    m_indices: Array,
    m_data: Array,
    n_features: int,
    out: Array,
) -> None:
    """Write to `out` the products of each row r with the rows ``pair_items[pair_starts[r]:pair_starts[r + 1]]`` of m.

    The sums are in double precision, in the order of the entries of m. The arrays of m may be mapped from a file that
    was not verified: entries outside it are ignored, and so are rows that it does not have.
    """
    dense = np.zeros(n_features, dtype=np.float64)
    for row in range(first, last):
        check_stop()
        entries = slice(*bounds(indptr, row, min(len(indices), len(data))))
        inside = (indices[entries] >= 0) & (indices[entries] < n_features)
        features = indices[entries][inside]
        dense[features] = data[entries][inside]
        for pair in range(*bounds(pair_starts, row, min(len(pair_items), len(out)))):
            entries = slice(*bounds(m_indptr, int(pair_items[pair]), min(len(m_indices), len(m_data))))
            known = (m_indices[entries] >= 0) & (m_indices[entries] < n_features)
            products = dense[m_indices[entries][known]] * m_data[entries][known]
            # Unlike sum(), cumsum() adds in order.
            out[pair] = np.cumsum(products)[-1] if len(products) else 0
        dense[features] = 0


def join_candidates(sources: Sequence[Array], first: int, last: int) -> tuple[Array, Array]:
    """Join the labels of several sources (each an int64 array of rows x places) for rows `first` to `last`.

    Negative labels mean none. Labels that do not fit in 32 bits are ignored.

    Returns
    -------
    counts : int64 array
        The number of different labels of each row.
    labels : int32 array
        The different labels of each row, ascending, row after row.
    """
    parts = [np.zeros(0, dtype=np.int64)]
    for row in range(first, last):
        check_stop()
        found = np.unique(np.concatenate([parts[0], *(source[row] for source in sources)]))
        parts.append(found[(found >= 0) & (found < 2**31)])
    counts = np.array([len(part) for part in parts[1:]], dtype=np.int64)
    return counts, np.concatenate(parts).astype(np.int32)
