"""Which classes of a softmax can win? Decided for many classes together.

Products with all weights are the cost of this question, so blocks of classes share them, in float32. Rounding there has
a bound: rivals whose score may be as high, within the bound, are compared in float64. Each class that loses at its own
weights gets a small hull of the rivals that beat it, and its nearest point is the next input to try.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from longtail.arrays import Array
from longtail.audit.finding import ARGMAXABLE, UNARGMAXABLE, Certificate, Finding
from longtail.audit.nearest import ZERO, nearest_point
from longtail.audit.proofs import UNIT, certificate_is_sure, certificate_residual
from longtail.audit.records import Records
from longtail.audit.system import unit_rows
from longtail.estimator import OutputLayer, check_memory, row_lengths
from longtail.parallel import check_stop, map_blocks, split

_UNIT32 = float(np.finfo(np.float32).eps) / 2
_TINY = float(np.finfo(np.float32).tiny)
_CLASSES, _FEWEST, _BLOCKS = 256, 16, 16  # classes in a block, at most and at least; blocks of a small layer
_ROUNDS = 24
_RIVALS = 64  # added to a hull in a round
# Weights whose squares stay in the range of float32 after scaling.
_RANGE = 1e100


@dataclass(frozen=True, eq=False)
class Classes:
    """A softmax layer with its weights in float32, scaled so that the longest row has length 1."""

    layer: OutputLayer
    scale: float
    weights: Array
    lengths: Array
    offsets: Array

    @classmethod
    def of(cls, layer: OutputLayer) -> Classes | None:
        """None if the weights are too small or too large to be scaled."""
        scale = float(layer.lengths.max(initial=0))
        if not 1 / _RANGE < scale < _RANGE or np.abs(layer.offsets).max(initial=0) > _RANGE:
            return None
        small = np.empty(layer.weights.shape, dtype=np.float32)
        for rows in split(len(small), 1024):
            small[rows] = layer.weights[rows] / scale
        return cls(layer, scale, small, layer.lengths / scale, layer.offsets / scale)

    def rivals(self, classes: Array, inputs: Array) -> list[Array]:
        """For each class, the others that beat its score at its input, or may; those with the highest scores."""
        length = row_lengths(inputs)
        length = np.where(length > 0, length, 1.0)
        scores = (inputs / length[:, None]).astype(np.float32) @ self.weights.T
        # Any order of summation obeys this bound. It covers the rounding of both factors too.
        error = (self.layer.n_inputs + 8) * (1.01 * _UNIT32 * self.lengths + _TINY)
        found = []
        for place, label in enumerate(classes.tolist()):
            offsets = self.offsets / length[place]
            row = scores[place] + offsets
            slack = error + 4 * _UNIT32 * np.abs(offsets)
            lowest = row[label] - slack[label]
            others = np.flatnonzero(~(row + slack < lowest))
            others = others[others != label]
            if len(others) > _RIVALS:
                others = np.sort(others[np.argpartition(-row[others], _RIVALS)[:_RIVALS]])
            found.append(others)
        return found

    def beats(self, label: int, rivals: Array, x: Array) -> tuple[bool, Array]:
        """Whether the class has a higher score than all rivals for certain, in float64; the rivals that it may not."""
        chosen = np.append(rivals, label)
        scores = self.layer.weights[chosen] @ x + self.layer.offsets[chosen]
        reach = float(np.sqrt(x @ x)) * self.layer.lengths[chosen] + np.abs(self.layer.offsets[chosen])
        error = (self.layer.n_inputs + 6) * UNIT * reach
        behind = ~(scores[-1] - error[-1] > scores[:-1] + error[:-1])
        return not behind.any() and bool(np.isfinite(scores).all()), rivals[behind]


def decide_classes(
    layer: OutputLayer,
    classes: Array,
    tolerance: float,
    jobs: int,
    advance: Callable[[int], None],
    records: Records | None = None,
) -> list[Finding | None]:
    """A finding for each class that is decided in a few rounds, else None; BLAS must be limited to one thread."""
    check_memory({"weights in float32, and inputs": (8 * len(classes) + 4 * layer.n_labels) * layer.n_inputs})
    prepared = Classes.of(layer)
    if prepared is None:
        return [None] * len(classes)

    def decide(case: tuple[int, slice]) -> list[Finding | None]:
        number, block = case
        done = None if records is None else records.load("classes", number)
        if done is None:
            done = _decide_block(prepared, classes[block], tolerance)
            if records is not None:
                records.save("classes", number, done)
        return done

    size = min(_CLASSES, max(_FEWEST, -(-len(classes) // _BLOCKS)))
    found: list[Finding | None] = []
    for each in map_blocks(decide, enumerate(split(len(classes), size)), jobs, blas=False):
        found.extend(each)
        advance(sum(finding is not None for finding in each))
    return found


def _decide_block(prepared: Classes, classes: Array, tolerance: float) -> list[Finding | None]:
    layer = prepared.layer
    findings: list[Finding | None] = [None] * len(classes)
    inputs = layer.weights[classes]
    hulls = [np.zeros(0, dtype=np.intp) for _ in classes]
    left = np.arange(len(classes))
    for turn in range(_ROUNDS):
        going = []
        for place, rivals in zip(left.tolist(), prepared.rivals(classes[left], inputs[left]), strict=True):
            check_stop()
            label = int(classes[place])
            wins, behind = prepared.beats(label, rivals, inputs[place])
            if wins:
                method = "weights" if turn == 0 else "nearest"
                findings[place] = Finding(ARGMAXABLE, method, witness=np.array(inputs[place]))
                continue
            fresh = np.setdiff1d(behind, hulls[place])
            if not len(fresh):
                continue
            hulls[place] = np.union1d(hulls[place], fresh)
            finding, x = _try_hull(layer, label, hulls[place], inputs[place], tolerance)
            findings[place] = finding
            if x is not None:
                inputs[place] = x
                going.append(place)
        left = np.array(going, dtype=np.intp)
        if not len(left):
            break
    return findings


def _try_hull(
    layer: OutputLayer, label: int, rivals: Array, x: Array, tolerance: float
) -> tuple[Finding | None, Array | None]:
    """A proof that the class never beats all of these rivals, or an input where it seems to; neither if unsure."""
    rows = layer.weights[label] - layer.weights[rivals]
    start = x
    if layer.has_offsets:
        rows = np.column_stack([rows, layer.offsets[label] - layer.offsets[rivals]])
        start = np.append(x, 1.0)
    lengths = row_lengths(rows)
    if not (lengths > 0).all():
        return None, None
    rows = rows / lengths[:, None]
    if layer.has_offsets:
        rows = np.vstack([rows, np.eye(1, rows.shape[1], rows.shape[1] - 1)])
    found = nearest_point(rows, np.ones(len(rows)), start)
    if found.length > ZERO:
        scale = found.point[-1] if layer.has_offsets else np.abs(found.point).max()
        return None, found.point[: layer.n_inputs] / scale if scale > 0 else None
    used = found.support < len(rivals)
    labels, raw = rivals[found.support[used]], found.weights[used] / lengths[found.support[used]]
    labels, raw = np.append(labels, label), np.append(raw, raw.sum())
    order = np.argsort(labels)
    labels, raw = labels[order], raw[order]
    weights = raw * unit_rows(layer, labels)[1]
    labels, weights = labels[weights > 0], weights[weights > 0]
    if not len(weights):
        return None, None
    weights = weights / weights.sum()
    proof = (layer, np.arange(layer.n_labels) == label, labels, weights)
    residual = certificate_residual(*proof)
    if not residual <= tolerance or not certificate_is_sure(*proof):
        return None, None
    return Finding(UNARGMAXABLE, "nearest", certificate=Certificate(labels, weights, residual)), None
