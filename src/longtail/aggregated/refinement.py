"""Placing labels by what a trained model thinks, in turn with training: what EAGLE starts, iteration refines.

A model that placed labels by its own training rows would confirm itself. So groups are divided into parts, and the
labels of each part are placed by a model trained on the others. A row in groups of both brings all its labels along.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from longtail import progress
from longtail.aggregated.aggregation import Aggregation
from longtail.aggregated.assignment import Assignment, place_labels
from longtail.arrays import Array

CANDIDATES = 100  # best labels of a row that a model is asked for


def refine(
    X: Any,
    aggregation: Aggregation,
    start: Assignment,
    similarities: Array,
    train: Callable[[Any, Any], Any],
    rule: str,
    rounds: int,
    folds: int,
    seed: int,
) -> Assignment:
    """Alternate training and placing labels.

    Parameters
    ----------
    X : csr_array
    aggregation : Aggregation
    start : Assignment
        What the first models are trained on.
    similarities : float64 array
        To label vectors, flat: they decide where no model sees the label in any member.
    train : callable
        Fits a new estimator to rows and their labels.
    rule, rounds, folds, seed
        How labels are placed; how often; parts of the groups; of the division into parts.
    """
    found = start
    for number in range(rounds):
        scores = np.empty(aggregation.n_members)
        with progress.stage(f"round {number + 1} of {rounds}"):
            for part, others in _parts(aggregation.n_groups, folds, np.random.default_rng([seed, number])):
                elsewhere = aggregation.restricted_to(others)
                rows = np.unique(elsewhere.group_rows)
                rows = rows[np.diff(found.row_labels.indptr)[rows] > 0]
                if not len(rows):
                    rows = np.flatnonzero(np.diff(found.row_labels.indptr))
                model = train(X[rows], found.row_labels[rows])
                pairs = part[aggregation.label_groups]
                here = np.repeat(pairs, aggregation.pair_sizes)
                scores[here] = member_scores(model, X, aggregation, pairs, similarities[here])
        found = place_labels(aggregation, scores, rule)
    return found


def _parts(n_groups: int, folds: int, generator: np.random.Generator) -> Iterator[tuple[Array, Array]]:
    """Masks over groups: each part, and all others; where there is no other, the part itself."""
    owners = generator.permutation(n_groups) % folds
    for fold in range(folds):
        part = owners == fold
        if part.any():
            yield part, ~part if not part.all() else part


def member_scores(model: Any, X: Any, aggregation: Aggregation, pairs: Array, similarities: Array) -> Array:
    """What the model says of the members of some pairs (a mask), flat.

    The model is asked for the best labels of each row; a label not among them is put below all that are, in the order
    of `similarities`.
    """
    members = _members_of(aggregation, pairs)
    labels = np.repeat(aggregation.pair_labels[pairs], aggregation.pair_sizes[pairs])
    rows, places = np.unique(members, return_inverse=True)
    top, values = model.predict_topk(X[rows], min(CANDIDATES, aggregation.n_labels))
    there = top >= 0
    keys = (np.arange(len(rows))[:, None] * aggregation.n_labels + top)[there]
    known = values[there].astype(np.float64)
    order = np.argsort(keys)
    keys, known = keys[order], known[order]
    wanted = places * aggregation.n_labels + labels
    at = np.minimum(np.searchsorted(keys, wanted), max(0, len(keys) - 1))
    found = keys[at] == wanted if len(keys) else np.zeros(len(wanted), dtype=bool)
    largest = float(np.abs(similarities).max(initial=0)) + 1
    lowest = float(known.min(initial=0)) - 2 * largest
    scores = lowest + similarities
    scores[found] = known[at[found]]
    return scores


def _members_of(aggregation: Aggregation, pairs: Array) -> Array:
    return aggregation.members(slice(None))[np.repeat(pairs, aggregation.pair_sizes)]
