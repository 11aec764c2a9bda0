"""Labels one by one: how often each was true, given and rightly given, by frequency band and the worst of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail.arrays import Array
from longtail.errors import InvalidInput
from longtail.metrics.judgement import Judgement


@dataclass(frozen=True, eq=False)
class LabelScores:
    """Array of every label over the first k places of all rows.

    Parameters
    ----------
    k : int
    true, given, found : int64 arrays of shape (n_labels,)
        Rows that have the label, rows it was given to, and rows where both hold.
    """

    k: int
    true: Array
    given: Array
    found: Array

    @classmethod
    def of(cls, judgement: Judgement, k: int) -> LabelScores:
        found, given = judgement.count_labels(k)
        return cls(k, judgement.label_sizes, given, found)

    @property
    def precision(self) -> Array:
        """Of the rows given the label, the share that has it; 0 where it is never given."""
        return self.found / np.maximum(self.given, 1)

    @property
    def recall(self) -> Array:
        """Of the rows that have the label, the share it was given to; 0 where there are none."""
        return self.found / np.maximum(self.true, 1)

    @property
    def f1(self) -> Array:
        """The harmonic mean of both."""
        return 2 * self.found / np.maximum(self.true + self.given, 1)

    def worst(self, most: int, least_true: int) -> Array:
        """The labels of lowest F1 among those with at least `least_true` true rows; the more rows, the worse."""
        among = np.flatnonzero(self.true >= max(1, least_true))
        order = np.lexsort((among, -self.true[among], self.f1[among]))
        return among[order[:most]]


@dataclass(frozen=True)
class Band:
    """Labels of similar training counts.

    Parameters
    ----------
    low, high : int
        Smallest and largest training count that belongs to the band.
    n_labels : int
        Labels in it.
    true, given, found : int
        Sums over these labels, as in `LabelScores`.
    """

    low: int
    high: int
    n_labels: int
    true: int
    given: int
    found: int

    @property
    def precision(self) -> float | None:
        """Of all times a label of the band was given, the share that was right; None where that never was."""
        return self.found / self.given if self.given else None

    @property
    def recall(self) -> float | None:
        """Of all true pairs of the band, the share that was found; None where there is none."""
        return self.found / self.true if self.true else None


def frequency_bands(scores: LabelScores, train_label_counts: Any) -> tuple[Band, ...]:
    """Sum label scores over bands of training counts 0, 1, 2-3, 4-7, 8-15 and so on; empty bands are left out.

    Examples
    --------
    >>> import numpy as np
    >>> scores = LabelScores(5, np.array([4, 2, 1]), np.array([5, 1, 0]), np.array([4, 1, 0]))
    >>> [(band.low, band.high, band.recall) for band in frequency_bands(scores, [9, 3, 2])]
    [(2, 3, 0.3333333333333333), (8, 15, 1.0)]
    """
    counts = np.asarray(train_label_counts)
    if counts.shape != scores.true.shape or counts.dtype.kind not in "iu" or (counts.size and counts.min() < 0):
        raise InvalidInput(
            f"train_label_counts has shape {counts.shape} and dtype {counts.dtype}; expected a count for each of the "
            f"{len(scores.true)} labels"
        )
    # frexp gives the exponent of a power of two exactly, where a logarithm may be rounded.
    band = np.frexp(counts.astype(np.float64))[1]
    n_labels = np.bincount(band)
    true, given, found = (np.bincount(band, column) for column in (scores.true, scores.given, scores.found))
    return tuple(
        Band(
            low=2**number // 2,
            high=2**number - 1,
            n_labels=int(n_labels[number]),
            true=int(true[number]),
            given=int(given[number]),
            found=int(found[number]),
        )
        for number in np.flatnonzero(n_labels).tolist()
    )
