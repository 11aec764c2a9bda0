"""Calibration of scores: are about 80 % of the labels with a score near 0.8 right?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail.errors import InvalidInput


@dataclass(frozen=True)
class Bin:
    """Predictions with similar scores.

    Parameters
    ----------
    low, high : float
        The lowest and the highest score.
    count : int
    mean_score : float
    share_right : float
    """

    low: float
    high: float
    count: int
    mean_score: float
    share_right: float


@dataclass(frozen=True)
class Reliability:
    """A reliability diagram.

    Parameters
    ----------
    bins : tuple of Bin
        From the lowest scores to the highest, each with about the same number of predictions.
    error : float
        Expected calibration error: the mean difference of score and share of right labels.
    mean_score, share_right : float
        Over all predictions.
    """

    bins: tuple[Bin, ...]
    error: float
    mean_score: float
    share_right: float

    @property
    def count(self) -> int:
        return sum(each.count for each in self.bins)


def reliability(scores: Any, right: Any, n_bins: int = 10) -> Reliability:
    """Compare scores with the share of right predictions, in bins of about equal size; equal scores share a bin.

    Parameters
    ----------
    scores : array of float
        Scores of the predictions, in any shape.
    right : array of bool
        Whether each prediction is right.
    n_bins : int
        Maximum number of bins; there are fewer if scores repeat.

    Examples
    --------
    >>> found = reliability([0.9, 0.8, 0.3, 0.1], [True, True, False, False], n_bins=2)
    >>> [(round(each.mean_score, 2), each.share_right) for each in found.bins]
    [(0.2, 0.0), (0.85, 1.0)]
    >>> round(found.error, 3)
    0.175
    """
    values, hits = np.asarray(scores, dtype=np.float64).ravel(), np.asarray(right, dtype=bool).ravel()
    if len(values) != len(hits):
        raise InvalidInput(f"{len(values)} scores for {len(hits)} judgements; expected one for each")
    if not np.isfinite(values).all():
        raise InvalidInput("a score is NaN or infinite; leave out the places without a label")
    if n_bins < 1:
        raise InvalidInput(f"n_bins is {n_bins}; expected at least 1")
    if not len(values):
        return Reliability((), 0.0, 0.0, 0.0)
    order = np.argsort(values, kind="stable")
    values, hits = values[order], hits[order]
    wanted = values[np.arange(1, n_bins) * len(values) // n_bins]
    edges = np.unique(np.concatenate([[0], np.searchsorted(values, wanted, side="left"), [len(values)]]))
    bins = tuple(
        Bin(
            float(values[start]),
            float(values[stop - 1]),
            int(stop - start),
            float(values[start:stop].mean()),
            float(hits[start:stop].mean()),
        )
        for start, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    )
    error = sum(each.count * abs(each.mean_score - each.share_right) for each in bins) / len(values)
    return Reliability(bins, error, float(values.mean()), float(hits.mean()))
