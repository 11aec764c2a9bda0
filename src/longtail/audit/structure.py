"""Weights whose argmaxable label sets are known from their structure alone.

If all maximal minors of the weights have one sign, a label set is argmaxable exactly if it changes between active and
inactive fewer than `d` times along the labels (Gantmacher and Krein; theorem 3 of Grivas et al., AAAI 2024).
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.audit.exact import eliminate, whole_numbers
from longtail.errors import InvalidInput
from longtail.validation import as_labels, check_whole

MOST_MINORS = 200_000


def alternations(y: Any) -> Any:
    """How often a label set changes between active and inactive, in the order of the labels.

    Parameters
    ----------
    y : array of 0/1, bool or -1/+1 values, or sparse 0/1 matrix
        One label set, or one per row.

    Returns
    -------
    count : int, or array of int with one count per row

    Examples
    --------
    >>> alternations([1, 1, -1, -1, -1])
    1
    >>> alternations([[0, 1, 0, 1], [1, 1, 1, 1]]).tolist()
    [3, 0]
    """
    if sparse.issparse(y):
        return _sparse_alternations(as_labels(y, name="y"))
    values = np.asarray(y)
    if values.ndim not in (1, 2) or not np.isin(values, (-1, 0, 1)).all():
        raise InvalidInput("y must be one label set or a matrix of them, of 0 and 1 or of -1 and +1")
    if (values == -1).any() and (values == 0).any():
        raise InvalidInput("y mixes -1 and 0; use only one of them for inactive labels")
    active = values > 0
    counts = np.count_nonzero(active[..., 1:] != active[..., :-1], axis=-1)
    return int(counts) if values.ndim == 1 else np.asarray(counts, dtype=np.int64)


def _sparse_alternations(sets: Any) -> Array:
    """Two changes for each run of neighbouring active labels, minus those at the two ends."""
    n_sets, n_labels = sets.shape
    rows = np.repeat(np.arange(n_sets), np.diff(sets.indptr))
    labels = sets.indices
    starts = np.ones(len(labels), dtype=bool)
    starts[1:] = (labels[1:] != labels[:-1] + 1) | (rows[1:] != rows[:-1])
    changes = 2 * np.bincount(rows[starts], minlength=n_sets)
    for end in (0, n_labels - 1):
        changes -= np.bincount(rows[labels == end], minlength=n_sets)
    return changes.astype(np.int64)


def vandermonde_matrix(nodes: Any, d: int) -> Array:
    """Powers 0 to d-1 of increasing nodes, one row per node: all maximal minors are positive.

    Parameters
    ----------
    nodes : sequence of float
        Strictly increasing.
    d : int

    Examples
    --------
    >>> vandermonde_matrix([1, 2, 3], 3).tolist()
    [[1.0, 1.0, 1.0], [1.0, 2.0, 4.0], [1.0, 3.0, 9.0]]
    """
    check_whole("d", d, 1)
    points = np.asarray(nodes, dtype=np.float64)
    if points.ndim != 1 or not np.isfinite(points).all() or not (np.diff(points) > 0).all():
        raise InvalidInput("nodes must be a sequence of finite, strictly increasing numbers")
    if len(points) < d:
        raise InvalidInput(f"{len(points)} nodes for {d} columns; give at least as many nodes as columns")
    return np.asarray(np.vander(points, d, increasing=True))


def add_slack(W: Any, slack: int, random_state: int | np.random.Generator = 0) -> Array:
    """Append `slack` columns drawn uniformly from -1 to 1, times the root mean square of the weights.

    No label set is lost, because the new inputs may stay 0, and small regions of label sets become larger. The draw is
    symmetric on purpose: columns that lean to one side would favour sets of few labels.

    Parameters
    ----------
    W : array of shape (n_labels, d)
    slack : int
    random_state : int or Generator

    Examples
    --------
    >>> add_slack([[1.0], [2.0]], 3).shape
    (2, 4)
    """
    check_whole("slack", slack, 0)
    weights = np.asarray(W, dtype=np.float64)
    if weights.ndim != 2:
        raise InvalidInput(f"W has {weights.ndim} dimensions; expected a matrix of labels x features")
    drawn = np.random.default_rng(random_state).uniform(-1, 1, size=(len(weights), slack))
    scale = float(np.sqrt(np.mean(np.square(weights)))) if weights.size else 0.0
    return np.hstack([weights, drawn * (scale or 1.0)])


def has_one_sign_minors(W: Any) -> bool:
    """Whether all maximal minors of `W` are non-zero and of one sign, in exact arithmetic on the given floats.

    Checks every choice of `d` of the `n` rows, so it is for small matrices.

    Parameters
    ----------
    W : array of shape (n_labels, d), n_labels >= d

    Examples
    --------
    >>> has_one_sign_minors(vandermonde_matrix([-1, 0, 2, 5], 3))
    True
    >>> has_one_sign_minors([[1, 0], [0, 1], [1, 1]])
    False
    """
    weights = np.asarray(W, dtype=np.float64)
    if weights.ndim != 2 or not np.isfinite(weights).all():
        raise InvalidInput("W must be a matrix of finite numbers")
    n, d = weights.shape
    if not 1 <= d <= n:
        raise InvalidInput(f"W is {n} x {d}; maximal minors need a column, and at least as many rows as columns")
    if math.comb(n, d) > MOST_MINORS:
        raise InvalidInput(f"W is {n} x {d} and has {math.comb(n, d):,} minors; the maximum is {MOST_MINORS:,}")
    rows = [whole_numbers(row) for row in weights.tolist()]
    signs = set()
    for chosen in combinations(rows, d):
        minor = [list(row) for row in chosen]
        pivots, sign = eliminate(minor)
        if len(pivots) < d:
            return False
        signs.add(sign * minor[-1][-1] > 0)
        if len(signs) > 1:
            return False
    return True
