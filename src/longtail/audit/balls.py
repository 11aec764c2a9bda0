"""The largest ball of inputs that all get a label set, with its centre in a box: eq. (5) of Grivas et al. (AAAI 2024).

Largest r such that some x of the box has a distance of at least r from the wrong side of every plane of the set. The
distance is (w . x + b - t) / |w|, so the ball is one of inputs, with or without a bias. Below: a lower bound from one
input that gets the set, and the linear program.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.audit.box import Box
from longtail.audit.planes import Planes, lengths_to_all
from longtail.audit.program import are_close, new_program, require_highspy, smallest
from longtail.estimator import OutputLayer
from longtail.parallel import check_stop

_TURNS = 100  # of the search along a line
_BATCH = 200  # planes added at a time
_TOLERANCE = 1e-10
# The program is scaled to a radius of about 1, because the solver's tolerance is absolute; it fails in wider boxes.
_WIDEST = 1e5
_UNIT = float(np.finfo(np.float64).eps)
_SMALL = 1e-2  # a scaled radius below this is solved for again, scaled by what was found
_MOST_SHARPENED = 1_500  # unknowns of the square system that gives weights to rounding


@dataclass(frozen=True, eq=False)
class Ball:
    """A ball of inputs that get a label set: its centre, in features, its radius, and a bound on any radius."""

    centre: Array
    radius: float
    upper: float

    @property
    def is_largest(self) -> bool:
        return self.radius == self.upper or (self.upper < float("inf") and are_close(self.radius, self.upper))


def balls_at(layer: OutputLayer, members: Array, inputs: Array, box: Box) -> list[Ball]:
    """For each label set, a ball around an input of the box on the line from the centre of the box to a witness.

    Parameters
    ----------
    layer : OutputLayer
    members : bool array of shape (n_sets, n_labels)
    inputs : array of shape (n_sets, n_inputs)
        An input that gets each set, in the box or not.
    box : Box
    """
    with np.errstate(over="ignore", invalid="ignore"):
        scores = np.asarray(inputs @ layer.weights.T) + layer.offsets
    middle = scores_at(layer, box, box.centre)
    if layer.rule == "topk" and layer.n_labels > 1 and (np.count_nonzero(members, axis=1) == 1).all():
        return _balls_of_classes(layer, members.argmax(axis=1), inputs, scores, middle, box)
    balls = []
    for wanted, witness, reached in zip(members, inputs, scores, strict=True):
        planes = Planes(layer, wanted)
        step = box.to_features(witness) - box.centre
        if not len(planes):
            balls.append(Ball(box.centre, float("inf"), float("inf")))
            continue
        start = planes.distances(middle)
        with np.errstate(over="ignore", invalid="ignore"):
            slopes = planes.distances(reached) - start
        time, radius = 0.0, float(start.min())
        if np.isfinite(slopes).all():
            time, radius = _best_on_line(start, slopes, _time_to_side(step, box.half_widths))
        balls.append(Ball(box.centre + time * step, max(0.0, radius), float("inf")))
    return balls


def _balls_of_classes(
    layer: OutputLayer, classes: Array, inputs: Array, scores: Array, middle: Array, box: Box
) -> list[Ball]:
    """The same for sets of one label in a ranking, which share a product for the lengths of all planes."""
    balls = []
    for label, lengths, witness, reached in zip(classes, lengths_to_all(layer, classes), inputs, scores, strict=True):
        step = box.to_features(witness) - box.centre
        # The label itself, and those with the same weights, have no plane.
        lengths[lengths == 0] = np.nan
        with np.errstate(over="ignore", invalid="ignore"):
            start = (middle[label] - middle) / lengths
            slopes = (reached[label] - reached) / lengths - start
        none = np.isnan(lengths)
        start[none], slopes[none] = np.inf, 0.0
        time, radius = 0.0, float(start.min())
        if np.isfinite(slopes).all() and not none.all():
            time, radius = _best_on_line(start, slopes, _time_to_side(step, box.half_widths))
        upper = float("inf")
        balls.append(Ball(box.centre + time * step, max(0.0, radius), upper))
    return balls


def scores_at(layer: OutputLayer, box: Box, features: Array) -> Array:
    return np.asarray(layer.weights @ box.to_inputs(features)) + layer.offsets


def _time_to_side(step: Array, half_widths: Array) -> float:
    """The largest t with |t step| <= half_widths."""
    moving = step != 0
    return float((half_widths[moving] / np.abs(step[moving])).min()) if moving.any() else 0.0


def _best_on_line(start: Array, slopes: Array, end: float) -> tuple[float, float]:
    """The t from 0 to `end` where the smallest of ``start + t * slopes`` is largest, and that value."""

    def lowest(time: float) -> tuple[int, float]:
        values = start + time * slopes
        place = int(values.argmin())
        return place, float(values[place])

    left, value = lowest(0.0)
    if slopes[left] <= 0:
        return 0.0, value
    right, value = lowest(end)
    if slopes[right] >= 0:
        return end, value
    best = 0.0, float(start.min())
    for _ in range(_TURNS):
        time = float((start[right] - start[left]) / (slopes[left] - slopes[right]))
        place, value = lowest(time)
        best = max(best, (time, value), key=lambda each: each[1])
        if value >= start[left] + time * slopes[left] or place in (left, right):
            break
        left, right = (place, right) if slopes[place] > 0 else (left, place)
    return best


def largest_ball(layer: OutputLayer, members: Array, box: Box, known: Ball) -> Ball:
    """The ball of the linear program, or the known one if the solver returns nothing better that can be checked."""
    planes = Planes(layer, members)
    if not len(planes):
        return known
    width = float(box.half_widths.max()) or 1.0
    scale = min(1 / known.radius, _WIDEST / width) if known.radius > 0 else 1 / width
    found = _Program(layer, planes, box, scale).solve(known)
    if 0 < found.radius * scale < _SMALL and scale * width < _WIDEST:
        found = _Program(layer, planes, box, min(1 / found.radius, _WIDEST / width)).solve(found)
    return found


class _Program:
    """The linear program of one label set, in features from the centre of the box, times `scale`."""

    def __init__(self, layer: OutputLayer, planes: Planes, box: Box, scale: float) -> None:
        self._layer, self._planes, self._box, self._scale = layer, planes, box, scale
        self._start = planes.distances(scores_at(layer, box, box.centre))
        self._sides = box.half_widths * scale
        self._program = new_program(np.append(-self._sides, -np.inf), np.append(self._sides, np.inf))
        self._program.changeColCost(box.n_features, -1.0)

    def solve(self, known: Ball) -> Ball:
        """Solve on a few planes, add those nearest to the solution or behind it, and continue from there."""
        best = known
        taken = np.zeros(len(self._planes), dtype=bool)
        order: list[Array] = []
        rows: list[Array] = []
        fresh = smallest(self._at(known.centre), max(_BATCH, min(2 * self._box.n_features, 5 * _BATCH)))
        while len(fresh):
            check_stop()
            taken[fresh] = True
            order.append(fresh)
            rows.append(self._rows(fresh))
            self._add(rows[-1], self._start[fresh] * self._scale)
            self._program.run()
            found = self._program.getSolution()
            values, duals = np.array(found.col_value), np.abs(np.array(found.row_dual))
            if len(values) != self._box.n_features + 1 or not np.isfinite(values).all():
                break
            point = np.clip(values[:-1], -self._sides, self._sides)
            centre = self._box.centre + point / self._scale
            distances = self._at(centre)
            radius = max(0.0, float(distances.min()))
            bound = self._upper(point, np.concatenate(order), np.concatenate(rows), duals)
            # The bound is a sum over the sides of the box, right to rounding only.
            upper = max(radius, min(best.upper, bound - _UNIT * float(self._box.half_widths.sum())))
            best = Ball(centre, radius, upper) if radius >= best.radius else Ball(best.centre, best.radius, upper)
            if best.upper <= 0 or best.upper - best.radius <= 1e-9 * best.upper:
                break
            behind = distances * self._scale - values[-1]
            behind[taken] = np.inf
            fresh = smallest(behind, _BATCH)
            fresh = fresh[behind[fresh] < -_TOLERANCE]
        return best

    def _at(self, features: Array) -> Array:
        return self._planes.distances(scores_at(self._layer, self._box, features))

    def _rows(self, chosen: Array) -> Array:
        return self._box.to_features(self._planes.rows(chosen))

    def _add(self, rows: Array, start: Array) -> None:
        entries = sparse.csr_array(np.concatenate([rows, np.full((len(rows), 1), -1.0)], axis=1))
        infinite = np.full(len(rows), require_highspy().kHighsInf)
        pointers, indices = entries.indptr[:-1].astype(np.int32), entries.indices.astype(np.int32)
        self._program.addRows(len(rows), -start, infinite, entries.nnz, pointers, indices, entries.data)

    def _upper(self, point: Array, used: Array, rows: Array, duals: Array) -> float:
        """What a mixture of the planes proves: no point of the box is farther than this from all of them."""
        binding = np.flatnonzero(duals > 0)
        if not len(binding):
            return float("inf")
        bounds = [self._bound(used[binding], rows[binding], duals[binding])]
        # The solver's weights are right to its tolerance. At a vertex they solve a square system, which gives them to
        # rounding: the rows cancel in the coordinates off the sides of the box, and one row more than these is binding.
        away = np.flatnonzero(np.abs(point) < self._sides * (1 - 1e-9))
        if len(away) < len(binding) and len(away) <= _MOST_SHARPENED:
            heaviest = binding[np.sort(np.argsort(-duals[binding], kind="stable")[: len(away) + 1])]
            system = np.vstack([rows[np.ix_(heaviest, away)].T, np.ones(len(heaviest))])
            sharper = np.linalg.lstsq(system, np.append(np.zeros(len(away)), 1.0), rcond=None)[0]
            sharper = np.maximum(sharper, 0.0)
            if sharper.any():
                bounds.append(self._bound(used[heaviest], rows[heaviest], sharper))
        return min(bounds)

    def _bound(self, used: Array, rows: Array, weights: Array) -> float:
        weights = weights / weights.sum()
        return float(weights @ self._start[used] + np.abs(weights @ rows) @ self._box.half_widths)
