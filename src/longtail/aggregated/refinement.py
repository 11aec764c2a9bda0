"""Trained models place labels (strategy iterate) and are judged on held-out groups (strategy auto).

A model that places the labels of its own training rows only confirms itself. So the groups are divided into parts, and
the labels of each part are placed by a model that was trained on the other parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from longtail import progress
from longtail.aggregated.aggregation import Aggregation
from longtail.aggregated.assignment import Assignment, place_labels
from longtail.arrays import Array

_CANDIDATES = 100  # labels that a model ranks for each row
_MOST_PREDICTED = 100  # labels that a model may predict for a row of a held-out group


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
        The labels that the first models are trained on.
    similarities : float64 array
        Similarities of members to label vectors, flat. They decide where the model ranks a label for no member.
    train : callable
        Fits a new estimator to rows and their labels.
    rule, rounds, folds, seed
        As in `AggregatedClassifier`.
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
    """Masks of groups: each part and all others, or the part itself where there is no other."""
    owners = generator.permutation(n_groups) % folds
    for fold in range(folds):
        part = owners == fold
        if part.any():
            yield part, ~part if not part.all() else part


def member_scores(model: Any, X: Any, aggregation: Aggregation, pairs: Array, similarities: Array) -> Array:
    """The model's scores for the members of some pairs (a mask), flat.

    The model ranks the best labels of each row. Labels beyond these get lower scores, in the order of `similarities`.
    """
    members = aggregation.members(slice(None))[np.repeat(pairs, aggregation.pair_sizes)]
    labels = np.repeat(aggregation.pair_labels[pairs], aggregation.pair_sizes[pairs])
    rows, places = np.unique(members, return_inverse=True)
    top, values = model.predict_topk(X[rows], min(_CANDIDATES, aggregation.n_labels))
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


def explained(model: Any, X: Any, held_out: Aggregation) -> float:
    """How much of the labels of held-out groups a model explains, from 0 to 1: an F1 score, averaged over groups.

    Each member predicts as many labels as members have on average. Where a group counts its labels, the predictions
    of its members should have the same counts. Otherwise each prediction should be one of the group's labels, and
    together they should cover these.
    """
    sizes = np.diff(held_out.group_indptr)
    slots = np.bincount(held_out.label_groups, weights=held_out.counts, minlength=held_out.n_groups)
    judged = np.flatnonzero((sizes > 0) & (slots > 0))
    if not len(judged):
        return 0.0
    each = np.clip(np.round(slots / np.maximum(1, sizes)), 1, _MOST_PREDICTED).astype(np.int64)
    rows, places = np.unique(held_out.group_rows, return_inverse=True)
    top, _ = model.predict_topk(X[rows], int(min(each.max(), held_out.n_labels)))
    groups = np.repeat(np.arange(held_out.n_groups), sizes)
    predicted = top[places]
    wanted = (np.arange(predicted.shape[1]) < each[groups][:, None]) & (predicted >= 0)
    counts = sparse.coo_array(
        (np.ones(int(wanted.sum())), (np.repeat(groups, wanted.sum(axis=1)), predicted[wanted])),
        shape=(held_out.n_groups, held_out.n_labels),
    ).tocsr()
    truth = sparse.csc_array(
        (held_out.counts.astype(np.float64), held_out.label_groups, held_out.label_indptr), shape=counts.shape
    ).tocsr()
    total = np.maximum(1, counts.sum(axis=1))[judged]
    if (held_out.counts > 1).any():
        shared = counts.minimum(truth).sum(axis=1)[judged]
        return float(np.mean(2 * shared / (total + slots[judged])))
    hits = counts.multiply(truth).sum(axis=1)[judged]
    covered = (counts.minimum(truth)).sum(axis=1)[judged]
    precision, recall = hits / total, covered / slots[judged]
    return float(np.mean(2 * precision * recall / np.maximum(precision + recall, 1e-12)))
