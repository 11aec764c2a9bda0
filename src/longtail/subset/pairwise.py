"""`PairwiseObjective`: what a set of labels is worth, which is what each is worth alone less what pairs have in common.

Cut, penalised cut, predictability and their sums (Barezi et al., NAACL 2019) all have this form. It makes them
submodular, and lets the gain of every label be kept up to date at the cost of the neighbours of the label chosen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array

_BITS = 51  # of the 53 of a float64: no sum about a label then needs more


@dataclass(frozen=True)
class PairwiseObjective:
    """f(S) = sum of alone[k] over the labels k of S - sum of shared[i, k] over the pairs {i, k} of S.

    Parameters
    ----------
    alone : array of n_labels
        f of each label on its own.
    shared : csr_array of shape (n_labels, n_labels)
        Symmetric, non-negative, with an empty diagonal; non-negative is what makes f submodular.
    """

    alone: Array
    shared: Any

    @classmethod
    def of(
        cls, weights: Any, penalty: float = 0.0, scores: Array | None = None, score_weight: float = 1.0
    ) -> PairwiseObjective:
        """The penalised cut of an affinity, plus `score_weight` times the sum of the scores of the set.

        With w_ik the weight with which label k explains label i, the cut is the sum of w_ik over i outside and k
        inside S: the column sums of S, less all w_ik inside S. The penalty takes these away `penalty` times more.

        Everything is rounded to multiples of a power of two so small that it does not matter and so large that sums
        of gains are exact: labels that are worth the same then tie, in whatever order their weights are added up.

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
        unit = _unit(float(((2 + penalty) * (into + out_of) + np.abs(bonus)).max(initial=0)))
        weights = _rounded(weights, unit)
        shared = _rounded((1 + penalty) * sparse.csr_array(weights + weights.T), unit)
        return cls(_column_sums(weights) + np.rint(bonus / unit) * unit, shared)

    @property
    def n_labels(self) -> int:
        return len(self.alone)

    def value(self, labels: Any) -> float:
        """f of a set of different labels."""
        labels = np.asarray(labels, dtype=np.int64)
        chosen = np.zeros(self.n_labels)
        chosen[labels] = 1
        return float(self.alone[labels].sum() - (self.shared[labels] @ chosen).sum() / 2)

    def gains(self, labels: Any) -> Array:
        """What each label adds to a set; of the labels in it, what they add to the others."""
        chosen = np.zeros(self.n_labels)
        chosen[np.asarray(labels, dtype=np.int64)] = 1
        return np.asarray(self.alone - self.shared @ chosen)

    def select(self, labels: Array) -> PairwiseObjective:
        """The same for only the given labels."""
        return PairwiseObjective(self.alone[labels], self.shared[labels][:, labels])


def _column_sums(matrix: Any) -> Array:
    return np.bincount(matrix.indices, weights=matrix.data, minlength=matrix.shape[1]).astype(np.float64, copy=False)


def _unit(largest: float) -> float:
    return 2.0 ** (math.frexp(largest)[1] - _BITS) if largest else 1.0


def _rounded(matrix: Any, unit: float) -> Any:
    rounded = matrix.copy()  # dropping zeros moves the indices, and those given are somebody else's
    rounded.data = np.rint(rounded.data / unit) * unit
    rounded.eliminate_zeros()
    return rounded
