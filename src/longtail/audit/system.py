"""An output layer as one homogeneous system: an input gets a label set iff s_i (u_i . z) > 0 for every row u_i.

The sign s_i is +1 for labels in the set and -1 for the others. Offsets are one more coordinate of z that must be
positive, which is one more row. In a ranking, the score that separates the first places from the rest is one more
coordinate too, of either sign. Rows are scaled to length 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.estimator import OutputLayer, check_memory, row_lengths


@dataclass(frozen=True, eq=False)
class System:
    """The rows that decide a layer's label sets.

    Attributes
    ----------
    layer : OutputLayer
        With dense weights.
    rows : array of shape (n_rows, width)
        Unit rows of the labels that have one, then the row of the offsets if there are any.
    labels : array of shape (n_rows,)
        The label of each row, -1 for the row of the offsets.
    empty : bool array of shape (n_labels,)
        Labels whose score is 0 for every input: they have no row.
    lengths : array of shape (n_labels,)
        The lengths of the rows before scaling; 0 for empty labels.
    """

    layer: OutputLayer
    rows: Array
    labels: Array
    empty: Array
    lengths: Array

    @classmethod
    def of(cls, layer: OutputLayer) -> System:
        """Build the system of a layer; raises `NotEnoughMemory` if it does not fit."""
        layer = dense_layer(layer)
        rows, lengths = unit_rows(layer)
        empty = lengths == 0
        labels = np.flatnonzero(~empty)
        if len(labels) < layer.n_labels:
            rows = rows[labels]
        if layer.has_offsets:
            positive = np.zeros((1, rows.shape[1]))
            positive[0, -1] = 1
            rows = np.concatenate([rows, positive])
            labels = np.append(labels, -1)
        return cls(layer, rows, labels, empty, lengths)

    @cached_property
    def gram(self) -> Array:
        """The products of the columns of the rows."""
        return np.asarray(self.rows.T @ self.rows)

    def signs(self, members: Array) -> Array:
        """The sign each row must have, for label sets given as a dense boolean matrix (n_sets, n_labels)."""
        signs = np.ones((len(members), len(self.labels)))
        wanted = self.labels >= 0
        signs[:, wanted] = np.where(members[:, self.labels[wanted]], 1.0, -1.0)
        return signs

    def to_inputs(self, z: Array) -> Array:
        """The inputs that points of the system stand for, one per row of `z`."""
        x = z[:, : self.layer.n_inputs]
        scale = z[:, -1] if self.layer.has_offsets else np.abs(x).max(axis=1)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return x / np.where(scale == 0, 1.0, scale)[:, None]

    def to_points(self, x: Array, members: Array) -> Array:
        """Points of the system for inputs; a cut is halfway between the labels of the set and the others."""
        layer = self.layer
        z = np.zeros((len(x), self.rows.shape[1]))
        z[:, : layer.n_inputs] = x
        if layer.has_offsets:
            z[:, -1] = 1
        if layer.cut:
            scores = x @ layer.weights.T + layer.offsets
            lowest = np.where(members, scores, np.inf).min(axis=1)
            highest = np.where(members, -np.inf, scores).max(axis=1)
            # If the set has no labels, or all of them, the cut is beyond all scores.
            lowest = np.where(np.isinf(lowest), highest + 2 * layer.cut, lowest)
            highest = np.where(np.isinf(highest), lowest - 2 * layer.cut, highest)
            z[:, layer.n_inputs] = (lowest + highest) / 2 / layer.cut
        return z


def dense_layer(layer: OutputLayer) -> OutputLayer:
    """The layer with dense weights; raises `NotEnoughMemory` if these and their system do not fit."""
    check_memory({"weights and their system": 24 * layer.n_labels * layer.n_inputs})
    return replace(layer, weights=layer.weights.toarray()) if sparse.issparse(layer.weights) else layer


def unit_rows(layer: OutputLayer, labels: Array | None = None) -> tuple[Array, Array]:
    """The rows (weights, minus the cut, offset) of some labels, scaled to length 1, and their lengths; 0 stays 0."""
    chosen = slice(None) if labels is None else labels
    weights = layer.weights[chosen]
    columns = [weights.toarray() if sparse.issparse(weights) else weights]
    if layer.cut:
        columns.append(np.full((len(columns[0]), 1), -layer.cut))
    if layer.has_offsets:
        columns.append(layer.offsets[chosen][:, None])
    rows = columns[0] if len(columns) == 1 else np.concatenate(columns, axis=1)
    lengths = row_lengths(rows)
    with np.errstate(over="ignore"):
        unit = rows / np.where(lengths == 0, 1.0, lengths)[:, None]
    return unit, lengths
