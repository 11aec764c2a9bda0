"""Check the proofs behind verdicts from the weights alone: nothing here knows how they were found.

In float64, a sign counts only if it exceeds the bound on rounding errors. On request, signs and certificates are
decided in exact arithmetic on the stored floats.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.audit.exact import eliminate, whole_numbers
from longtail.audit.system import unit_rows
from longtail.estimator import OutputLayer

# Half the gap between 1 and the next float: the largest relative error of one rounding.
UNIT = float(np.finfo(np.float64).eps) / 2
# How far rows in special position must be from cancelling in another way.
_PLAIN = 1e-8
# The largest error of a product too small for a float.
_SMALLEST = float(np.finfo(np.float64).smallest_subnormal)


def scores_and_errors(layer: OutputLayer, inputs: Array) -> tuple[Array, Array]:
    """Scores of inputs (n_inputs, n_labels) and a bound on their rounding errors; not finite where they overflow."""
    with np.errstate(invalid="ignore", over="ignore"):
        scores = np.asarray(inputs @ layer.weights.T) + layer.offsets
        reach = np.sqrt(np.square(inputs).sum(axis=1))
        largest = np.outer(reach, layer.lengths) + np.abs(layer.offsets)
        return scores, (layer.n_inputs + 6) * (UNIT * largest + _SMALLEST)


def check_witnesses(layer: OutputLayer, members: Array, inputs: Array) -> Array:
    """Whether input i gets label set i (rows of a boolean matrix), whatever the rounding errors."""
    scores, errors = scores_and_errors(layer, inputs)
    if layer.rule == "topk":
        lowest = np.where(members, scores - errors, np.inf).min(axis=1)
        highest = np.where(members, -np.inf, scores + errors).max(axis=1)
        right = lowest > highest
    else:
        right = (np.where(members, scores > errors, scores < -errors) | _right_at_zero(layer, members)).all(axis=1)
    return right & np.isfinite(scores).all(axis=1) & np.isfinite(errors).all(axis=1)


def _right_at_zero(layer: OutputLayer, members: Array) -> Array:
    """Which labels have a score of 0 for every input, and are given or not as the set needs."""
    return np.asarray(layer.empty & (members == bool(layer.at_least)))


def check_witness_exactly(layer: OutputLayer, members: Array, x: Array) -> bool:
    """Whether input `x` gets the label set, in exact arithmetic and with ties decided by the layer's rule.

    Labels whose sign is beyond the bound on rounding errors need no exact sum: the bound is a proof.
    """
    if not np.isfinite(x).all():
        return False
    scores, errors = (values[0] for values in scores_and_errors(layer, x[None, :]))
    ranked = layer.rule == "topk"
    if not (np.isfinite(scores).all() and np.isfinite(errors).all()):
        unsure = np.arange(layer.n_labels)
    elif ranked:
        if members.all() or not members.any():
            return True
        lowest = (scores - errors)[members].min()
        highest = (scores + errors)[~members].max()
        unsure = np.flatnonzero(np.where(members, scores - errors <= highest, scores + errors >= lowest))
    else:
        sure = np.where(members, scores > errors, scores < -errors) | _right_at_zero(layer, members)
        unsure = np.flatnonzero(~sure)
    exact = {int(label): _exact_score(layer, int(label), x) for label in unsure}
    if not ranked:
        return all(_is_right(score, bool(members[label]), layer.at_least) for label, score in exact.items())
    # Ties go to the lowest label; without a rule for ties they go to none.
    order = {label: (score, 0 if layer.at_least is None else -label) for label, score in exact.items()}
    inside = [place for label, place in order.items() if members[label]]
    outside = [place for label, place in order.items() if not members[label]]
    return not inside or not outside or min(inside) > max(outside)


def _is_right(score: Fraction, wanted: bool, at_least: bool | None) -> bool:
    if score == 0:
        return at_least is not None and wanted == at_least
    return (score > 0) == wanted


def certificate_residual(layer: OutputLayer, members: Array, labels: Array, weights: Array) -> float:
    """What the weighted, signed unit rows leave uncancelled: no input has a larger radius.

    The coordinate of the offsets need not cancel: a sum of at most 0 there contradicts the rows as well. Infinity if
    the weights are no certificate at all.
    """
    if len(labels) == 0 or len(labels) != len(weights) or not np.isfinite(weights).all() or (weights < 0).any():
        return float("inf")
    if (labels < 0).any() or (labels >= layer.n_labels).any() or len(np.unique(labels)) != len(labels):
        return float("inf")
    total = float(weights.sum())
    if not total > 0:
        return float("inf")
    if _has_empty(layer, labels):
        # A score that is always 0 rules out exactly the sets that need another sign.
        return 0.0 if _contradicts_zero(layer, members, labels).any() else float("inf")
    left = (weights / total) @ _signed_rows(layer, members, labels)
    if layer.has_offsets:
        left[-1] = max(0.0, left[-1])
    return float(np.abs(left).sum())


def _has_empty(layer: OutputLayer, labels: Array) -> bool:
    return layer.rule == "predict" and bool(layer.empty[labels].any())


def _contradicts_zero(layer: OutputLayer, members: Array, labels: Array) -> Array:
    return np.asarray(layer.empty[labels] & (members[labels] != bool(layer.at_least)))


def _signed_rows(layer: OutputLayer, members: Array, labels: Array) -> Array:
    return np.where(members[labels], 1.0, -1.0)[:, None] * unit_rows(layer, labels)[0]


def certificate_is_sure(layer: OutputLayer, members: Array, labels: Array, weights: Array) -> bool:
    """Whether the rows cancel, and not only because of rounding, in float64.

    The weights solve a linear system: the rows cancel and the weights sum to 1. With one row more than there are
    dimensions the system is square, and its exact solution is at most the residual over the smallest singular value
    away. It is positive too if no weight is as small as that. Fewer rows cancel only in special position, such as equal
    or opposite rows, or in a layer of lower rank than its width. They must cancel to rounding, and be far from
    cancelling in any other way. A set whose radius is positive but below the resolution of float64 fails: its rows
    nearly depend on each other.
    """
    if certificate_residual(layer, members, labels, weights) == float("inf"):
        return False
    if _has_empty(layer, labels):
        return True
    signed = _signed_rows(layer, members, labels)
    weights = weights / weights.sum()
    if _is_sure(signed, weights):
        return True
    left = float(weights @ signed[:, -1]) if layer.has_offsets else 0.0
    if left >= 0:
        return False
    # If the sum of the offsets is below 0, minus that sum is the weight of the row of the offsets.
    positive = np.zeros(signed.shape[1])
    positive[-1] = 1
    return _is_sure(np.vstack([signed, positive]), np.append(weights, -left) / (1 - left))


def _is_sure(signed: Array, weights: Array) -> bool:
    system = np.column_stack([signed, np.ones(len(signed))])
    if len(weights) > system.shape[1]:
        return False
    residual = weights @ system
    residual[-1] -= 1
    rounding = 2 * (len(weights) + 2) * UNIT
    error = float(np.linalg.norm(residual)) + rounding
    slack = float(np.linalg.svd(system, compute_uv=False)[-1]) * float(weights.min())
    if len(weights) == system.shape[1]:
        return 10 * error < slack
    return error < 4 * rounding and slack > _PLAIN


def certificate_exactly(layer: OutputLayer, members: Array, labels: Array, weights: Array) -> list[Fraction] | None:
    """Exact non-negative weights of the same labels whose signed rows cancel, or None if there are none.

    Solves the small system on the labels of the certificate by fraction-free elimination (Bareiss). If the system has
    several solutions, the free weights are the given ones.
    """
    if certificate_residual(layer, members, labels, weights) == float("inf"):
        return None
    if _has_empty(layer, labels):
        return [Fraction(int(wrong)) for wrong in _contradicts_zero(layer, members, labels)]
    rows = [_exact_row(layer, label, bool(members[label])) for label in labels.tolist()]
    # The given weights are for rows of length 1.
    lengths = unit_rows(layer, labels)[1]
    given = [
        Fraction(weight) / Fraction(length) for weight, length in zip(weights.tolist(), lengths.tolist(), strict=True)
    ]
    if layer.has_offsets:
        # The row of the offsets makes up for a sum of offsets below 0.
        left = sum((weight * row[-1] for weight, row in zip(given, rows, strict=True)), Fraction(0))
        rows.append([Fraction(0)] * (len(rows[0]) - 1) + [Fraction(1)])
        given.append(max(Fraction(0), -left))
    solution = solve_null(rows, given)
    if solution is None or min(solution) < 0:
        return None
    solution = solution[: len(labels)]
    return solution if any(solution) else None


def _weights_of(layer: OutputLayer, label: int) -> Array:
    row = layer.weights[[label]]
    return np.asarray(row.toarray() if sparse.issparse(row) else row)[0]


def _exact_score(layer: OutputLayer, label: int, x: Array) -> Fraction:
    weights = _weights_of(layer, label)
    used = np.flatnonzero((weights != 0) & (x != 0))
    pairs = zip(weights[used].tolist(), x[used].tolist(), strict=True)
    return sum((Fraction(weight) * Fraction(value) for weight, value in pairs), Fraction(float(layer.offsets[label])))


def _exact_row(layer: OutputLayer, label: int, wanted: bool) -> list[Fraction]:
    row = [Fraction(weight) for weight in _weights_of(layer, label).tolist()]
    if layer.rule == "topk":
        row.append(Fraction(-1))
    if layer.has_offsets:
        row.append(Fraction(float(layer.offsets[label])))
    return row if wanted else [-value for value in row]


def solve_null(rows: list[list[Fraction]], given: list[Fraction]) -> list[Fraction] | None:
    """Weights that make the rows cancel: free weights as given, the others by elimination; None if only zeros do."""
    width = len(rows)
    equations = [whole_numbers(column) for column in zip(*rows, strict=True)]
    pivots, _ = eliminate(equations)
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
