"""Cheap witnesses for many label sets at once, all by matrix products.

First inputs that are given or drawn, then reflections for single labels that should come first, then a perceptron.
"""

from __future__ import annotations

import math

import numpy as np

from longtail.arrays import Array
from longtail.audit.system import System
from longtail.estimator import OutputLayer

_MOST_INPUTS = 512
_FEW_REGIONS = 100_000
_MOST_REFLECTIONS = 100  # of one class
_ROUNDS = 16  # of the perceptron
_CELLS = 2**23  # scores held at a time: 64 MiB


def match_inputs(layer: OutputLayer, members: Array, inputs: Array) -> Array:
    """For each label set (a row of `members`) the first input that seems to get it, or -1.

    Two sign vectors are equal exactly when their product is their length, so one matrix product compares every set with
    every input.
    """
    match = np.full(len(members), -1, dtype=np.intp)
    signs = np.where(members, np.float32(1), np.float32(-1))
    sizes = members.sum(axis=1)
    at_once = min(_MOST_INPUTS, max(1, _CELLS // layer.n_labels))
    for begin in range(0, len(inputs), at_once):
        if (match >= 0).all():
            break
        scores = inputs[begin : begin + at_once] @ layer.weights.T + layer.offsets
        if layer.rule == "predict":
            _compare(signs, scores > 0, match, np.arange(len(members)), begin)
            continue
        order = np.argsort(-scores, axis=1, kind="stable")
        places = np.empty_like(order)
        np.put_along_axis(places, order, np.arange(order.shape[1])[None, :], axis=1)
        for size in np.unique(sizes[match < 0]):
            _compare(signs, places < size, match, np.flatnonzero(sizes == size), begin)
    return match


def _compare(signs: Array, given: Array, match: Array, which: Array, begin: int) -> None:
    which = which[match[which] < 0]
    sides = np.where(given, np.float32(1), np.float32(-1))
    agree = signs[which] @ sides.T > signs.shape[1] - 0.5
    found = agree.any(axis=1)
    match[which[found]] = begin + agree[found].argmax(axis=1)


def has_few_regions(system: System) -> bool:
    """Whether the rows cut space into few enough regions for random inputs to hit many of them (Cover, 1965)."""
    n_rows, width = system.rows.shape
    total = 0
    for dimension in range(min(width, n_rows)):
        total += 2 * math.comb(n_rows - 1, dimension)
        if total > _FEW_REGIONS:
            return False
    return True


def sample_inputs(system: System, count: int, rng: np.random.Generator) -> Array:
    """Random inputs, equally likely in every direction; the coordinate of the offsets is one of the directions."""
    points = rng.standard_normal((count, system.rows.shape[1]))
    if system.layer.has_offsets:
        points[:, -1] = np.abs(points[:, -1])
    return system.to_inputs(points)


def reflect(layer: OutputLayer, classes: Array) -> tuple[Array, Array]:
    """An input for each class that should have the highest score, and whether the class has it.

    Starts at the class's own weights. While another class wins, reflects the input in the plane where the two have
    equal scores, so that the class is as far above the other as it was below (Grivas et al., ACL 2022).
    """
    # Scores are only compared, so scale them to keep squares of weights in the range of floats.
    largest = float(np.abs(layer.weights).max()) or 1.0
    weights = layer.weights / largest
    inputs = weights[classes]
    wins = np.zeros(len(classes), dtype=bool)
    at_once = max(1, _CELLS // layer.n_labels)
    # Next to a class with nearly the same weights, an input may leave the range of floats; it wins nothing there.
    with np.errstate(over="ignore", invalid="ignore"):
        offsets = layer.offsets / largest
        for begin in range(0, len(classes), at_once):
            left = np.arange(begin, min(begin + at_once, len(classes)))
            for _ in range(_MOST_REFLECTIONS + 1):
                scores = inputs[left] @ weights.T + offsets
                each = np.arange(len(left))
                own = scores[each, classes[left]]
                scores[each, classes[left]] = -np.inf
                best = scores.argmax(axis=1)
                behind = scores[each, best] - own
                wins[left[behind < 0]] = True
                across = weights[classes[left]] - weights[best]
                lengths = np.einsum("ij,ij->i", across, across)
                # Two classes with the same weights have no plane to reflect in.
                losing = (behind >= 0) & (lengths > 0)
                left, steps = left[losing], 2 * behind[losing] / lengths[losing]
                if len(left) == 0:
                    break
                inputs[left] += steps[:, None] * across[losing]
    return inputs, wins


def perceptron(rows: Array, signs: Array, gram: Array | None = None) -> tuple[Array, Array]:
    """A point for each label set, and whether it is on the right side of every row.

    Starts at the least-squares fit in which the labels of the set weigh as much as the others together. Each round
    moves the point across the plane of the worst row, a little further than needed (Motzkin and Schoenberg, 1954).
    `gram` has the products of the columns, if they are known.
    """
    wanted = signs > 0
    share = np.where(wanted, 1 / np.maximum(1, wanted.sum(axis=1))[:, None], 0.0)
    share -= np.where(wanted, 0.0, 1 / np.maximum(1, (~wanted).sum(axis=1))[:, None])
    gram = rows.T @ rows if gram is None else gram.copy()
    gram[np.diag_indices_from(gram)] += 1e-6 * np.trace(gram) / len(gram)
    points = np.linalg.solve(gram, (share @ rows).T).T
    lengths = np.linalg.norm(points, axis=1)
    points /= np.where(lengths > 0, lengths, 1.0)[:, None]
    right = np.zeros(len(signs), dtype=bool)
    left = np.arange(len(signs))
    for _ in range(_ROUNDS):
        margins = points[left] @ rows.T * signs[left]
        worst = margins.argmin(axis=1)
        lowest = margins[np.arange(len(left)), worst]
        right[left[lowest > 0]] = True
        behind = lowest <= 0
        left, worst, lowest = left[behind], worst[behind], lowest[behind]
        if len(left) == 0:
            break
        past = -1.5 * lowest + 1e-3 * np.linalg.norm(points[left], axis=1)
        points[left] += (past * signs[left, worst])[:, None] * rows[worst]
    return points, right
