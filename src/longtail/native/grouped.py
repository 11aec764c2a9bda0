"""NumPy twins of the kernels for labels that are known only for groups of rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.parallel import check_stop

_NOTHING_LEFT = 1e-6  # a sum of members below this share of their lengths is a rounding error


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

    The vector is a weighted sum of the members. Members are written label by label, group by group: `weights` receives
    the weight of each member, `products` its product with the vector. `objectives` receives, for each label, the sum
    over its groups of the largest product. Label i of the call is label ``first_label + i``.
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
    """Write the product of each member of a label's groups with the label's vector, in the order of `find_members`."""
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
    """For each label the members of its groups, group by group, and where each group starts."""
    for first, last in itertools.pairwise(label_indptr):
        check_stop()
        groups = label_groups[first:last]
        sizes = group_indptr[groups + 1] - group_indptr[groups]
        groups, sizes = groups[sizes > 0], sizes[sizes > 0]
        parts = [group_rows[group_indptr[group] : group_indptr[group + 1]] for group in groups]
        yield np.concatenate([np.zeros(0, dtype=np.int64), *parts]), np.cumsum(sizes) - sizes


def _start(rows: Any, norms: Array, label: int) -> Array:
    """Weights of the members in the first vector: equal, or a single one if their sum cancels out."""
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
    """1 for the first best member of each group, 0 for all others."""
    picks = np.zeros(len(products))
    for start, end in zip(starts, [*starts[1:], len(products)], strict=True):
        picks[start + np.argmax(products[start:end])] = 1
    return picks
