"""The planes that bound the inputs of one label set, and the distance of an input from each of them.

Under thresholds each label has one plane. In a ranking each pair of a label inside and one outside has one: where their
scores are equal. Distances are those of the input, whatever the bias.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.estimator import OutputLayer, check_memory, row_lengths

_CLOSE = 1e-6  # below this part of their lengths, the difference of two rows is computed from the rows themselves


class Planes:
    """The planes of a label set.

    Parameters
    ----------
    layer : OutputLayer
    members : bool array of shape (n_labels,)
        The labels of the set. Labels without weights, and pairs with equal weights, have no plane.
    """

    def __init__(self, layer: OutputLayer, members: Array) -> None:
        self._layer = layer
        self._ranked = layer.rule == "topk"
        if self._ranked:
            inside, outside = np.flatnonzero(members), np.flatnonzero(~members)
            check_memory({"pairs of labels": 40 * len(inside) * len(outside)})
            lengths = _pair_lengths(layer, inside, outside)
            self._first, self._second = np.repeat(inside, len(outside)), np.tile(outside, len(inside))
        else:
            lengths = layer.lengths
            self._first = np.arange(layer.n_labels)
            self._signs = np.where(members, 1.0, -1.0)
        kept = np.flatnonzero(lengths > 0)
        self._lengths = lengths[kept]
        self._first = self._first[kept]
        if self._ranked:
            self._second = self._second[kept]
        else:
            self._signs = self._signs[kept]

    def __len__(self) -> int:
        return len(self._lengths)

    def distances(self, scores: Array) -> Array:
        """How far an input with these scores is on the right side of each plane; negative on the wrong side."""
        if self._ranked:
            return np.asarray((scores[self._first] - scores[self._second]) / self._lengths)
        return np.asarray(self._signs * scores[self._first] / self._lengths)

    def rows(self, chosen: Array) -> Array:
        """The directions of some planes, of length 1, towards the right side."""
        first, lengths = self._first[chosen], self._lengths[chosen, None]
        rows = _dense(self._layer.weights[first]) / lengths
        if self._ranked:
            return np.asarray(rows - _dense(self._layer.weights[self._second[chosen]]) / lengths)
        return np.asarray(rows * self._signs[chosen, None])


def _dense(rows: Any) -> Array:
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows)


def _pair_lengths(layer: OutputLayer, inside: Array, outside: Array) -> Array:
    """The lengths of all differences between a row inside and a row outside, in one array."""
    if not len(inside) or not len(outside):
        return np.zeros(0)
    return np.asarray(lengths_to_all(layer, inside)[:, outside].ravel())


def lengths_to_all(layer: OutputLayer, labels: Array) -> Array:
    """The length of the difference between the row of each label given and every row (n_given, n_labels)."""
    largest = max(float(layer.lengths.max()), np.finfo(np.float64).tiny)
    # A few rows are divided twice, because dividing all weights once would copy them.
    rows = layer.weights[labels] / largest
    squares = np.add.outer((layer.lengths[labels] / largest) ** 2, (layer.lengths / largest) ** 2)
    left = np.maximum(squares - 2 * _dense(rows / largest @ layer.weights.T), 0)
    lengths = np.sqrt(left)
    close = left <= _CLOSE * squares
    for place in np.flatnonzero(close.any(axis=1)).tolist():
        near = np.flatnonzero(close[place])
        lengths[place, near] = row_lengths(_dense(layer.weights[near] / largest) - _dense(rows[[place]]))
    return np.asarray(largest * lengths)
