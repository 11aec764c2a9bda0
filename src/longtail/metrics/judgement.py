"""`Judgement`: which places of a ranking hold true labels, computed once, and every metric derived from it.

The hits are as large as the ranking and everything else is as large as the truth; nothing has rows x labels values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from longtail.arrays import Array
from longtail.errors import InvalidInput
from longtail.metrics.propensities import as_inverse_propensity
from longtail.validation import as_labels, check_k


@dataclass(frozen=True)
class Judgement:
    """A ranking compared with the truth.

    Parameters
    ----------
    truth : csr_array of shape (n_rows, n_labels)
        As `longtail.validation.as_labels` returns it.
    top_labels : int64 array of shape (n_rows, n_places)
        Label ids, best first, -1 if there are fewer.
    hits : bool array of shape (n_rows, n_places)
        Whether the label at each place is true.
    weights : float64 array of shape (n_labels,) or None
        Weight of a hit on each label in the propensity-scored metrics.
    """

    truth: Any
    top_labels: Array
    hits: Array
    weights: Array | None = None

    @classmethod
    def of(cls, truth: Any, top_labels: Any, inverse_propensity: Any = None) -> Judgement:
        """Check the arguments and find the hits."""
        truth = as_labels(truth, name="truth")
        if truth.shape[0] == 0:
            raise InvalidInput("truth has no rows; a mean over rows needs at least one")
        top = _as_ranking(top_labels, *truth.shape)
        weights = None if inverse_propensity is None else as_inverse_propensity(inverse_propensity, truth.shape[1])
        return cls(truth, top, _find_hits(truth, top), weights)

    @property
    def n_rows(self) -> int:
        return int(self.truth.shape[0])

    @property
    def n_labels(self) -> int:
        return int(self.truth.shape[1])

    @cached_property
    def row_sizes(self) -> Array:
        """Number of true labels of each row."""
        sizes: Array = np.diff(self.truth.indptr).astype(np.int64)
        return sizes

    @cached_property
    def label_sizes(self) -> Array:
        """Number of true rows of each label."""
        return np.bincount(self.truth.indices, minlength=self.n_labels)

    @cached_property
    def _discounts(self) -> Array:
        return 1 / np.log2(np.arange(2, self.hits.shape[1] + 2))

    def check_k(self, k: int) -> int:
        """Raise `InvalidInput` unless the ranking has at least `k` places."""
        k = check_k(k)
        if k > self.hits.shape[1]:
            raise InvalidInput(
                f"k is {k}, but top_labels has {self.hits.shape[1]} columns; rank at least {k} labels per row"
            )
        return k

    def precision(self, k: int) -> float:
        k = self.check_k(k)
        return int(np.count_nonzero(self.hits[:, :k])) / (self.n_rows * k)

    def recall(self, k: int) -> float:
        k = self.check_k(k)
        return float(np.mean(self.hits[:, :k].sum(axis=1) / np.maximum(self.row_sizes, 1)))

    def f1(self, k: int) -> float:
        precision, recall = self.precision(k), self.recall(k)
        return 2 * precision * recall / (precision + recall) if precision else 0.0

    def ndcg(self, k: int) -> float:
        return float(np.mean(self.ndcg_of_rows(k)))

    def ndcg_of_rows(self, k: int) -> Array:
        """The nDCG of each row at `k`."""
        k = self.check_k(k)
        # Summed in rank order like the divisor, so that a perfect row has exactly 1.
        gains = np.cumsum(self.hits[:, :k] * self._discounts[:k], axis=1)[:, -1]
        return np.asarray(gains / self._ideal_gains(k))

    def psp(self, k: int) -> float:
        k = self.check_k(k)
        _, ranks, weights = self._best_weights
        return _ratio(self._hit_weights[:, :k].sum(), weights[ranks < k].sum())

    def psndcg(self, k: int) -> float:
        k = self.check_k(k)
        ideal = self._ideal_gains(k)
        reached = self._hit_weights[:, :k] @ self._discounts[:k] / ideal
        rows, ranks, weights = (column[self._best_weights[1] < k] for column in self._best_weights)
        return _ratio(reached.sum(), (weights * self._discounts[ranks] / ideal[rows]).sum())

    def coverage(self, k: int) -> float:
        found, _ = self.count_labels(k)
        true_labels = int(np.count_nonzero(self.label_sizes))
        return int(np.count_nonzero(found)) / true_labels if true_labels else 0.0

    def macro_precision(self, k: int) -> float:
        found, ranked = self.count_labels(k)
        return float(np.mean(found / np.maximum(ranked, 1))) if self.n_labels else 0.0

    def macro_recall(self, k: int) -> float:
        found, _ = self.count_labels(k)
        true = self.label_sizes > 0
        return float(np.mean(found[true] / self.label_sizes[true])) if true.any() else 0.0

    def row_values(self, k: int) -> dict[str, Array]:
        """The values of each row, whose means over rows are the metrics "P", "R" and "nDCG" at `k`.

        With weights also "hit weight" and "best weight"; PSP is the ratio of their sums.
        """
        k = self.check_k(k)
        hits = self.hits[:, :k].sum(axis=1)
        values: dict[str, Array] = {
            "P": hits / k,
            "R": hits / np.maximum(self.row_sizes, 1),
            "nDCG": self.ndcg_of_rows(k),
        }
        if self.weights is not None:
            rows, ranks, weights = self._best_weights
            values["hit weight"] = self._hit_weights[:, :k].sum(axis=1)
            best = np.bincount(rows[ranks < k], weights[ranks < k], minlength=self.n_rows)
            values["best weight"] = best.astype(np.float64, copy=False)
        return values

    def count_labels(self, k: int) -> tuple[Array, Array]:
        """How many rows have each label in their top `k`: first only rows where it is true, then all rows."""
        k = self.check_k(k)
        top, hits = self.top_labels[:, :k], self.hits[:, :k]
        found = np.bincount(top[hits], minlength=self.n_labels)
        ranked = np.bincount(top[top >= 0], minlength=self.n_labels)
        return found, ranked

    def _ideal_gains(self, k: int) -> Array:
        """The DCG of each row's best ranking; 1 for a row without labels, whose gain is always 0."""
        sums = np.concatenate([[1.0], np.cumsum(self._discounts[:k])])
        return sums[np.minimum(self.row_sizes, k)]

    @cached_property
    def _hit_weights(self) -> Array:
        assert self.weights is not None
        gains = np.zeros(self.hits.shape)
        gains[self.hits] = self.weights[self.top_labels[self.hits]]
        return gains

    @cached_property
    def _best_weights(self) -> tuple[Array, Array, Array]:
        """Row, rank (from 0) and weight of the heaviest true labels of each row, at most one per place."""
        assert self.weights is not None
        rows = np.repeat(np.arange(self.n_rows), self.row_sizes)
        ranks = np.arange(len(rows)) - np.repeat(self.truth.indptr[:-1].astype(np.int64), self.row_sizes)
        weights = self.weights[self.truth.indices]
        weights = weights[np.lexsort((-weights, rows))]
        best = ranks < self.hits.shape[1]
        return rows[best], ranks[best], weights[best]


MEASURES: dict[str, Callable[[Judgement, int], float]] = {
    "P": Judgement.precision,
    "nDCG": Judgement.ndcg,
    "PSP": Judgement.psp,
    "PSnDCG": Judgement.psndcg,
    "R": Judgement.recall,
    "F1": Judgement.f1,
    "coverage": Judgement.coverage,
    "macro-P": Judgement.macro_precision,
    "macro-R": Judgement.macro_recall,
}
"""Every metric at k by its usual name; PSP and PSnDCG need weights."""


def _ratio(reached: float, best: float) -> float:
    # The two sums are rounded differently; the value of a perfect ranking must not exceed 1.
    return min(float(reached) / float(best), 1.0) if best > 0 else 0.0


def _as_ranking(top_labels: Any, n_rows: int, n_labels: int) -> Array:
    top = np.asarray(top_labels)
    if top.ndim != 2 or top.dtype.kind not in "iu":
        raise InvalidInput(
            f"top_labels has {top.ndim} dimensions and dtype {top.dtype}; expected a 2D array of integers: "
            f"the label ids of each row of truth, best first"
        )
    if top.shape[0] != n_rows:
        raise InvalidInput(f"top_labels has {top.shape[0]} rows for {n_rows} rows of truth")
    wrong = (top < -1) | (top >= n_labels)
    if wrong.any():
        row, place = np.argwhere(wrong)[0]
        raise InvalidInput(
            f"top_labels has label id {top[row, place]} in row {row}; expected ids in 0..{n_labels - 1}, "
            f"or -1 if there are fewer labels"
        )
    top = top.astype(np.int64, copy=False)
    gap = (top[:, :-1] < 0) & (top[:, 1:] >= 0)
    if gap.any():
        row = np.argwhere(gap)[0, 0]
        raise InvalidInput(f"top_labels has a label after -1 in row {row}; -1 may only fill the end of a row")
    in_order = np.sort(top, axis=1)
    repeated = (in_order[:, 1:] == in_order[:, :-1]) & (in_order[:, 1:] >= 0)
    if repeated.any():
        row, place = np.argwhere(repeated)[0]
        raise InvalidInput(f"top_labels has label id {in_order[row, place]} twice in row {row}; expected it once")
    return top


def _find_hits(truth: Any, top: Array) -> Array:
    n_rows, n_labels = truth.shape
    if truth.nnz == 0 or top.size == 0:
        return np.zeros(top.shape, dtype=bool)
    # Row and label as one number; the truth is sorted by it.
    keys = np.repeat(np.arange(n_rows, dtype=np.int64) * n_labels, np.diff(truth.indptr)) + truth.indices
    wanted = np.arange(n_rows, dtype=np.int64)[:, None] * n_labels + top
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    hits: Array = (keys[places] == wanted) & (top >= 0)
    return hits
