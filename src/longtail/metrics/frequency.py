"""Head, middle and tail: labels grouped by how often they occur in the training data.

The groups have equal volume: each holds about a third of all training occurrences, so the head is a few labels and
the tail is most of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from longtail.arrays import Array
from longtail.errors import InvalidInput

GROUP_NAMES = ("head", "middle", "tail", "unseen")


def frequency_groups(train_label_counts: Any) -> Array:
    """Put each label into a group by its training count: 0 head, 1 middle, 2 tail, 3 unseen.

    A label is head where the labels more frequent than it hold less than a third of all training occurrences, tail
    where the labels rarer than it do, and middle elsewhere. Labels of equal count share a group; where they are so
    many that both hold, the smaller share decides. A label that never occurs in training is unseen: no model can
    learn it from these data.

    Parameters
    ----------
    train_label_counts : array-like of shape (n_labels,)
        Rows of each label in the training data.

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
        raise InvalidInput("train_label_counts has a negative or missing count; expected 0 or more")
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
