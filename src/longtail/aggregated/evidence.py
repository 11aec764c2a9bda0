"""Does placing labels help? Judged on groups that were held out, whose labels are known but not their rows'.

Each member of a held-out group predicts as many labels as members have on average. Where labels are counted, the
predictions of all members together should be the group's labels, each as often as it is there. Where they are not, each
prediction should be among the group's labels, and together they should cover them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from longtail.aggregated.aggregation import Aggregation

_MOST_PREDICTED = 100  # labels of a row


def explained(model: Any, X: Any, held_out: Aggregation) -> float:
    """How much of the labels of groups a model explains, between 0 and 1: the mean over groups."""
    sizes = np.diff(held_out.group_indptr)
    slots = np.bincount(held_out.label_groups, weights=held_out.counts, minlength=held_out.n_groups)
    judged = np.flatnonzero((sizes > 0) & (slots > 0))
    if not len(judged):
        return 0.0
    each = np.clip(np.round(slots / np.maximum(1, sizes)), 1, _MOST_PREDICTED).astype(np.int64)
    rows, places = np.unique(held_out.group_rows, return_inverse=True)
    top, _ = model.predict_topk(X[rows], int(min(each.max(), held_out.n_labels)))
    groups = np.repeat(np.arange(held_out.n_groups), sizes)
    predicted = top[places]
    wanted = (np.arange(predicted.shape[1]) < each[groups][:, None]) & (predicted >= 0)
    counts = sparse.coo_array(
        (np.ones(int(wanted.sum())), (np.repeat(groups, wanted.sum(axis=1)), predicted[wanted])),
        shape=(held_out.n_groups, held_out.n_labels),
    ).tocsr()
    truth = sparse.csc_array(
        (held_out.counts.astype(np.float64), held_out.label_groups, held_out.label_indptr), shape=counts.shape
    ).tocsr()
    total = np.maximum(1, counts.sum(axis=1))[judged]
    if (held_out.counts > 1).any():
        shared = counts.minimum(truth).sum(axis=1)[judged]
        return float(np.mean(2 * shared / (total + slots[judged])))
    hits = counts.multiply(truth).sum(axis=1)[judged]
    covered = (counts.minimum(truth)).sum(axis=1)[judged]
    precision, recall = hits / total, covered / slots[judged]
    return float(np.mean(2 * precision * recall / np.maximum(precision + recall, 1e-12)))
