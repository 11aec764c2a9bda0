"""NumPy twins of the votes for labels: each neighbour of a row gives its weight to each of its labels."""

from __future__ import annotations

import numpy as np

from longtail.arrays import Array
from longtail.native.clamped import bounds
from longtail.native.inverted_index import write_best
from longtail.parallel import check_stop


def neighbour_votes(
    neighbours: Array,
    weights: Array,
    first: int,
    last: int,
    y_indptr: Array,
    y_indices: Array,
    n_labels: int,
    mask: Array | None,
    out_labels: Array,
    out_votes: Array,
) -> None:
    """Write the labels with the most votes for rows `first` to `last`, best first, to `out_labels` and `out_votes`.

    Only labels in `mask` and with votes above 0 count. Ties go to the lowest label; rows with fewer labels end in -1
    and -inf. `neighbours` are rows of the label matrix with ``y_indptr`` and ``y_indices``; -1 is no neighbour. Votes
    are sums of float32 in the order of the neighbours.
    """
    for row in range(first, last):
        votes = _votes(neighbours[row], weights[row], y_indptr, y_indices, n_labels)
        if mask is not None:
            votes = np.where(mask[:n_labels], votes, np.float32(0))
        write_best(votes, out_labels[row], out_votes[row])


def pair_votes(
    neighbours: Array,
    weights: Array,
    first: int,
    last: int,
    y_indptr: Array,
    y_indices: Array,
    n_labels: int,
    pair_starts: Array,
    pair_items: Array,
    out: Array,
) -> None:
    """Write to `out` the votes for the labels ``pair_items[pair_starts[r]:pair_starts[r + 1]]`` of each row r.

    The votes are those of `neighbour_votes`; a label without votes has 0.
    """
    for row in range(first, last):
        votes = _votes(neighbours[row], weights[row], y_indptr, y_indices, n_labels)
        from_, to = bounds(pair_starts, row, min(len(pair_items), len(out)))
        labels = pair_items[from_:to]
        known = (labels >= 0) & (labels < n_labels)
        out[from_:to] = 0
        out[from_:to][known] = votes[labels[known]]


def _votes(neighbours: Array, weights: Array, y_indptr: Array, y_indices: Array, n_labels: int) -> Array:
    check_stop()
    votes = np.zeros(n_labels, dtype=np.float32)
    for neighbour, weight in zip(neighbours.tolist(), weights, strict=True):
        from_, to = bounds(y_indptr, neighbour, len(y_indices))
        labels = y_indices[from_:to]
        np.add.at(votes, labels[(labels >= 0) & (labels < n_labels)], weight)
    return votes
