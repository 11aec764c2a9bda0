"""Artificial groups of rows whose labels are known, for experiments."""

from __future__ import annotations

from typing import Any

import numpy as np

from longtail.data import memberships
from longtail.errors import InvalidInput
from longtail.labels import cluster_labels
from longtail.memory import MemoryPlan
from longtail.text import RowScaling
from longtail.validation import as_features

_DEEPEST = 30


def random_groups(n_rows: int, size: int, random_state: int | None = 0) -> Any:
    """Put rows into groups of `size` at random; the last group may be smaller.

    Returns
    -------
    csr_array of shape (n_rows, n_groups)

    Examples
    --------
    >>> random_groups(5, 2).sum(axis=0).tolist()
    [2.0, 2.0, 1.0]
    """
    if size < 1 or n_rows < 0:
        raise InvalidInput(f"n_rows is {n_rows} and size is {size}; a group needs at least one row")
    order = np.random.default_rng(random_state).permutation(n_rows)
    owners = np.empty(n_rows, dtype=np.int64)
    owners[order] = np.arange(n_rows) // size
    return memberships(owners, -(-n_rows // size))


def clustered_groups(
    X: Any, depth: int, noise: float = 0.0, random_state: int | None = 0, n_jobs: int | None = None
) -> Any:
    """Put similar rows into the same group by repeated balanced bisection, into 2^depth groups.

    Parameters
    ----------
    X : sparse matrix or array-like of shape (n_rows, n_features)
        Rows are compared by cosine similarity. Rows of zeros are spread over the groups.
    depth : int
    noise : float
        Expected norm of the Gaussian noise that is added to each row, after scaling it to norm 1, before clustering.
        The noise is dense: it takes 16 bytes per row and feature.
    random_state : int or None
    n_jobs : int or None

    Returns
    -------
    csr_array of shape (n_rows, 2 ** depth)

    Examples
    --------
    >>> clustered_groups([[1.0, 0], [0, 1], [0.9, 0.1], [0, 2]], depth=1).toarray()[:, 0].tolist() in (
    ...     [1, 0, 1, 0], [0, 1, 0, 1]
    ... )
    True
    """
    X = as_features(X)
    n_rows, n_features = X.shape
    if not 0 <= depth <= _DEEPEST or 2**depth > max(1, n_rows):
        raise InvalidInput(f"depth is {depth}: {n_rows} rows cannot form 2^{depth} groups")
    rows = RowScaling().fit_transform(X)
    if noise and n_features:
        MemoryPlan(
            "noise for clustering",
            {"rows x features": 16 * n_rows * n_features},
            "Cluster without noise, or cluster fewer rows.",
        ).check()
        spread = noise / np.sqrt(n_features)
        dense = rows.toarray() + np.random.default_rng(random_state).normal(0, spread, X.shape).astype(np.float32)
        rows = RowScaling().fit_transform(dense)
    hierarchy = cluster_labels(
        rows, leaf_size=max(1, -(-n_rows // 2**depth)), branching=2, random_state=random_state, n_jobs=n_jobs
    )
    children, nodes = hierarchy.children, np.repeat(np.arange(hierarchy.n_nodes), np.diff(hierarchy.pointers))
    leaves = children < 0
    numbers = np.full(n_rows, -1, dtype=np.int64)
    numbers[~children[leaves]] = np.unique(nodes[leaves], return_inverse=True)[1]
    # Rows of zeros go to the smallest groups.
    sizes = np.bincount(numbers[numbers >= 0], minlength=2**depth)
    for row in np.flatnonzero(numbers < 0):
        numbers[row] = np.argmin(sizes)
        sizes[numbers[row]] += 1
    return memberships(numbers, 2**depth)
