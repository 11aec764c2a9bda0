"""`label_order`: which label gets which code. Labels that are close in this order share outputs of the first heads.

The paper on multi-head encoding finds that the order hardly matters for a network that fits its training data. For
smaller models and coarser heads, compare the orders.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from longtail.arrays import Array
from longtail.errors import InvalidInput
from longtail.labels.cluster import cluster_labels
from longtail.labels.vectors import label_vectors
from longtail.validation import as_labels, check_whole

_KINDS = ("given", "random", "frequency", "clustered")
_TERMS_OF_A_LABEL = 100  # as for label trees; more terms do not improve the clusters
_LEAF_SIZE = 2  # small, since labels within a leaf are not ordered by similarity


def label_order(kind: str, n_labels: int, X: Any = None, Y: Any = None, random_state: int | None = 0) -> Array:
    """The position of each label in the order of codes.

    Parameters
    ----------
    kind : {"given", "random", "frequency", "clustered"}
        - "given": the order of label ids.
        - "random": a random order.
        - "frequency": labels with the most rows first, ties to the lowest label.
        - "clustered": similar labels next to each other, in the order of a label tree; labels without rows or features
          last.
    n_labels : int
    X : sparse matrix or array of shape (n_rows, n_features) or None
        Required for "clustered". Usually with rows of norm 1.
    Y : sparse or dense 0/1 matrix of shape (n_rows, n_labels) or None
        Required for "frequency" and "clustered".
    random_state : int or None
        Random seed for "random" and "clustered"; None gives a different order each time.

    Returns
    -------
    int64 array of n_labels
        A permutation: ``position[label]`` is the position of `label`, and ``np.argsort(position)`` the label at each
        position.

    Examples
    --------
    >>> label_order("frequency", 3, Y=[[0, 1, 1], [0, 0, 1]]).tolist()
    [2, 1, 0]
    """
    if kind not in _KINDS:
        raise InvalidInput(f"kind is {kind!r}; expected one of {', '.join(repr(known) for known in _KINDS)}")
    n_labels = check_whole("n_labels", n_labels)
    if random_state is not None:
        random_state = check_whole("random_state", random_state, 0)
    for name, value, users in (("X", X, ("clustered",)), ("Y", Y, ("frequency", "clustered"))):
        if value is None and kind in users:
            raise InvalidInput(f"the order {kind!r} needs {name}; pass it, or use 'given' or 'random'")
    if kind == "given":
        return np.arange(n_labels, dtype=np.int64)
    if kind == "random":
        return np.random.default_rng(random_state).permutation(n_labels).astype(np.int64, copy=False)
    Y = as_labels(Y)
    if Y.shape[1] != n_labels:
        raise InvalidInput(f"Y has {Y.shape[1]} labels, but n_labels is {n_labels}")
    if kind == "frequency":
        return _positions(np.argsort(-np.bincount(Y.indices, minlength=n_labels), kind="stable"))
    vectors = label_vectors(X, Y, top=_TERMS_OF_A_LABEL)
    ordered, _ = cluster_labels(vectors, leaf_size=_LEAF_SIZE, random_state=random_state).label_order()
    absent = np.setdiff1d(np.arange(n_labels), ordered, assume_unique=True)
    return _positions(np.concatenate([ordered, absent]))


def kept_labels(counts: Array, trim: float) -> Array:
    """Ids of the labels that occur, without the rarest share `trim`; ties go to the lowest label.

    Examples
    --------
    >>> kept_labels(np.array([3, 0, 1, 1, 2]), trim=0.5).tolist()
    [0, 4]
    """
    found = np.flatnonzero(counts)
    order = np.lexsort((-found, counts[found]))
    return np.sort(found[order[int(trim * len(found)) :]]).astype(np.int64)


def _positions(labels: Array) -> Array:
    """The position of each label in a list of all labels."""
    position = np.empty(len(labels), dtype=np.int64)
    position[labels] = np.arange(len(labels))
    return position
