"""NumPy twin of the scores of boosted trees."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from longtail.arrays import Array
from longtail.parallel import check_stop

_EVERY_LEAF = np.uint32(0xFFFFFFFF)


def boosted_scores(
    features: Array,
    split_features: Array,
    thresholds: Array,
    masks: Array,
    first_splits: Array,
    leaf_values: Array,
    baseline: float,
    scores: Array,
) -> None:
    """Write the raw score of each pair: `baseline` plus the value of one leaf of each tree, added in order.

    Parameters
    ----------
    features : float32 array (n_pairs, n_features)
    split_features, thresholds, masks : int16, float32 and uint32 arrays, one number per split
        A pair goes to the left if its value of the feature is at most the threshold. Otherwise it goes to the right and
        keeps only the leaves whose bits are set in the mask.
    first_splits : int64 array (n_trees + 1)
        The splits of each tree. A tree has at most 32 leaves, one more than splits; they are numbered from the left.
        The last leaf is set in every mask.
    leaf_values : float64 array
        The leaves of all trees.
    baseline : float
    scores : float64 array (n_pairs,)
        The result.
    """
    scores[:] = baseline
    for tree, (start, stop) in enumerate(pairwise(first_splits.tolist())):
        check_stop()
        goes_left = features[:, split_features[start:stop]] <= thresholds[start:stop]
        kept = np.where(goes_left, _EVERY_LEAF, masks[start:stop])
        left = np.bitwise_and.reduce(kept, axis=1, initial=_EVERY_LEAF)
        lowest = left & (~left + np.uint32(1))
        leaves = np.frexp(lowest.astype(np.float64))[1] - 1
        scores += leaf_values[start + tree + leaves]
