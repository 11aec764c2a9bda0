"""Thresholds: the score from which a label is given, tuned for F1 on held-out rows.

Everything is computed from candidates: the best labels of each row with their scores, sorted once for all labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail.arrays import Array
from longtail.errors import ModelFormatError
from longtail.store import State

OBJECTIVES = ("f1", "macro_f1")
# Held-out rows that a label needs for a threshold of its own. With fewer, F1 on other rows was lower than with a shared
# threshold. The pooled F1 needs more, because the errors of one label cost all others.
FEWEST_HITS = {"f1": 20, "macro_f1": 8}
DEFAULT = 0.5

_MOST_ROUNDS = 100


@dataclass(frozen=True)
class Candidates:
    """Labels that a model proposes for rows.

    Parameters
    ----------
    labels : int64 array of n candidates
    scores : float32 array of n candidates
    hits : bool array of n candidates
        Whether the row has the label.
    positives : int64 array of n_labels
        Number of rows of each label, proposed or not.
    """

    labels: Array
    scores: Array
    hits: Array
    positives: Array

    @classmethod
    def of(cls, top_labels: Array, top_scores: Array, Y: Any) -> Candidates:
        """From the result of ``predict_topk`` and the truth; a score of 0 is not a proposal."""
        there = (top_labels >= 0) & (top_scores > 0)
        labels = top_labels[there]
        rows = np.broadcast_to(np.arange(len(top_labels))[:, None], top_labels.shape)[there]
        return cls(labels, top_scores[there], is_true(rows, labels, Y), np.bincount(Y.indices, minlength=Y.shape[1]))


def is_true(rows: Array, labels: Array, Y: Any) -> Array:
    """Whether ``Y[rows[i], labels[i]]`` is 1, for a CSR matrix with sorted indices."""
    owners = np.repeat(np.arange(Y.shape[0], dtype=np.int64), np.diff(Y.indptr))
    true = owners * Y.shape[1] + Y.indices
    keys = rows.astype(np.int64) * Y.shape[1] + labels
    if not len(true):
        return np.zeros(len(keys), dtype=bool)
    return np.asarray(true[np.minimum(np.searchsorted(true, keys), len(true) - 1)] == keys)


def tune_thresholds(candidates: Candidates, objective: str, fewest_hits: int | None = None) -> Array:
    """Return one threshold per label, chosen for the best F1 on the candidates.

    Labels with fewer than `fewest_hits` rows share one threshold, because the best cut through a few scores is an
    accident. Every other label has its own.

    Parameters
    ----------
    candidates : Candidates
    objective : {"f1", "macro_f1"}
        "f1" maximises the F1 of all pairs of row and label together (micro-F1). "macro_f1" maximises the F1 of each
        label; for labels that share a threshold, that of all their pairs together.
    fewest_hits : int or None
        None means 20 for "f1" and 8 for "macro_f1".

    Returns
    -------
    float32 array of n_labels

    Examples
    --------
    >>> import numpy as np
    >>> found = Candidates(
    ...     labels=np.array([0, 0, 0, 1, 1]),
    ...     scores=np.array([0.9, 0.7, 0.1, 0.5, 0.25], dtype=np.float32),
    ...     hits=np.array([True, False, False, True, True]),
    ...     positives=np.array([1, 2]),
    ... )
    >>> tune_thresholds(found, "macro_f1", fewest_hits=1).round(3)
    array([0.8 , 0.25], dtype=float32)
    """
    n_labels = len(candidates.positives)
    alone = candidates.positives >= (FEWEST_HITS[objective] if fewest_hits is None else fewest_hits)
    # Group 0 has the labels that share a threshold; every other label is a group of its own.
    groups = np.where(alone, np.cumsum(alone), 0)
    positives = np.bincount(groups, weights=candidates.positives)
    if not len(candidates.labels):
        return np.full(n_labels, DEFAULT, dtype=np.float32)
    everything = _Cuts.of(np.zeros_like(candidates.labels), candidates.scores, candidates.hits, 1)
    total = positives.sum()
    one = everything.best_by_f1(np.array([total]))
    common = everything.thresholds(one, np.full(1, DEFAULT, dtype=np.float32))
    cuts = _Cuts.of(groups[candidates.labels], candidates.scores, candidates.hits, len(positives))
    if objective == "macro_f1" or one[0] < 0:
        found = cuts.thresholds(cuts.best_by_f1(positives), common)
    else:
        # If no candidate of a label is worth giving, its threshold is above all of them.
        never = np.maximum(common, np.nextafter(cuts.highest(), np.float32(2)))
        found = cuts.thresholds(cuts.best_together(total, everything.f1(one, total)), never)
    return np.asarray(found[groups], dtype=np.float32)


@dataclass(frozen=True)
class _Cuts:
    """Every place where the candidates of a group can be cut in two, by group and by descending score.

    Parameters
    ----------
    groups : int64 array of n cuts
    scores, below : float32 arrays of n cuts
        The lowest score above the cut, and the highest below it (or the same as above if nothing is below).
    counts, right : int64 arrays of n cuts
        Number of candidates of the group above the cut, and of those that are right.
    starts : int64 array of n_groups + 1
        Position of the first cut of each group.
    """

    groups: Array
    scores: Array
    below: Array
    counts: Array
    right: Array
    starts: Array

    @classmethod
    def of(cls, groups: Array, scores: Array, hits: Array, n_groups: int) -> _Cuts:
        order = np.lexsort((-scores, groups))
        groups, scores, hits = groups[order], scores[order], hits[order]
        bounds = np.searchsorted(groups, np.arange(n_groups + 1))
        before = np.concatenate([[0], np.cumsum(hits, dtype=np.int64)])
        ends = np.ones(len(groups), dtype=bool)
        ends[:-1] = (groups[1:] != groups[:-1]) | (scores[1:] != scores[:-1])
        last = np.flatnonzero(ends)
        group = groups[last]
        following = np.minimum(last + 1, len(groups) - 1)
        below = np.where(groups[following] == group, scores[following], scores[last])
        return cls(
            groups=group,
            scores=scores[last],
            below=below,
            counts=last + 1 - bounds[group],
            right=before[last + 1] - before[bounds[group]],
            starts=np.searchsorted(group, np.arange(n_groups + 1)),
        )

    def _best(self, worth: Array) -> Array:
        """The cut of each group that is worth most, the highest in case of ties; -1 if none is worth more than 0."""
        chosen = np.full(len(self.starts) - 1, -1, dtype=np.int64)
        there = np.flatnonzero(np.diff(self.starts))
        most = np.zeros(len(chosen))
        most[there] = np.maximum.reduceat(worth, self.starts[there])
        tops = np.flatnonzero((worth == most[self.groups]) & (worth > 0))
        found, first = np.unique(self.groups[tops], return_index=True)
        chosen[found] = tops[first]
        return chosen

    def best_by_f1(self, positives: Array) -> Array:
        """The cut of each group with the best F1 of the group."""
        return self._best(2 * self.right / (self.counts + positives[self.groups]))

    def f1(self, chosen: Array, positives: float) -> float:
        """The F1 of all groups together."""
        cuts = chosen[chosen >= 0]
        return 2 * float(self.right[cuts].sum()) / max(float(self.counts[cuts].sum() + positives), 1.0)

    def best_together(self, positives: float, f1: float) -> Array:
        """The cuts with the best F1 of all groups together, which is at least `f1`.

        F1 = 2 right / (count + positives) is a ratio of sums. To beat F, each group takes the cut with the largest
        right - count F / 2; this is repeated with the new F until it stops growing (Dinkelbach, 1967).
        """
        chosen = self._best(self.right - f1 / 2 * self.counts)
        for _ in range(_MOST_ROUNDS):
            reached = self.f1(chosen, positives)
            if reached <= f1:
                break
            f1, chosen = reached, self._best(self.right - reached / 2 * self.counts)
        return chosen

    def thresholds(self, chosen: Array, otherwise: Array) -> Array:
        """A threshold half-way between the scores on both sides of each chosen cut; `otherwise` if none is chosen."""
        above, below = self.scores[chosen], self.below[chosen]
        middle = ((above.astype(np.float64) + below) / 2).astype(np.float32)
        return np.where(chosen < 0, otherwise, np.where(middle > below, middle, above))

    def highest(self) -> Array:
        """The highest score of each group; 0 for a group without candidates."""
        there = np.diff(self.starts) > 0
        found = np.zeros(len(there), dtype=np.float32)
        found[there] = self.scores[self.starts[:-1][there]]
        return found


def thresholds_from_state(state: State, n_labels: int) -> Array | None:
    """Return the thresholds of a saved model, or None if it has none; raise `ModelFormatError` if they are damaged."""
    if "thresholds" not in state.arrays:
        return None
    found: Array = state.array("thresholds", np.float32, (n_labels,))
    if not (np.isfinite(found).all() and (found > 0).all()):
        raise ModelFormatError(f"{state.kind}: thresholds must be finite and positive")
    return found
