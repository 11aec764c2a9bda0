"""NumPy twins of the kernels for label vectors and balanced 2-means.

`divide` is the 2-means algorithm over any two functions that project and sum rows; nodes that are too large for one
thread use it with threaded functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.parallel import check_stop


def sum_label_rows(
    label_indptr: Array,
    label_rows: Array,
    row_weights: Array | None,
    indptr: Array,
    indices: Array,
    data: Array,
    n_features: int,
    top: int,
    counts: Array,
    out_indices: Array,
    out_data: Array,
) -> int:
    """Write the sum of each label's rows, scaled to length 1, label by label; return the number of entries written.

    `row_weights` has a factor for each of `label_rows`; None means 1. Only the `top` entries of largest magnitude of
    each label are written, ties to the lowest feature. `counts` receives the number of entries of each label.
    """
    X = sparse.csr_array((data, indices, indptr), shape=(len(indptr) - 1, n_features))
    entries = slice(label_indptr[0], label_indptr[-1])
    factors = np.ones(len(label_rows), dtype=np.float32) if row_weights is None else row_weights
    members = sparse.csr_array(
        (factors[entries], label_rows[entries], label_indptr - label_indptr[0]),
        shape=(len(counts), X.shape[0]),
    )
    sums = sparse.csr_array(members @ X)
    sums.eliminate_zeros()
    sums.sort_indices()
    labels = np.repeat(np.arange(len(counts)), np.diff(sums.indptr))
    by_weight = np.lexsort((sums.indices, -np.abs(sums.data), labels))
    rank = np.empty(len(labels), dtype=np.int64)
    rank[by_weight] = np.arange(len(labels)) - sums.indptr[labels]
    kept = rank < top
    labels, features, values = labels[kept], sums.indices[kept], sums.data[kept].astype(np.float64)
    counts[:] = np.bincount(labels, minlength=len(counts))
    lengths = np.sqrt(np.bincount(labels, weights=values**2, minlength=len(counts)))
    out_indices[: len(features)] = features
    out_data[: len(features)] = values / lengths[labels]
    return len(features)


def project_rows(indptr: Array, indices: Array, data: Array, rows: Array, direction: Array, out: Array) -> None:
    """Write the products of some rows of a CSR matrix with a dense vector to `out`."""
    out[:] = sparse.csr_array((data, indices, indptr), shape=(len(indptr) - 1, len(direction)))[rows] @ direction


def add_rows(indptr: Array, indices: Array, data: Array, rows: Array, weights: Array, out: Array) -> None:
    """Add the weighted sum of some rows of a CSR matrix to the dense `out`."""
    chosen = sparse.csr_array((data, indices, indptr), shape=(len(indptr) - 1, len(out)))[rows]
    out += chosen.T.astype(np.float64) @ weights.astype(np.float64)


def bisect_nodes(
    indptr: Array,
    indices: Array,
    data: Array,
    n_features: int,
    members: Array,
    bounds: Array,
    centres: Array,
    rounds: int,
    tolerance: float,
    similarities: Array,
) -> None:
    """Split each node in two: reorder its members in place, those of the first part before the others.

    Node i has the members ``bounds[i, 0]`` to ``bounds[i, 2]``, its first part ends at ``bounds[i, 1]``, and
    ``centres[i]`` are the places within the node of its two initial centres. `similarities` receives the mean
    similarity of the members to the centre of their part.
    """
    vectors = sparse.csr_array((data, indices, indptr), shape=(len(indptr) - 1, n_features))
    for node, ((start, middle, stop), pair) in enumerate(zip(bounds, centres, strict=True)):
        own = members[start:stop].copy()
        rows = vectors[own]

        def project(direction: Array, rows: Any = rows) -> Array:
            return np.asarray(rows @ direction)

        def add(places: Array, weights: Array, rows: Any = rows) -> Array:
            return np.asarray(rows[places].T.astype(np.float64) @ weights.astype(np.float64))

        in_first, similarities[node] = divide(len(own), middle - start, pair, project, add, rounds, tolerance)
        members[start:middle] = own[in_first]
        members[middle:stop] = own[~in_first]


def divide(
    count: int,
    n_first: int,
    pair: Array,
    project: Callable[[Array], Array],
    add: Callable[[Array, Array], Array],
    rounds: int,
    tolerance: float,
) -> tuple[Array, float]:
    """Balanced spherical 2-means of `count` vectors into `n_first` and the rest.

    Parameters
    ----------
    pair : places of the two initial centres
    project : products of all vectors with a dense one
    add : weighted float64 sum of the vectors at given places

    Returns
    -------
    in_first : bool array
        Ties go to the first part in the order of the vectors.
    similarity : float
        Mean similarity of the vectors to the centre of their part.
    """
    total = add(np.arange(count), np.ones(count, dtype=np.float32))
    first = np.zeros_like(total)
    in_first = np.zeros(count, dtype=bool)
    direction = add(pair, np.array([1, -1], dtype=np.float32)).astype(np.float32)
    similarity = -np.inf
    for _ in range(rounds):
        check_stop()
        chosen = largest(project(direction), n_first)
        moved = np.flatnonzero(chosen != in_first)
        first += add(moved, np.where(chosen[moved], 1, -1).astype(np.float32))
        in_first = chosen
        second = total - first
        lengths = float(np.linalg.norm(first)), float(np.linalg.norm(second))
        before, similarity = similarity, sum(lengths) / count
        if similarity - before < tolerance:
            break
        direction = (first / (lengths[0] or 1) - second / (lengths[1] or 1)).astype(np.float32)
    return in_first, similarity


def largest(scores: Array, count: int) -> Array:
    """Mask of the `count` largest scores, ties to the first.

    >>> largest(np.array([1.0, 3.0, 1.0, 2.0]), 3)
    array([ True,  True, False,  True])
    """
    pivot = np.partition(scores, -count)[-count]
    chosen = scores > pivot
    ties = np.flatnonzero(scores == pivot)
    chosen[ties[: count - int(chosen.sum())]] = True
    return np.asarray(chosen)
