"""From labels of groups to labels of rows (Shen et al., ICML 2020, Algorithm 2, and two other rules)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from longtail import progress
from longtail.aggregated.aggregation import Aggregation
from longtail.aggregated.sharing import shared_out
from longtail.aggregated.vectors import MEMBER_BYTES, label_blocks
from longtail.arrays import Array
from longtail.errors import InvalidInput
from longtail.memory import MemoryPlan
from longtail.native import kernels
from longtail.parallel import map_blocks
from longtail.validation import as_features

RULES = ("argmax", "count", "joint")
_ENTRY_BYTES = 8  # an index of a label vector, as the kernels take it


class Assignment(NamedTuple):
    """Which row carries which label of its group: arrays with one entry per assignment, and the matrix of them.

    Parameters
    ----------
    row_labels : csr_array of shape (n_rows, n_labels)
        Stored values are all 1.
    groups, labels, rows : int64 arrays
        Sorted by label, then group, then row.
    similarities : float64 array
        Similarity of the row and the label.
    confidences : float64 array
        The similarity minus that of the best member of the group that did not get the label. Infinite if every member
        got it, negative if rule "joint" took another than the best.
    """

    row_labels: Any
    groups: Array
    labels: Array
    rows: Array
    similarities: Array
    confidences: Array


def assign_labels(
    X: Any, groups: Any, group_labels: Any, label_vectors: Any, rule: str = "joint", n_jobs: int | None = None
) -> Assignment:
    """Give each label of a group to the members most similar to the label's vector.

    Parameters
    ----------
    X : sparse matrix or array-like of shape (n_rows, n_features)
    groups : sparse or dense 0/1 matrix of shape (n_rows, n_groups)
    group_labels : sparse or dense matrix of whole numbers, of shape (n_groups, n_labels)
        How often each label occurs in a group.
    label_vectors : sparse matrix or array-like of shape (n_labels, n_features)
        Such as those of `GroupRobustLabelVectors`.
    rule : {"joint", "count", "argmax"}
        - argmax: a label goes to the best member only.
        - count: a label that occurs c times in a group goes to the c best members.
        - joint: as count, but maximises the sum of similarities over all labels of a group, while no member gets more
          than its share (number of labels by number of members, rounded up). Rows that resemble everything then
          cannot take every label, so joint is by far the best if rows have similar numbers of labels. A group with
          thousands of labels may take seconds.
    n_jobs : int or None
        Threads; None uses every core.

    Examples
    --------
    >>> X = [[1.0, 0.0], [0.8, 0.6]]
    >>> found = assign_labels(X, [[1], [1]], [[1, 1]], label_vectors=[[1.0, 0.0], [0.6, 0.8]])
    >>> found.row_labels.toarray().tolist(), found.confidences.round(2).tolist()
    ([[1.0, 0.0], [0.0, 1.0]], [0.2, 0.36])
    """
    if rule not in RULES:
        raise InvalidInput(f"rule is {rule!r}; expected one of {', '.join(map(repr, RULES))}")
    X = as_features(X)
    vectors = as_features(label_vectors, name="label_vectors", n_features=X.shape[1], owner="X")
    aggregation = Aggregation.of(groups, group_labels, X.shape[0])
    if vectors.shape[0] != aggregation.n_labels:
        raise InvalidInput(f"{vectors.shape[0]} label vectors, but group_labels has {aggregation.n_labels} columns")
    MemoryPlan(
        "assigning labels to rows",
        {
            "members of groups": MEMBER_BYTES * aggregation.n_members,
            "label vectors": _ENTRY_BYTES * vectors.nnz,
        },
        "Split the groups into parts and assign the labels of each part.",
    ).check()
    return place_labels(aggregation, similarities_to(X, aggregation, vectors, n_jobs), rule)


def similarities_to(X: Any, aggregation: Aggregation, vectors: Any, n_jobs: int | None) -> Array:
    """The inner product of each member with its label's vector, flat as in `Aggregation`."""
    starts, columns = vectors.indptr.astype(np.int64), vectors.indices.astype(np.int64)

    def score_block(labels: slice) -> Array:
        first, last = aggregation.pair_indptr[aggregation.label_indptr[[labels.start, labels.stop]]]
        products = np.empty(last - first)
        kernels.score_members(
            aggregation.label_indptr[labels.start : labels.stop + 1],
            *(aggregation.label_groups, aggregation.group_indptr, aggregation.group_rows),
            *(X.indptr, X.indices, X.data),
            *(starts[labels.start : labels.stop + 1], columns, vectors.data, X.shape[1], products),
        )
        return products

    parts = map_blocks(score_block, label_blocks(X, aggregation, n_jobs), n_jobs, blas=False)
    return np.concatenate([np.zeros(0), *parts])


def place_labels(aggregation: Aggregation, similarities: Array, rule: str) -> Assignment:
    """Assign labels to members by a rule; similarities are flat as in `Aggregation`."""
    if rule == "argmax":
        chosen = _best(aggregation, similarities, np.minimum(aggregation.counts, 1))
    elif rule == "count":
        chosen = _best(aggregation, similarities, aggregation.counts)
    else:
        chosen = _jointly(aggregation, similarities)
    return _assignment(aggregation, similarities, chosen)


def _best(aggregation: Aggregation, similarities: Array, counts: Array) -> Array:
    """A mask of the `counts` best members of each pair, ties to the first."""
    chosen = np.zeros(len(similarities), dtype=bool)
    sizes, starts = aggregation.pair_sizes, aggregation.pair_indptr[:-1]
    if not len(sizes):
        return chosen
    single = counts == 1
    highest = np.maximum.reduceat(similarities, starts)
    places = np.where(similarities == np.repeat(highest, sizes), np.arange(len(similarities)), len(similarities))
    chosen[np.minimum.reduceat(places, starts)[single]] = True
    several = np.flatnonzero(np.repeat(~single, sizes))
    if len(several):
        pairs = np.repeat(np.arange(len(sizes)), sizes)[several]
        order = several[np.lexsort((several, -similarities[several], pairs))]
        first = np.cumsum(np.where(single, 0, sizes)) - np.where(single, 0, sizes)
        rank = np.arange(len(order)) - first[pairs]
        chosen[order[rank < counts[pairs]]] = True
    return chosen


def _jointly(aggregation: Aggregation, similarities: Array) -> Array:
    """A mask of members, from one assignment problem per group in which no member gets more than its share."""
    chosen = np.zeros(len(similarities), dtype=bool)
    by_group = np.argsort(aggregation.label_groups, kind="stable")
    bounds = np.searchsorted(aggregation.label_groups[by_group], np.arange(aggregation.n_groups + 1))
    with progress.task("assigning labels", total=aggregation.n_groups) as advance:
        for group in range(aggregation.n_groups):
            pairs = by_group[bounds[group] : bounds[group + 1]]
            if len(pairs):
                size = int(aggregation.pair_sizes[pairs[0]])
                cells = aggregation.pair_indptr[pairs][:, None] + np.arange(size)
                chosen[cells[shared_out(similarities[cells], aggregation.counts[pairs])]] = True
            advance(1)
    return chosen


def _assignment(aggregation: Aggregation, similarities: Array, chosen: Array) -> Assignment:
    places = np.flatnonzero(chosen)
    sizes, starts = aggregation.pair_sizes, aggregation.pair_indptr[:-1]
    pairs = np.repeat(np.arange(len(sizes)), sizes)[places]
    labels, rows = aggregation.pair_labels[pairs], aggregation.members(slice(None))[places]
    others = np.where(chosen, -np.inf, similarities)
    runners_up = np.maximum.reduceat(others, starts) if len(sizes) else np.zeros(0)
    matrix = sparse.csr_array(
        (np.ones(len(places), dtype=np.float32), (rows, labels)), shape=(aggregation.n_rows, aggregation.n_labels)
    )
    matrix.data[:] = 1  # a row may get a label in two groups
    matrix.sort_indices()
    similarity = similarities[places]
    return Assignment(matrix, aggregation.label_groups[pairs], labels, rows, similarity, similarity - runners_up[pairs])
