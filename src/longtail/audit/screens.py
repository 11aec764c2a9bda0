"""Cheap witnesses for many label sets at once: points given or drawn, then a perceptron, all by matrix products."""

from __future__ import annotations

import math

import numpy as np

from longtail.audit.layer import Array, Layer

_BLOCK = 512


def match_inputs(layer: Layer, members: Array, inputs: Array) -> Array:
    """For each label set (a row of `members`) the first input that seems to give it, or -1.

    Two sign vectors agree everywhere exactly when their product is their length, so one matrix product compares every
    set with every input.
    """
    match = np.full(len(members), -1, dtype=np.intp)
    signs = np.where(members, np.float32(1), np.float32(-1))
    sizes = members.sum(axis=1)
    for begin in range(0, len(inputs), _BLOCK):
        scores = inputs[begin : begin + _BLOCK] @ layer.W.T + layer.offsets
        if layer.semantics == "sign":
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


def has_few_regions(layer: Layer, at_most: int = 100_000) -> bool:
    """Whether the rows cut space into so few regions that drawing inputs meets a fair share of them (Cover, 1965)."""
    n_rows, width = layer.rows.shape
    total = 0
    for dimension in range(min(width, n_rows)):
        total += 2 * math.comb(n_rows - 1, dimension)
        if total > at_most:
            return False
    return True


def sample_inputs(layer: Layer, count: int, rng: np.random.Generator) -> Array:
    """Inputs in every direction alike; with a bias, its coordinate is one of the directions."""
    points = rng.standard_normal((count, layer.rows.shape[1]))
    if layer.has_offsets:
        points[:, layer.n_features] = np.abs(points[:, layer.n_features])
    return layer.to_inputs(points)


def perceptron(rows: Array, signs: Array, rounds: int = 16) -> tuple[Array, Array]:
    """A point for each label set, and whether it is on the right side of every row.

    Begins at the least-squares fit that gives the labels of the set and the others the same weight in all, and moves
    past the plane of the worst row, a little further than needed, in each round (Motzkin and Schoenberg, 1954).
    """
    wanted = signs > 0
    share = np.where(wanted, 1 / np.maximum(1, wanted.sum(axis=1))[:, None], 0.0)
    share -= np.where(wanted, 0.0, 1 / np.maximum(1, (~wanted).sum(axis=1))[:, None])
    gram = rows.T @ rows
    gram[np.diag_indices_from(gram)] += 1e-6 * np.trace(gram) / len(gram)
    points = np.linalg.solve(gram, (share @ rows).T).T
    lengths = np.linalg.norm(points, axis=1)
    points /= np.where(lengths > 0, lengths, 1.0)[:, None]
    right = np.zeros(len(signs), dtype=bool)
    left = np.arange(len(signs))
    for _ in range(rounds):
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
