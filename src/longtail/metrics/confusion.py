"""Confused labels: pairs where label A is true but missed, while label B is among the k best but not true.

The counts are a product of two sparse matrices, computed for one block of labels A at a time to bound the memory. The
result is that of the whole product.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from longtail import progress
from longtail.arrays import Array
from longtail.metrics.judgement import Judgement
from longtail.native import largest

_PAIRS_AT_ONCE = 2**23


@dataclass(frozen=True)
class ConfusedPair:
    """A label that was missed, and another that was predicted for the same rows.

    Parameters
    ----------
    missed, given : int
        Label ids.
    count : int
        Rows where `missed` is true and not among the k best, and `given` is among them and not true.
    share : float
        Share of the rows where `missed` is true.
    """

    missed: int
    given: int
    count: int
    share: float


class Mistakes:
    """The missed and the wrongly predicted labels of each row, as sparse matrices."""

    def __init__(self, judgement: Judgement, k: int) -> None:
        k = judgement.check_k(k)
        top, hits = judgement.top_labels[:, :k], judgement.hits[:, :k]
        shape = (judgement.n_rows, judgement.n_labels)
        rows = np.broadcast_to(np.arange(shape[0])[:, None], top.shape)
        wrong = ~hits & (top >= 0)
        self.label_sizes = judgement.label_sizes
        self.given = _matrix(rows[wrong], top[wrong], shape)
        truth = judgement.truth
        keys = np.repeat(np.arange(shape[0], dtype=np.int64), np.diff(truth.indptr)) * shape[1] + truth.indices
        found = rows[hits].astype(np.int64) * shape[1] + top[hits]
        missed = np.setdiff1d(keys, found, assume_unique=True)
        # Label-major, because the product is computed for some labels at a time.
        self.missed = _matrix(missed % max(1, shape[1]), missed // max(1, shape[1]), shape[::-1])

    def of(self, label: int, most: int) -> list[ConfusedPair]:
        """The labels most often predicted where `label` was missed."""
        return self._largest(np.array([label]), most)

    def pairs(self, most: int, pairs_at_once: int = _PAIRS_AT_ONCE) -> list[ConfusedPair]:
        """The pairs of labels with the largest counts, ties to the lowest ids."""
        wrong = np.diff(self.given.indptr)
        work = np.cumsum(np.concatenate([[0], self.missed @ wrong]).astype(np.int64))
        labels = np.flatnonzero(np.diff(work))
        if not len(labels) or most < 1:
            return []
        block = work[labels] // pairs_at_once
        starts = np.flatnonzero(np.diff(block, prepend=-1))
        best: list[ConfusedPair] = []
        with progress.task("counting confused labels", total=len(labels)) as advance:
            for some in np.split(labels, starts[1:]):
                found = self._largest(some, most)
                best = sorted([*best, *found], key=lambda pair: (-pair.count, pair.missed, pair.given))[:most]
                advance(len(some))
        return best

    def _largest(self, labels: Array, most: int) -> list[ConfusedPair]:
        counts = sparse.csr_array(self.missed[labels] @ self.given)
        counts.sort_indices()
        kept = np.arange(counts.nnz) if counts.nnz <= most else np.flatnonzero(largest(counts.data, most))
        rows = labels[np.searchsorted(counts.indptr, kept, side="right") - 1]
        found = [
            ConfusedPair(missed, given, count, count / int(self.label_sizes[missed]))
            for missed, given, count in zip(
                rows.tolist(), counts.indices[kept].tolist(), counts.data[kept].tolist(), strict=True
            )
        ]
        return sorted(found, key=lambda pair: -pair.count)


def confused_pairs(truth: Any, top_labels: Any, k: int, most: int = 20) -> list[ConfusedPair]:
    """The pairs of labels most often confused: one true and missed, the other predicted instead.

    Parameters
    ----------
    truth, top_labels, k
        As in `precision_at_k`.
    most : int
        Maximum number of pairs.

    Examples
    --------
    >>> confused_pairs([[1, 0, 0], [1, 0, 0], [0, 0, 1]], [[1], [1], [2]], k=1)
    [ConfusedPair(missed=0, given=1, count=2, share=1.0)]
    """
    return Mistakes(Judgement.of(truth, top_labels), k).pairs(most)


def _matrix(rows: Array, columns: Array, shape: tuple[int, int]) -> Any:
    return sparse.csr_array((np.ones(len(rows), dtype=np.int32), (rows, columns)), shape=shape)
