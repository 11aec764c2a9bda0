"""NumPy twin of the running top-k."""

from __future__ import annotations

import numpy as np

from longtail.arrays import Array


def update_topk(scores: Array, first_label: int, mask: Array | None, best_labels: Array, best_scores: Array) -> None:
    """Update the k best labels of each row, in place, with the scores of a block of labels from `first_label`.

    Blocks must come in ascending order of labels. Ties go to the lowest label. Labels outside `mask`, or with a score
    of
    -inf or NaN, are ignored. Start with labels -1 and scores -inf.
    """
    width = scores.shape[1]
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    scores = np.where(np.isnan(scores), -np.inf, scores)
    labels = np.broadcast_to(np.arange(first_label, first_label + width), scores.shape)
    labels = np.where(scores > -np.inf, labels, -1)
    all_scores = np.concatenate([best_scores, scores], axis=1)
    all_labels = np.concatenate([best_labels, labels], axis=1)
    order = np.argsort(-all_scores, axis=1, kind="stable")[:, : best_labels.shape[1]]
    best_scores[:] = np.take_along_axis(all_scores, order, axis=1)
    best_labels[:] = np.take_along_axis(all_labels, order, axis=1)
