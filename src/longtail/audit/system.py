"""The output layer as one homogeneous system: a label set is in reach iff some z has s_i (u_i . z) > 0 for every row.

A bias is one more coordinate of z that must be positive, and that is one more row. The cut between the k labels of a
top-k set and the others is one more coordinate too, of either sign. Rows are scaled to length 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from longtail.arrays import Array
from longtail.errors import InvalidInput, WrongType
from longtail.memory import MemoryPlan

SEMANTICS = ("sign", "topk")
_SMALL = 1e-140


@dataclass(frozen=True, eq=False)
class Layer:
    """Weights, the offsets added to scores (bias less threshold), and the system they make.

    Attributes
    ----------
    W : array of shape (n_labels, d)
    bias, threshold : array of shape (n_labels,), or None where all are 0
    semantics : "sign" or "topk"
    rows : array of shape (n_rows, width)
        Unit rows of the labels that have one, then the row of the bias where there is one.
    labels : array of shape (n_rows,)
        The label of each row, -1 for the row of the bias.
    empty : array of shape (n_labels,)
        Labels whose score is 0 whatever the input: they have no row.
    lengths : array of shape (n_labels,)
        How long the rows were before they were scaled; 0 for those that are empty.
    cut : float
        The score that the coordinate of the cut counts in; 0 where there is no cut.
    """

    W: Array
    bias: Array | None
    threshold: Array | None
    semantics: str
    rows: Array
    labels: Array
    empty: Array
    lengths: Array
    cut: float

    @property
    def has_offsets(self) -> bool:
        return self.bias is not None or self.threshold is not None

    @property
    def n_labels(self) -> int:
        return int(self.W.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.W.shape[1])

    @cached_property
    def offsets(self) -> Array:
        """What is added to the scores before they are compared with 0."""
        total = np.zeros(self.n_labels)
        if self.bias is not None:
            total = total + self.bias
        if self.threshold is not None:
            total = total - self.threshold
        return total

    def signs(self, members: Array) -> Array:
        """The sign each row must have, for label sets given as a dense boolean matrix (n_sets, n_labels)."""
        signs = np.ones((len(members), len(self.labels)))
        wanted = self.labels >= 0
        signs[:, wanted] = np.where(members[:, self.labels[wanted]], 1.0, -1.0)
        return signs

    def to_inputs(self, z: Array) -> Array:
        """The inputs x that points z of the system stand for, one per row of `z`."""
        x = z[:, : self.n_features]
        scale = z[:, self.n_features] if self.has_offsets else np.abs(x).max(axis=1)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return x / np.where(scale == 0, 1.0, scale)[:, None]

    def to_points(self, x: Array, members: Array) -> Array:
        """Points of the system for inputs; a cut is set halfway between the labels of the set and the others."""
        z = np.zeros((len(x), self.rows.shape[1]))
        z[:, : self.n_features] = x
        if self.has_offsets:
            z[:, self.n_features] = 1
        if self.cut:
            scores = x @ self.W.T + self.offsets
            lowest = np.where(members, scores, np.inf).min(axis=1)
            highest = np.where(members, -np.inf, scores).max(axis=1)
            # Where one of the two is empty the cut is beyond all scores.
            lowest = np.where(np.isinf(lowest), highest + 2 * self.cut, lowest)
            highest = np.where(np.isinf(highest), lowest - 2 * self.cut, highest)
            z[:, -1] = (lowest + highest) / 2 / self.cut
        return z


def make_layer(W: Any, bias: Any = None, threshold: Any = 0.0, semantics: str = "sign") -> Layer:
    """Check the weights of an output layer and build its system.

    Raises
    ------
    InvalidInput
        Where weights, bias and threshold are not finite numbers or contradict each other.
    NotEnoughMemory
        Where the system does not fit.
    """
    if semantics not in SEMANTICS:
        raise InvalidInput(f"semantics is {semantics!r}; expected one of {', '.join(map(repr, SEMANTICS))}")
    # Weights may come sparse, and are dense from here on; so is the system, and once more while it is built.
    entries = math.prod(np.shape(W))
    MemoryPlan("verifying an output layer", {"weights and their system": 24 * entries}, "Use fewer dimensions.").check()
    W = _numbers(W, "W")
    if W.ndim != 2:
        raise InvalidInput(f"W has {W.ndim} dimensions; expected a matrix of one row per label")
    n, d = W.shape
    if n == 0 or d == 0:
        raise InvalidInput(f"W has shape {W.shape}; expected at least one label and one feature")
    bias = None if bias is None else _per_label(bias, n, "bias")
    cut = _per_label(threshold, n, "threshold")
    has_offsets = bias is not None or bool(cut.any())
    columns = [W]
    if has_offsets:
        columns.append(((0.0 if bias is None else bias) - cut)[:, None])
    cut_scale = 0.0
    if semantics == "topk":
        # Any scale will do for the cut; this one keeps the radius the same when W is scaled.
        largest_weight = float(np.abs(W).max()) or 1.0
        length = float(np.sqrt(np.mean(np.sum(np.square(W / largest_weight), axis=1))))
        cut_scale = largest_weight * (length or 1.0)
        columns.append(np.full((n, 1), -cut_scale))
    rows = columns[0] if len(columns) == 1 else np.concatenate(columns, axis=1)
    largest = np.maximum(rows.max(axis=1), -rows.min(axis=1))
    empty = largest == 0
    if empty.any():
        rows, largest = rows[~empty], largest[~empty]
    scale = np.ones(1)
    if np.any((largest < _SMALL) | (largest > 1 / _SMALL)):
        # Squares of such weights leave the range of floats.
        scale = largest
        rows = rows / scale[:, None]
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    rows = rows / norms[:, None]
    lengths = np.zeros(n)
    lengths[~empty] = norms * scale
    labels = np.flatnonzero(~empty)
    if has_offsets:
        positive = np.zeros((1, rows.shape[1]))
        positive[0, d] = 1
        rows = np.concatenate([rows, positive])
        labels = np.append(labels, -1)
    return Layer(W, bias, cut if cut.any() else None, semantics, rows, labels, empty, lengths, cut_scale)


def _numbers(values: Any, name: str) -> Array:
    array = np.asarray(values.toarray() if hasattr(values, "toarray") else values)
    if array.dtype.kind not in "biuf":
        raise WrongType(f"{name} has dtype {array.dtype}; expected real numbers")
    array = array.astype(np.float64, copy=False)
    if not np.isfinite(array).all():
        raise InvalidInput(f"{name} contains NaN or infinity; every value must be finite")
    return array


def _per_label(values: Any, n: int, name: str) -> Array:
    array = _numbers(values, name)
    if array.ndim == 0:
        return np.full(n, float(array))
    if array.shape != (n,):
        raise InvalidInput(f"{name} has shape {array.shape}; expected one number, or one for each of the {n} labels")
    return array
