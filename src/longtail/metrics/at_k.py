"""Metrics at k, one function each, as published tables use them.

Every function takes the truth as a 0/1 matrix (rows x labels) and the ranking as an array of label ids: one row per row
of truth, best first, -1 if there are fewer labels. `docs/metrics.md` has every formula and edge case.
"""

from __future__ import annotations

from typing import Any

from longtail.metrics.judgement import Judgement


def precision_at_k(truth: Any, top_labels: Any, k: int) -> float:
    """Compute P@k: the share of the first k places that hold a true label, averaged over all rows.

    Rows without true labels and empty places (-1) count as 0.

    Parameters
    ----------
    truth : sparse or dense 0/1 matrix of shape (n_rows, n_labels)
    top_labels : integer array of shape (n_rows, at least k)
        Label ids, best first, -1 if there are fewer.
    k : int

    Examples
    --------
    >>> precision_at_k([[1, 1, 0], [0, 0, 1]], [[0, 2], [1, 2]], k=2)
    0.5
    """
    return Judgement.of(truth, top_labels).precision(k)


def recall_at_k(truth: Any, top_labels: Any, k: int) -> float:
    """Compute R@k: the share of a row's true labels found in its first k places, averaged over all rows.

    Rows without true labels count as 0. Parameters as in `precision_at_k`.

    Examples
    --------
    >>> recall_at_k([[1, 1, 0], [0, 0, 1]], [[0, 2], [1, 2]], k=2)
    0.75
    """
    return Judgement.of(truth, top_labels).recall(k)


def f1_at_k(truth: Any, top_labels: Any, k: int) -> float:
    """Compute F1@k: the harmonic mean of `precision_at_k` and `recall_at_k` (not the mean F1 of the rows).

    Examples
    --------
    >>> f1_at_k([[1, 1, 0], [0, 0, 1]], [[0, 2], [1, 2]], k=2)
    0.6
    """
    return Judgement.of(truth, top_labels).f1(k)


def ndcg_at_k(truth: Any, top_labels: Any, k: int) -> float:
    """Compute nDCG@k: like precision, but a hit at rank r counts 1/log2(r + 1), relative to the best possible ranking.

    The best possible ranking of a row has min(k, true labels of the row) hits. Rows without true labels count as 0.
    Parameters as in `precision_at_k`.

    Examples
    --------
    >>> round(ndcg_at_k([[1, 1, 0], [0, 0, 1]], [[0, 2], [1, 2]], k=2), 4)
    0.622
    """
    return Judgement.of(truth, top_labels).ndcg(k)


def psp_at_k(truth: Any, top_labels: Any, k: int, inverse_propensity: Any) -> float:
    """Compute PSP@k: precision with hits weighted by inverse propensity, relative to the best possible.

    The ratio of two sums over all rows: the weights of the hits in the first k places, and the k largest weights of
    each row's true labels. With equal weights it is P@k divided by the largest possible P@k.

    Parameters
    ----------
    truth, top_labels, k
        As in `precision_at_k`.
    inverse_propensity : array-like of shape (n_labels,)
        Weights of the labels, from `longtail.metrics.inverse_propensity` of the training data.

    Examples
    --------
    >>> psp_at_k([[1, 1, 0], [0, 0, 1]], [[0, 2], [1, 2]], k=1, inverse_propensity=[2, 3, 5])
    0.25
    """
    return Judgement.of(truth, top_labels, inverse_propensity).psp(k)


def psndcg_at_k(truth: Any, top_labels: Any, k: int, inverse_propensity: Any) -> float:
    """Compute PSnDCG@k: nDCG with hits weighted by inverse propensity, relative to the best possible.

    The ratio of two sums over all rows of discounted weights, where each row is divided by the unweighted DCG of its
    best ranking. Parameters as in `psp_at_k`.

    Examples
    --------
    >>> round(psndcg_at_k([[1, 1, 0], [0, 0, 1]], [[0, 2], [1, 2]], k=2, inverse_propensity=[2, 3, 5]), 4)
    0.5754
    """
    return Judgement.of(truth, top_labels, inverse_propensity).psndcg(k)


def coverage_at_k(truth: Any, top_labels: Any, k: int) -> float:
    """Compute coverage@k: the share of the labels with a true row that are hit in the first k places of some row.

    A truth without labels gives 0. Parameters as in `precision_at_k`.

    Examples
    --------
    >>> round(coverage_at_k([[1, 1, 0], [0, 0, 1]], [[0, 2], [1, 2]], k=2), 4)
    0.6667
    """
    return Judgement.of(truth, top_labels).coverage(k)


def macro_precision_at_k(truth: Any, top_labels: Any, k: int) -> float:
    """Compute macro-P@k: for each label, the share of its appearances in a top k that are right; the mean over labels.

    All labels count, and a label that appears in no top k counts as 0, so a ranking that has only frequent labels
    scores low. Parameters as in `precision_at_k`.

    Examples
    --------
    >>> macro_precision_at_k([[1, 1, 0], [0, 0, 1]], [[0, 2], [1, 2]], k=2)
    0.5
    """
    return Judgement.of(truth, top_labels).macro_precision(k)


def macro_recall_at_k(truth: Any, top_labels: Any, k: int) -> float:
    """Compute macro-R@k: for each label, the share of its true rows that have it in their top k; the mean over labels.

    Labels without a true row have no recall and are left out. Parameters as in `precision_at_k`.

    Examples
    --------
    >>> round(macro_recall_at_k([[1, 1, 0], [0, 0, 1]], [[0, 2], [1, 2]], k=2), 4)
    0.6667
    """
    return Judgement.of(truth, top_labels).macro_recall(k)
