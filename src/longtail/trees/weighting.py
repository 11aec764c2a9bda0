"""`Weighting`: weights of rows and relevance of labels in the training of trees.

The kernel has a cost for each positive pair of row and sibling, and one cost for all negative pairs. A weighted row is
therefore visited twice: as it is, for the siblings it belongs to, and negated, for all others. A negated row that
should score high is a row that should score low, so every pair has a cost of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from longtail.arrays import Array
from longtail.native import block_widths, kernels
from longtail.trees.examples import Block, Examples, values_at
from longtail.trees.objective import Objective
from longtail.trees.weights import TrainedBlock
from longtail.work import Piece, Results, Rows

VISITS = 2  # of each weighted row
_NO_COST = 1e-30  # as for the lanes of the kernel beyond the last sibling


@dataclass(frozen=True)
class Weighting:
    """What rows and pairs of row and label count.

    Parameters
    ----------
    rows : float32 array of n_rows or None
        The weights of the rows; None if all are 1.
    relevance : Rows or None
        The label matrix; None if it holds only ones.
    """

    rows: Array | None
    relevance: Rows | None

    @classmethod
    def of(cls, rows: Array | None, relevance: Rows | None) -> Self | None:
        """The weighting, or None if everything counts the same."""
        return None if rows is None and relevance is None else cls(rows, relevance)

    def of_members(self, members: Results) -> Results:
        """What the rows of each label count, in the order of `members`."""
        pieces: list[Piece] = []
        for (start, _), piece in zip(members.ranges, members, strict=True):
            rows, factors = piece["indices"], np.ones(len(piece["indices"]), dtype=np.float32)
            if self.rows is not None:
                factors *= self.rows[rows]
            if self.relevance is not None:
                labels = start + np.repeat(np.arange(len(piece["indptr"]) - 1), np.diff(piece["indptr"]))
                factors *= values_at(self.relevance, rows, labels)
            pieces.append({"indptr": piece["indptr"], "indices": factors})
        return Results(members.ranges, pieces)


def train_weighted(
    X: Rows, examples: Examples, row_weights: Array, block: Block, objective: Objective, duals: Array | None
) -> tuple[TrainedBlock, float, int]:
    """Train one block with weights of rows; the result is that of `longtail.trees.training.train_block`.

    `duals` has two rows for each row: of the row, and of the negated row.
    """
    local = _doubled(X, examples.rows)
    n_visits = len(local)
    weights = row_weights[examples.rows]
    parts, intercepts, gap, sweeps, first, lanes = [], [], 0.0, 0, 0, 0
    for width in block_widths(block.n_children):
        own = min(width, block.n_children - first)
        pairs = _pairs(examples, weights, objective.cost, first, own)
        mine = np.zeros(n_visits * width, dtype=np.float32)
        if duals is not None:
            mine = duals[n_visits * lanes : n_visits * (lanes + width)]
        features, pointers, siblings, kept, _, own_gap, own_sweeps = kernels.train_siblings(
            *local,
            np.arange(n_visits),
            *pairs,
            _NO_COST,
            own,
            0.0,  # the constant is a feature, since it is negated with its row
            objective.loss == "logistic",
            objective.tolerance,
            objective.max_sweeps,
            objective.seed_of(block),
            objective.smallest,
            objective.top + (objective.top > 0),  # the constant may be among them
            mine,
        )
        owners = np.repeat(features, np.diff(pointers))
        real = owners < X.n_columns
        parts.append((owners[real], siblings[real].astype(np.int64) + first, kept[real]))
        # Like every weight, that of the constant is the sum of its values times the dual variables.
        table = mine.reshape(-1, 2, width)
        intercepts.append((table[:, 0] - table[:, 1]).sum(axis=0, dtype=np.float64)[:own])
        gap, sweeps = max(gap, own_gap), max(sweeps, own_sweeps)
        first, lanes = first + own, lanes + width
    return _joined(parts, np.concatenate(intercepts), objective.top), float(gap), int(sweeps)


def _doubled(X: Rows, rows: Array) -> Rows:
    """Each of the rows and its negation, one after the other, with a constant feature at the end of each."""
    lengths = np.repeat(X.indptr[rows + 1] - X.indptr[rows] + 1, VISITS)
    ends = np.cumsum(lengths)
    starts = ends - lengths
    source = np.repeat(np.repeat(X.indptr[rows], VISITS) - starts, lengths) + np.arange(ends[-1] if len(ends) else 0)
    last = ends - 1
    source[last] = 0
    signs = np.tile(np.array([1, -1], dtype=np.float32), len(rows))
    if len(X.indices):
        indices, data = X.indices[source], X.data[source]
    else:
        indices, data = np.zeros(len(source), np.int32), np.zeros(len(source), np.float32)
    indices[last], data[last] = X.n_columns, 1
    data *= np.repeat(signs, lengths)
    return Rows(np.concatenate([[0], ends]), indices, data, X.n_columns + 1)


def _pairs(examples: Examples, weights: Array, cost: float, first: int, own: int) -> tuple[Array, Array, Array]:
    """Pointers, siblings and costs of the pairs of each visit: of a row its siblings, of its negation the others."""
    n_rows = len(examples.rows)
    owners = np.repeat(np.arange(n_rows), np.diff(examples.pointers))
    slots = examples.slots - first
    here = (slots >= 0) & (slots < own)
    owners, slots = owners[here], slots[here]
    is_other = np.ones((n_rows, own), dtype=bool)
    is_other[owners, slots] = False
    lengths = np.empty(VISITS * n_rows, dtype=np.int64)
    lengths[0::2], lengths[1::2] = np.bincount(owners, minlength=n_rows), is_other.sum(axis=1)
    pointers = np.concatenate([[0], np.cumsum(lengths)])
    negated = np.repeat(np.arange(VISITS * n_rows) % VISITS == 1, lengths)
    siblings, costs = np.empty(len(negated), dtype=np.int32), np.empty(len(negated), dtype=np.float32)
    siblings[~negated], costs[~negated] = slots, examples.costs[here] * weights[owners]
    siblings[negated] = np.broadcast_to(np.arange(own, dtype=np.int32), is_other.shape)[is_other]
    costs[negated] = np.repeat(np.float32(cost) * weights, lengths[1::2])
    return pointers, siblings, costs


def _joined(parts: list[tuple[Array, Array, Array]], intercepts: Array, top: int) -> TrainedBlock:
    """One block from the weights of several groups of siblings: at most `top` of each sibling, unless it is 0."""
    features, siblings, weights = (np.concatenate([part[place] for part in parts]) for place in range(3))
    if top:
        order = np.lexsort((-np.abs(weights), siblings))
        firsts = np.searchsorted(siblings[order], siblings[order])
        kept = order[np.arange(len(order)) - firsts < top]
        features, siblings, weights = features[kept], siblings[kept], weights[kept]
    order = np.lexsort((siblings, features))
    distinct, starts = np.unique(features[order], return_index=True)
    return TrainedBlock(
        distinct.astype(np.int32),
        np.append(starts, len(order)).astype(np.int64),
        siblings[order].astype(np.uint8),
        weights[order].astype(np.float32),
        intercepts.astype(np.float32),
    )
