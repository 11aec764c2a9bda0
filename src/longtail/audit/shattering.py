"""Lower bounds on the width of any layer that reaches given label sets, by counting their patterns on some labels.

A layer of width d gives s labels in at most ``count_argmaxable(s, d)`` patterns, half of which are the complements of
the others. Labels on which the sets and their complements have more patterns rule the width d out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.audit.counting import sum_of_binomials
from longtail.parallel import check_stop

_STARTS = 12  # labels from which a search starts
_CANDIDATES = 256  # labels to choose from, those that divide the sets most evenly
_MOST_LABELS = 64  # labels of a proof


@dataclass(frozen=True, eq=False)
class Crowd:
    """Labels on which label sets have more patterns than a narrow layer can give.

    Attributes
    ----------
    labels : array of label ids
    patterns : int
        The number of different patterns of the sets on these labels, where a pattern and its complement count as one.
    width : int
        The smallest width for which Cover's count is not exceeded: no layer without a bias that is narrower gives all
        the sets.
    """

    labels: Array
    patterns: int
    width: int


def crowd(sets: Any) -> Crowd:
    """The labels that prove the largest lower bound, of those that a greedy search finds.

    Parameters
    ----------
    sets : sparse 0/1 matrix of shape (n_sets, n_labels)

    Examples
    --------
    Single labels of three, and none: with their complements these are all eight patterns, which need three dimensions.

    >>> found = crowd(sparse.csr_array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]))
    >>> found.labels.tolist(), found.patterns, found.width
    ([0, 1, 2], 4, 3)
    """
    matrix = sparse.csr_array(sets).astype(np.float64)
    uneven = np.abs(np.bincount(matrix.indices, minlength=matrix.shape[1]) - matrix.shape[0] / 2)
    labels = np.argsort(uneven, kind="stable")[:_CANDIDATES]
    matrix = sparse.csr_array(matrix[:, labels])
    best = Crowd(np.zeros(1, dtype=np.int64), 1, 1)
    for base in range(min(_STARTS, len(labels))):
        check_stop()
        best = max(best, _grown(matrix, base), key=lambda each: each.width)
    return Crowd(np.sort(labels[best.labels]), best.patterns, best.width)


def narrowest(n_labels: int, patterns: int) -> int:
    """The smallest width at which ``n_labels`` labels can have so many patterns, up to complements.

    Examples
    --------
    >>> narrowest(3, 3), narrowest(3, 4)
    (2, 3)
    """
    return next(d for d in range(1, n_labels + 1) if sum_of_binomials(n_labels - 1, d - 1) >= patterns)


def count_patterns(sets: Any, labels: Array) -> int:
    """The number of patterns of label sets on some labels, where a pattern and its complement count as one."""
    part = sparse.csr_array(sets)[:, labels].toarray() > 0
    return len(np.unique(part ^ part[:, :1], axis=0))


def _grown(matrix: Any, base: int) -> Crowd:
    """Add the label that splits most patterns, again and again, to the first one."""
    n_sets = matrix.shape[0]
    # Sets with the first label are replaced by their complements.
    flipped = np.zeros(n_sets, dtype=bool)
    flipped[matrix[:, [base]].nonzero()[0]] = True
    pattern = np.zeros(n_sets, dtype=np.int64)
    labels, patterns, best = [base], 1, Crowd(np.array([base]), 1, 1)
    while patterns < n_sets and len(labels) < min(_MOST_LABELS, matrix.shape[1]):
        ones = _ones(matrix, pattern, flipped, patterns)
        sizes = np.bincount(pattern, minlength=patterns)[:, None]
        gains = ((ones > 0) & (ones < sizes)).sum(axis=0)
        gains[labels] = -1
        chosen = int(gains.argmax())
        if gains[chosen] <= 0:
            break
        labels.append(chosen)
        value = flipped.copy()
        rows = matrix[:, [chosen]].nonzero()[0]
        value[rows] ^= True
        pattern = np.unique(2 * pattern + value, return_inverse=True)[1]
        patterns += int(gains[chosen])
        width = narrowest(len(labels), patterns)
        if width > best.width:
            best = Crowd(np.sort(labels), patterns, width)
    return best


def _ones(matrix: Any, pattern: Array, flipped: Array, patterns: int) -> Array:
    """How many sets of each pattern have each label, after the complements were taken."""
    signs = np.where(flipped, -1.0, 1.0)
    groups = sparse.csr_array((signs, (pattern, np.arange(len(pattern)))), shape=(patterns, len(pattern)))
    turned = np.bincount(pattern[flipped], minlength=patterns)
    return np.asarray((groups @ matrix).toarray()) + turned[:, None]
