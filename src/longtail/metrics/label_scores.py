"""Scores of single labels, and groups of labels by their frequency in training: bands; head, middle and tail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail.arrays import Array
from longtail.errors import InvalidInput
from longtail.metrics.judgement import Judgement

GROUP_NAMES = ("head", "middle", "tail", "unseen")


@dataclass(frozen=True, eq=False)
class LabelScores:
    """Counts of every label over the first k places of all rows.

    Parameters
    ----------
    k : int
    true, given, found : int64 arrays of shape (n_labels,)
        Rows that have the label, rows whose top k has it, and rows where both hold.
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
        """Of the rows with the label in their top k, the share where it is true; 0 if there are none."""
        return self.found / np.maximum(self.given, 1)

    @property
    def recall(self) -> Array:
        """Of the rows where the label is true, the share with it in their top k; 0 if there are none."""
        return self.found / np.maximum(self.true, 1)

    @property
    def f1(self) -> Array:
        """The harmonic mean of precision and recall."""
        return 2 * self.found / np.maximum(self.true + self.given, 1)

    def worst(self, most: int, least_true: int) -> Array:
        """The labels with the lowest F1 among those with at least `least_true` true rows; ties go to more true rows."""
        among = np.flatnonzero(self.true >= max(1, least_true))
        order = np.lexsort((among, -self.true[among], self.f1[among]))
        return among[order[:most]]


@dataclass(frozen=True)
class Band:
    """Labels with similar training counts.

    Parameters
    ----------
    low, high : int
        Smallest and largest training count of the band.
    n_labels : int
        Number of labels.
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
        """Share of the predictions of the band's labels that are right; None if there are none."""
        return self.found / self.given if self.given else None

    @property
    def recall(self) -> float | None:
        """Share of the band's true (row, label) pairs that were found; None if there are none."""
        return self.found / self.true if self.true else None


def frequency_groups(train_label_counts: Any) -> Array:
    """Assign each label to a group by its training count: 0 head, 1 middle, 2 tail, 3 unseen.

    The groups have equal volume: head, middle and tail each hold about a third of all training occurrences, so the head
    is a few labels and the tail is most of them. A label is head if the labels more frequent than it hold less than a
    third of the occurrences, tail if the rarer labels do, and middle otherwise. Labels with equal counts share a group;
    if both conditions hold for them, the smaller share decides. A label that never occurs in training is unseen.

    Parameters
    ----------
    train_label_counts : array-like of shape (n_labels,)
        Number of training rows of each label.

    Examples
    --------
    >>> frequency_groups([60, 30, 20, 10, 10, 10, 5, 5, 0])
    array([0, 1, 2, 2, 2, 2, 2, 2, 3])
    """
    counts = np.asarray(train_label_counts)
    if counts.ndim != 1 or counts.dtype.kind not in "iuf":
        raise InvalidInput(
            f"train_label_counts has {counts.ndim} dimensions and dtype {counts.dtype}; expected one count per label"
        )
    if counts.size and not (counts.min() >= 0 and np.isfinite(counts).all()):
        raise InvalidInput("train_label_counts has a negative count or NaN; expected 0 or more")
    distinct, position, labels = np.unique(counts, return_inverse=True, return_counts=True)
    volumes = distinct.astype(np.float64) * labels
    total = volumes.sum()
    rarer = np.cumsum(volumes) - volumes
    more_frequent = total - volumes - rarer
    groups = np.ones(len(distinct), dtype=np.int64)
    groups[(3 * more_frequent < total) & (more_frequent < rarer)] = 0
    groups[(3 * rarer < total) & (rarer < more_frequent)] = 2
    groups[distinct == 0] = 3
    result: Array = groups[position]
    return result


def frequency_bands(scores: LabelScores, train_label_counts: Any) -> tuple[Band, ...]:
    """Sum label scores over the bands of training counts 0, 1, 2-3, 4-7, 8-15 and so on, without empty bands.

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
    # frexp gives the exponent of a power of two exactly; a logarithm may be rounded.
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
