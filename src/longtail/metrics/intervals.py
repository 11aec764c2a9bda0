"""95 % confidence intervals of metrics, by the normal approximation over rows.

Precision, nDCG and recall are means over rows. F1 and PSP are smooth functions of such means; their variance is that of
their linear part (the delta method). Nothing is random, so a report is always the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail.arrays import Array
from longtail.metrics.judgement import Judgement

_NORMAL = 1.959963984540054


@dataclass(frozen=True)
class Interval:
    """A metric and its 95 % interval, clipped to 0 and 1."""

    value: float
    low: float
    high: float


def intervals_at_k(truth: Any, top_labels: Any, k: int, inverse_propensity: Any = None) -> dict[str, Interval]:
    """P@k, nDCG@k, R@k, F1@k and, with weights, PSP@k, each with its 95 % interval.

    Parameters
    ----------
    truth, top_labels, k
        As in `precision_at_k`.
    inverse_propensity : array-like of shape (n_labels,) or None
        As in `psp_at_k`.

    Examples
    --------
    >>> found = intervals_at_k([[1, 1, 0], [0, 0, 1]] * 50, [[0, 2], [1, 2]] * 50, k=1)["P"]
    >>> found.value, round(found.low, 2), round(found.high, 2)
    (0.5, 0.4, 0.6)
    """
    return intervals_of(Judgement.of(truth, top_labels, inverse_propensity), k)


def intervals_of(judgement: Judgement, k: int) -> dict[str, Interval]:
    """`intervals_at_k` for a ranking that was judged before."""
    rows = judgement.row_values(k)
    precision, recall = rows["P"].mean(), rows["R"].mean()
    found = {
        "P": _interval(judgement.precision(k), rows["P"]),
        "nDCG": _interval(judgement.ndcg(k), rows["nDCG"]),
        "R": _interval(judgement.recall(k), rows["R"]),
    }
    total = max(precision + recall, np.finfo(float).tiny)
    # The derivatives of 2 p r / (p + r).
    linear = 2 * (recall / total) ** 2 * rows["P"] + 2 * (precision / total) ** 2 * rows["R"]
    found["F1"] = _interval(judgement.f1(k), linear)
    if judgement.weights is not None:
        ratio = judgement.psp(k)
        best = max(rows["best weight"].mean(), np.finfo(float).tiny)
        found["PSP"] = _interval(ratio, (rows["hit weight"] - ratio * rows["best weight"]) / best)
    return found


def _interval(value: float, rows: Array) -> Interval:
    """The interval of a value that depends on the rows like the mean of `rows`."""
    if len(rows) < 2:
        return Interval(value, 0.0, 1.0)
    reach = _NORMAL * float(rows.std(ddof=1)) / len(rows) ** 0.5
    return Interval(value, max(0.0, value - reach), min(1.0, value + reach))
