"""How much of the best value any set of as many labels could have is proved to be in a set that was found.

The search is greedy and the objective need not grow with the set, so the usual promise of 63 % is not one to rely on.
Two proofs hold all the same, one from the instance and one from its curvature; the better one counts.
"""

from __future__ import annotations

import numpy as np

from longtail.arrays import Array
from longtail.subset.pairwise import PairwiseObjective

_STEPS = 30
_CONTENDERS = 4  # times as many labels as are chosen: pairs of others are left out of the proof, which stays valid
_AMBITION = 0.9


def upper_bound(objective: PairwiseObjective, labels: Array) -> float:
    """No set of as many labels as `labels` has a larger value than this.

    For every choice of prices 0 <= p_ik <= shared_ik and every set T, a pair inside T costs at least
    p_ik (1[i in T] + 1[k in T] - 1), so f(T) is at most the sum of all prices plus the sum over T of alone_k less the
    prices of k's pairs; the latter is largest for the labels on top. Prices start at the pairs of `labels`, where the
    bound says what swaps could gain, and are improved by a few subgradient steps.
    """
    count = len(labels)
    if count == objective.n_labels:
        return objective.value(labels)
    value = objective.value(labels)
    contenders = np.argsort(-objective.alone, kind="stable")[: _CONTENDERS * count]
    contenders = np.union1d(contenders, labels)
    pairs = objective.shared[contenders][:, contenders].tocoo()
    first, second = pairs.coords
    once = first < second
    first, second, most = first[once], second[once], pairs.data[once]
    inside = np.isin(contenders, labels)
    price = np.where(inside[first] & inside[second], most, 0.0)
    best = float(_largest(objective.alone, count).sum())
    position = np.full(objective.n_labels, -1)
    position[contenders] = np.arange(len(contenders))
    for _ in range(_STEPS):
        paid = np.bincount(first, price, len(contenders)) + np.bincount(second, price, len(contenders))
        left = objective.alone.copy()
        left[contenders] -= paid
        top = np.argpartition(-left, count - 1)[:count]
        bound = float(price.sum() + left[top].sum())
        best = min(best, bound)
        is_top = np.zeros(len(contenders))
        is_top[position[top[position[top] >= 0]]] = 1
        slope = 1 - is_top[first] - is_top[second]
        steepness = float(slope @ slope)
        aim = max(value, best - (1 - _AMBITION) * abs(best))
        if steepness == 0 or bound <= aim:
            break
        price = np.clip(price - (bound - aim) / steepness * slope, 0, most)
    return max(best, value)


def curvature(objective: PairwiseObjective, labels: Array) -> float:
    """The largest share of its own value that a label of the set can lose to the set and as many others.

    At most 1 means that no set of this size gets worse where labels of this one are added. Infinite where a label of
    the set is worth nothing on its own.
    """
    alone = objective.alone[labels]
    if not (alone > 0).all():
        return float("inf")
    rows = objective.shared[labels]
    outside = np.ones(objective.n_labels, dtype=bool)
    outside[labels] = False
    rows.data[~outside[rows.indices]] = 0
    others = np.array(
        [
            _largest(rows.data[start:stop], len(labels)).sum()
            for start, stop in zip(rows.indptr[:-1].tolist(), rows.indptr[1:].tolist(), strict=True)
        ]
    )
    return float((1 - (objective.gains(labels)[labels] - others) / alone).max(initial=0))


def greedy_fraction(curvature: float, count: int) -> float:
    """The fraction of the optimum that greedy search is sure to reach at a curvature (Conforti & Cornuéjols 1984).

    >>> round(greedy_fraction(1.0, 1000), 3), greedy_fraction(0.0, 10), greedy_fraction(1.5, 10)
    (0.632, 1.0, 0.0)
    """
    if curvature > 1:
        return 0.0
    return float((1 - (1 - curvature / count) ** count) / curvature) if curvature > 0 else 1.0


def _largest(values: Array, count: int) -> Array:
    return values if len(values) <= count else -np.partition(-values, count - 1)[:count]
