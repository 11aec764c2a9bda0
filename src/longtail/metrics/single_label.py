"""Accuracy and macro-F1 of rows that have exactly one label each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from longtail.arrays import Array


@dataclass(frozen=True)
class ClassScores:
    """How well the best label of each row agrees with its only true one.

    Parameters
    ----------
    accuracy : float
        Share of the rows whose best label is the true one.
    macro_f1 : float
        F1 of each label that occurs in the truth or is predicted, averaged over these labels.
    """

    accuracy: float
    macro_f1: float

    @classmethod
    def of(cls, truth: Any, best: Array) -> Self:
        """From a label matrix with one label in each row, and the best label of each row (-1: none).

        Examples
        --------
        >>> from scipy import sparse
        >>> ClassScores.of(sparse.csr_array([[1, 0, 0], [0, 1, 0], [0, 1, 0]]), np.array([0, 1, 0]))
        ClassScores(accuracy=0.6666666666666666, macro_f1=0.6666666666666666)
        """
        true, n_labels = truth.indices, truth.shape[1]
        right = true == best
        hits = np.bincount(true[right], minlength=n_labels)
        both = np.bincount(true, minlength=n_labels) + np.bincount(best[best >= 0], minlength=n_labels)
        there = both > 0
        return cls(float(np.mean(right)), float(np.mean(2 * hits[there] / both[there])))
