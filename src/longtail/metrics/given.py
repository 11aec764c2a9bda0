"""Labels as given, any number to each row: precision, recall and F1, and the same at cut-offs of the score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from longtail.arrays import Array
from longtail.metrics.judgement import Judgement

CUTOFFS = tuple(round(0.05 * number, 2) for number in range(1, 20))


@dataclass(frozen=True)
class GivenScores:
    """How good the labels are that rows are given.

    Parameters
    ----------
    per_row : float
        Labels given to a row on average.
    rows_without : int
        Rows that are given no label.
    precision, recall, f1 : float
        Of all pairs of row and label together (micro).
    macro_precision, macro_recall, macro_f1 : float
        Means over the labels that are true for a row; the precision of a label that is never given is 0.
    """

    per_row: float
    rows_without: int
    precision: float
    recall: float
    f1: float
    macro_precision: float
    macro_recall: float
    macro_f1: float

    @classmethod
    def of(cls, judgement: Judgement, given: Array) -> GivenScores:
        """Judge the places of a ranking in the mask `given`.

        Examples
        --------
        >>> judgement = Judgement.of([[1, 1, 0], [0, 0, 1]], [[0, 2], [1, 2]])
        >>> found = GivenScores.of(judgement, np.array([[True, False], [True, True]]))
        >>> round(found.precision, 3), round(found.recall, 3), round(found.macro_f1, 3), found.per_row
        (0.667, 0.667, 0.667, 1.5)
        """
        hits = judgement.hits & given
        sizes = judgement.label_sizes
        true = sizes > 0
        found = np.bincount(judgement.top_labels[hits], minlength=judgement.n_labels)[true]
        counts = np.bincount(judgement.top_labels[given], minlength=judgement.n_labels)[true]
        n_given, right, n_true = int(np.count_nonzero(given)), int(np.count_nonzero(hits)), int(sizes.sum())

        def mean(shares: Array) -> float:
            return float(np.mean(shares)) if len(shares) else 0.0

        return cls(
            per_row=n_given / judgement.n_rows,
            rows_without=int(np.count_nonzero(~given.any(axis=1))),
            precision=right / max(1, n_given),
            recall=right / max(1, n_true),
            f1=2 * right / max(1, n_given + n_true),
            macro_precision=mean(found / np.maximum(counts, 1)),
            macro_recall=mean(found / sizes[true]),
            macro_f1=mean(2 * found / (counts + sizes[true])),
        )


@dataclass(frozen=True)
class Cutoff:
    """What giving every label with at least a score of `cutoff` leads to; precision, recall and F1 are of all pairs."""

    cutoff: float
    precision: float
    recall: float
    f1: float
    per_row: float


def cutoffs_of(judgement: Judgement, scores: Array, at: tuple[float, ...] = CUTOFFS) -> tuple[Cutoff, ...]:
    """Precision, recall and F1 for each cut-off of the scores of a ranking, from the lowest to the highest.

    Examples
    --------
    >>> judgement = Judgement.of([[1, 1, 0], [0, 0, 1]], [[0, 2], [1, 2]])
    >>> [each.f1 for each in cutoffs_of(judgement, np.array([[0.9, 0.2], [0.6, 0.5]]), (0.4, 0.8))]
    [0.6666666666666666, 0.5]
    """
    there = judgement.top_labels >= 0
    values, hits = scores[there], judgement.hits[there]
    order = np.argsort(values, kind="stable")
    starts = np.searchsorted(values[order], np.asarray(at, dtype=values.dtype))
    rest = np.append(np.cumsum(hits[order][::-1])[::-1], 0)
    n_true = int(judgement.label_sizes.sum())
    found = zip(at, (len(values) - starts).tolist(), rest[starts].tolist(), strict=True)
    return tuple(
        Cutoff(
            cutoff,
            right / max(1, n_given),
            right / max(1, n_true),
            2 * right / max(1, n_given + n_true),
            n_given / judgement.n_rows,
        )
        for cutoff, n_given, right in found
    )
