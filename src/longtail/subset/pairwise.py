"""`PairwiseObjective`: the value of a set of labels, as a sum over its labels minus a sum over its pairs.

Cut, penalised cut, predictability and their sums (Barezi et al., NAACL 2019) have this form. They are submodular, and
selecting a label changes the gains of its neighbours only.

The greedy search gives no fixed guarantee, since the value may fall when the set grows. `upper_bound` and `curvature`
prove how close to the best set of the same size a result is; the better of the two proofs counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array

_BITS = 51  # significant bits of a rounded value, two fewer than a float64 has, so that sums of gains are exact
_STEPS = 30  # subgradient steps of `upper_bound`
_CONTENDERS = 4  # `upper_bound` looks at pairs of this many times as many labels as are selected
_AMBITION = 0.9


@dataclass(frozen=True)
class PairwiseObjective:
    """f(S) = sum of alone[k] over the labels k of S - sum of shared[i, k] over the pairs {i, k} of S.

    Parameters
    ----------
    alone : array of n_labels
        The value of each label on its own.
    shared : csr_array of shape (n_labels, n_labels)
        Symmetric and non-negative, with an empty diagonal. Non-negative values make f submodular.
    """

    alone: Array
    shared: Any

    @classmethod
    def of(
        cls, weights: Any, penalty: float = 0.0, scores: Array | None = None, score_weight: float = 1.0
    ) -> PairwiseObjective:
        """The penalised cut of an affinity, plus `score_weight` times the sum of the scores of the set.

        Let w_ik be how much label k explains label i. The cut is the sum of w_ik over i outside and k inside S: the
        column sums of S minus all w_ik inside S. The penalty subtracts these `penalty` more times.

        All values are rounded to multiples of a small power of two, so that sums of gains are exact and labels of
        equal value tie whatever the order of summation.

        Examples
        --------
        >>> from scipy import sparse
        >>> weights = sparse.csr_array([[0.0, 0.5, 0.0], [0.25, 0.0, 0.0], [0.0, 1.0, 0.0]])
        >>> cut = PairwiseObjective.of(weights)
        >>> cut.value([1]), cut.value([0, 1]), cut.value([0, 1, 2])
        (1.5, 1.0, 0.0)
        """
        n_labels = weights.shape[0]
        bonus = np.zeros(n_labels) if scores is None else score_weight * np.asarray(scores, dtype=np.float64)
        weights = sparse.csr_array(weights, dtype=np.float64)
        into, out_of = _column_sums(weights), np.asarray(weights.sum(axis=1), dtype=np.float64)
        largest = float(((2 + penalty) * (into + out_of) + np.abs(bonus)).max(initial=0))
        unit = 2.0 ** (math.frexp(largest)[1] - _BITS) if largest else 1.0
        weights = _rounded(weights, unit)
        shared = _rounded((1 + penalty) * sparse.csr_array(weights + weights.T), unit)
        return cls(_column_sums(weights) + np.rint(bonus / unit) * unit, shared)

    @property
    def n_labels(self) -> int:
        return len(self.alone)

    def value(self, labels: Any) -> float:
        """The value of a set of distinct labels."""
        labels = np.asarray(labels, dtype=np.int64)
        chosen = np.zeros(self.n_labels)
        chosen[labels] = 1
        return float(self.alone[labels].sum() - (self.shared[labels] @ chosen).sum() / 2)

    def gains(self, labels: Any) -> Array:
        """What each label adds to the value of the set without it."""
        chosen = np.zeros(self.n_labels)
        chosen[np.asarray(labels, dtype=np.int64)] = 1
        return np.asarray(self.alone - self.shared @ chosen)

    def select(self, labels: Array) -> PairwiseObjective:
        """The objective of only these labels."""
        return PairwiseObjective(self.alone[labels], self.shared[labels][:, labels])


def _column_sums(matrix: Any) -> Array:
    return np.bincount(matrix.indices, weights=matrix.data, minlength=matrix.shape[1]).astype(np.float64, copy=False)


def _rounded(matrix: Any, unit: float) -> Any:
    rounded = matrix.copy()  # eliminating zeros changes the arrays in place, and these are the caller's
    rounded.data = np.rint(rounded.data / unit) * unit
    rounded.eliminate_zeros()
    return rounded


def upper_bound(objective: PairwiseObjective, labels: Array) -> float:
    """An upper bound on the value of any set of as many labels as `labels`.

    For prices 0 <= p_ik <= shared_ik and any set T, a pair inside T costs at least p_ik (1[i in T] + 1[k in T] - 1). So
    f(T) is at most the sum of all prices, plus the sum over T of alone_k minus the prices of k's pairs; the latter
    is largest for the top labels. Prices start with the pairs of `labels` and are improved by subgradient steps.
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
    """The largest share of its own value that a label of the set can lose to the set and as many other labels.

    If it is at most 1, adding labels of this set never lowers the value of another set of the same size. It is
    infinite if a label of the set has no value on its own.
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
    """The fraction of the optimum that greedy search reaches for sure, by curvature (Conforti & Cornuéjols 1984).

    >>> round(greedy_fraction(1.0, 1000), 3), greedy_fraction(0.0, 10), greedy_fraction(1.5, 10)
    (0.632, 1.0, 0.0)
    """
    if curvature > 1:
        return 0.0
    return float((1 - (1 - curvature / count) ** count) / curvature) if curvature > 0 else 1.0


def _largest(values: Array, count: int) -> Array:
    return values if len(values) <= count else -np.partition(-values, count - 1)[:count]
