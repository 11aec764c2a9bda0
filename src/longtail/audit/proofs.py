"""The proofs behind verdicts, checked from the weights alone: nothing here knows how they were found.

In float64 a sign counts only where it exceeds the bound on rounding; on request, signs and certificates are decided in
exact arithmetic on the weights as the floats they are.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from longtail.arrays import Array
from longtail.audit.system import Layer

# Half the gap between 1 and the next float: the largest relative error of one rounding.
_UNIT = float(np.finfo(np.float64).eps) / 2
# How far rows in special position must be from cancelling in another way.
_PLAIN = 1e-8
# The largest error of a product too small for a float.
_SMALLEST = float(np.finfo(np.float64).smallest_subnormal)


def scores_and_errors(layer: Layer, inputs: Array) -> tuple[Array, Array]:
    """Scores of inputs (n_inputs, n_labels) and a bound on their rounding errors; not finite where they overflow."""
    with np.errstate(invalid="ignore", over="ignore"):
        scores = inputs @ layer.W.T + layer.offsets
        reach = np.sqrt(np.square(inputs).sum(axis=1) + layer.has_offsets)
        return scores, (layer.n_features + 6) * (_UNIT * np.outer(reach, layer.lengths) + _SMALLEST)


def check_witnesses(layer: Layer, members: Array, inputs: Array) -> Array:
    """Whether input i surely gives label set i (rows of a boolean matrix), beyond what rounding may do."""
    scores, errors = scores_and_errors(layer, inputs)
    if layer.semantics == "topk":
        lowest = np.where(members, scores - errors, np.inf).min(axis=1)
        highest = np.where(members, -np.inf, scores + errors).max(axis=1)
        right = lowest > highest
    else:
        right = np.where(members, scores > errors, (scores < -errors) | layer.empty).all(axis=1)
    return right & np.isfinite(scores).all(axis=1) & np.isfinite(errors).all(axis=1)


def check_witness_exactly(layer: Layer, members: Array, x: Array) -> bool:
    """Whether input `x` gives the label set, in exact arithmetic.

    Rows whose sign is beyond the bound on rounding errors need no exact sum: the bound is a proof.
    """
    if not np.isfinite(x).all():
        return False
    scores, errors = (values[0] for values in scores_and_errors(layer, x[None, :]))
    if not (np.isfinite(scores).all() and np.isfinite(errors).all()):
        unsure = np.arange(layer.n_labels)
    elif layer.semantics == "topk":
        if members.all() or not members.any():
            return True
        lowest = (scores - errors)[members].min()
        highest = (scores + errors)[~members].max()
        unsure = np.flatnonzero(np.where(members, scores - errors <= highest, scores + errors >= lowest))
    else:
        unsure = np.flatnonzero(np.where(members, scores <= errors, (scores >= -errors) & ~layer.empty))
    point = [Fraction(value) for value in x.tolist()]
    exact = {int(label): _exact_score(layer, int(label), point) for label in unsure}
    if layer.semantics == "topk":
        inside = [score for label, score in exact.items() if members[label]]
        outside = [score for label, score in exact.items() if not members[label]]
        return not inside or not outside or min(inside) > max(outside)
    return all(score > 0 if members[label] else score < 0 for label, score in exact.items())


def certificate_residual(layer: Layer, members: Array, labels: Array, weights: Array) -> float:
    """What the weighted, signed unit rows leave uncancelled: no input has a radius above it.

    The coordinate of the bias need not cancel: a sum of at most 0 there contradicts the rows as well. Infinity where
    the weights are no certificate at all.
    """
    if len(labels) == 0 or len(labels) != len(weights) or not np.isfinite(weights).all() or (weights < 0).any():
        return float("inf")
    if (labels < 0).any() or (labels >= layer.n_labels).any() or len(np.unique(labels)) != len(labels):
        return float("inf")
    total = float(weights.sum())
    if not total > 0:
        return float("inf")
    if layer.empty[labels].any():
        # A score that is always 0 rules out exactly the sets that hold its label.
        return 0.0 if layer.semantics == "sign" and members[labels[layer.empty[labels]]].any() else float("inf")
    places = np.searchsorted(layer.labels[: len(layer.labels) - layer.has_offsets], labels)
    signs = np.where(members[labels], 1.0, -1.0)
    left = (weights / total * signs) @ layer.rows[places]
    if layer.has_offsets:
        left[layer.n_features] = max(0.0, left[layer.n_features])
    return float(np.abs(left).sum())


def certificate_is_sure(layer: Layer, members: Array, labels: Array, weights: Array) -> bool:
    """Whether rounding cannot be what makes the rows cancel, in float64.

    The weights solve a linear system in which the rows cancel and the weights sum to 1. With one row more than there
    are dimensions it is square, and its exact solution is at most the residual over the smallest singular value away:
    positive as well, where no weight is as small as that. Fewer rows cancel only in special position, such as equal or
    opposite rows, or a layer of lower rank than its width; they must do so to rounding, and be far from cancelling in
    any other way. A set whose radius is positive but beyond float64 fails: its rows nearly depend on each other.
    """
    if certificate_residual(layer, members, labels, weights) == float("inf"):
        return False
    if layer.empty[labels].any():
        return True
    places = np.searchsorted(layer.labels[: len(layer.labels) - layer.has_offsets], labels)
    signed = np.where(members[labels], 1.0, -1.0)[:, None] * layer.rows[places]
    weights = weights / weights.sum()
    if _is_sure(signed, weights):
        return True
    left = float(weights @ signed[:, layer.n_features]) if layer.has_offsets else 0.0
    # What the offsets leave, if below 0, is the weight of the row of the bias.
    return left < 0 and _is_sure(np.vstack([signed, layer.rows[-1]]), np.append(weights, -left) / (1 - left))


def _is_sure(signed: Array, weights: Array) -> bool:
    system = np.column_stack([signed, np.ones(len(signed))])
    if len(weights) > system.shape[1]:
        return False
    residual = weights @ system
    residual[-1] -= 1
    rounding = 2 * (len(weights) + 2) * _UNIT
    error = float(np.linalg.norm(residual)) + rounding
    slack = float(np.linalg.svd(system, compute_uv=False)[-1]) * float(weights.min())
    if len(weights) == system.shape[1]:
        return 10 * error < slack
    return error < 4 * rounding and slack > _PLAIN


def certificate_exactly(layer: Layer, members: Array, labels: Array, weights: Array) -> list[Fraction] | None:
    """Exact non-negative weights of the same labels whose signed rows cancel, or None where there are none.

    Solves the small system on the labels of the certificate by elimination without fractions (Bareiss); where its
    solutions are more than one line, the free weights are those given.
    """
    if certificate_residual(layer, members, labels, weights) == float("inf"):
        return None
    weighing = [int(label) for label in labels]
    if layer.empty[labels].any():
        return [Fraction(int(layer.empty[label] and members[label])) for label in weighing]
    rows = [_exact_row(layer, label, bool(members[label])) for label in weighing]
    # Weights are for rows of length 1, and these rows are as long as they are.
    given = [
        Fraction(weight) / Fraction(length)
        for weight, length in zip(weights.tolist(), layer.lengths[labels].tolist(), strict=True)
    ]
    if layer.has_offsets:
        # The row of the bias takes up whatever the offsets leave, if that is not above 0.
        place = layer.n_features
        rows.append([Fraction(int(column == place)) for column in range(len(rows[0]))])
        left = sum((weight * row[place] for weight, row in zip(given, rows, strict=False)), Fraction(0))
        given.append(max(Fraction(0), -left))
    solution = _solve_null(rows, given)
    if solution is None or min(solution) < 0:
        return None
    solution = solution[: len(weighing)]
    return solution if any(solution) else None


def _exact_offset(layer: Layer, label: int) -> Fraction:
    bias = Fraction(0) if layer.bias is None else Fraction(float(layer.bias[label]))
    return bias if layer.threshold is None else bias - Fraction(float(layer.threshold[label]))


def _exact_score(layer: Layer, label: int, point: list[Fraction]) -> Fraction:
    products = (Fraction(weight) * value for weight, value in zip(layer.W[label].tolist(), point, strict=True))
    return sum(products, _exact_offset(layer, label))


def _exact_row(layer: Layer, label: int, wanted: bool) -> list[Fraction]:
    row = [Fraction(weight) for weight in layer.W[label].tolist()]
    if layer.has_offsets:
        row.append(_exact_offset(layer, label))
    if layer.semantics == "topk":
        row.append(Fraction(-1))
    return row if wanted else [-value for value in row]


def _solve_null(rows: list[list[Fraction]], given: list[Fraction]) -> list[Fraction] | None:
    """Weights that make the rows cancel: free ones as given, the others by elimination; None for only zeros."""
    width = len(rows)
    equations = []
    for column in zip(*rows, strict=True):
        scale = math.lcm(*(value.denominator for value in column))
        equations.append([int(value * scale) for value in column])
    pivots: list[int] = []
    previous = 1
    for place in range(width):
        top = len(pivots)
        found = next((index for index in range(top, len(equations)) if equations[index][place]), None)
        if found is None:
            continue
        equations[top], equations[found] = equations[found], equations[top]
        head = equations[top]
        pivot = head[place]
        for line in equations[top + 1 :]:
            factor = line[place]
            # The division leaves no remainder: every entry is a minor of the system.
            line[place + 1 :] = [
                (pivot * value - factor * above) // previous
                for value, above in zip(line[place + 1 :], head[place + 1 :], strict=True)
            ]
            line[place] = 0
        previous = pivot
        pivots.append(place)
        if len(pivots) == len(equations):
            break
    free = sorted(set(range(width)) - set(pivots))
    if not free:
        return None
    solution = list(given)
    if all(solution[place] == 0 for place in free):
        for place in free:
            solution[place] = Fraction(1)
    for line, place in zip(reversed(equations[: len(pivots)]), reversed(pivots), strict=True):
        later = (line[other] * solution[other] for other in range(place + 1, width))
        solution[place] = -sum(later, Fraction(0)) / line[place]
    return solution
