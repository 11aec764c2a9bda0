"""Plain NumPy twins of the kernels for labels known only for groups of rows, with each label's vector written out."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.parallel import check_stop

_NOTHING_LEFT = 1e-6  # share of their lengths below which a sum of members is rounding


def find_members(
    label_indptr: Array,
    label_groups: Array,
    group_indptr: Array,
    group_rows: Array,
    indptr: Array,
    indices: Array,
    data: Array,
    norms: Array,
    n_features: int,
    first_label: int,
    n_iter: int,
    step: float,
    weights: Array,
    products: Array,
    objectives: Array,
) -> None:
    """Move the vector of each label `n_iter` times towards the best member of each of its groups.

    Members are written label by label, group by group: `weights` takes the weight of each member in the vector, which
    is their weighted sum, and `products` its product with the vector. `objectives` takes, for each label, the sum over
    its groups of the largest product. Label number i of the call is label ``first_label + i``.
    """
    X = sparse.csr_array((data, indices, indptr), shape=(len(indptr) - 1, n_features))
    place = 0
    for label, (members, starts) in enumerate(_members(label_indptr, label_groups, group_indptr, group_rows)):
        here = slice(place, place + len(members))
        place = here.stop
        objectives[label] = 0.0
        if not len(members):
            continue
        rows = X[members].astype(np.float64)
        share = _start(rows, norms[members], first_label + label)
        vector = rows.T @ share
        for _ in range(n_iter):
            check_stop()
            picks = _first_best(rows @ vector, starts)
            towards = rows.T @ picks
            length = float(np.linalg.norm(towards))
            if length == 0:
                break
            moved = vector + step / length * towards
            norm = float(np.linalg.norm(moved))
            if norm**2 <= _NOTHING_LEFT:
                break
            vector, share = moved / norm, (share + step / length * picks) / norm
        weights[here], products[here] = share, rows @ vector
        objectives[label] = np.maximum.reduceat(products[here], starts).sum()


def score_members(
    label_indptr: Array,
    label_groups: Array,
    group_indptr: Array,
    group_rows: Array,
    indptr: Array,
    indices: Array,
    data: Array,
    vector_indptr: Array,
    vector_indices: Array,
    vector_data: Array,
    n_features: int,
    products: Array,
) -> None:
    """Write the product of each member of a label's groups with the vector of that label, as `find_members` does."""
    X = sparse.csr_array((data, indices, indptr), shape=(len(indptr) - 1, n_features))
    place = 0
    for label, (members, _) in enumerate(_members(label_indptr, label_groups, group_indptr, group_rows)):
        entries = slice(vector_indptr[label], vector_indptr[label + 1])
        vector = np.zeros(n_features, dtype=np.float32)
        vector[vector_indices[entries]] = vector_data[entries]
        products[place : place + len(members)] = X[members] @ vector
        place += len(members)


def _members(
    label_indptr: Array, label_groups: Array, group_indptr: Array, group_rows: Array
) -> Iterator[tuple[Array, Array]]:
    """For each label the members of its groups, one group after the other, and where each group begins."""
    for first, last in itertools.pairwise(label_indptr):
        check_stop()
        groups = label_groups[first:last]
        sizes = group_indptr[groups + 1] - group_indptr[groups]
        groups, sizes = groups[sizes > 0], sizes[sizes > 0]
        parts = [group_rows[group_indptr[group] : group_indptr[group + 1]] for group in groups]
        yield np.concatenate([np.zeros(0, dtype=np.int64), *parts]), np.cumsum(sizes) - sizes


def _start(rows: Any, norms: Array, label: int) -> Array:
    """Weights of the members in the first vector: all alike, or, where they cancel out, one of them."""
    filled = np.flatnonzero(norms)
    if not len(filled):
        return np.zeros(len(norms))
    share = np.ones(len(norms))
    length = float(np.linalg.norm(rows.T @ share))
    if length <= _NOTHING_LEFT * norms.sum():
        share = np.zeros(len(norms))
        share[filled[label % len(filled)]] = 1
        length = float(np.linalg.norm(rows.T @ share))
    return share / length


def _first_best(products: Array, starts: Array) -> Array:
    """1 for the first of the best members of each group."""
    picks = np.zeros(len(products))
    for start, end in zip(starts, [*starts[1:], len(products)], strict=True):
        picks[start + np.argmax(products[start:end])] = 1
    return picks
