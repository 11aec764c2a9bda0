"""A synthetic data set of the shape of Amazon-670K, with any number of labels, from a seed.

Labels come in families of ten. A label has its own features and those of its family, mixed with common words. A row is
about one family, with a few labels of other families.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array

FULL_LABELS, FULL_ROWS, FEATURES = 670_000, 490_000, 136_000
LABELS_PER_ROW, NONZEROS_PER_ROW = 5.45, 76
FAMILY = 10
OWN_FEATURES, FAMILY_FEATURES, SHOWN_PER_LABEL = 4, 4, 5
SHARE_OF_FAMILY = 0.6
# Features and labels that are drawn twice count once, so a few more must be drawn.
DRAWN_LABELS, DRAWN_FEATURES = 1.16, 1.24
BLOCK_ROWS = 50_000


@dataclass(frozen=True)
class Synthetic:
    """Training and test rows in CSR; features have unit length."""

    X: Any
    Y: Any
    X_test: Any
    Y_test: Any


def synthesise(n_labels: int, *, seed: int = 0, n_features: int = FEATURES, test_rows: int | None = None) -> Synthetic:
    """Make a data set with `n_labels` labels and rows in proportion; nearly every label has a row.

    Examples
    --------
    >>> made = synthesise(1000, n_features=5000)
    >>> made.X.shape, made.Y.shape, made.X_test.shape
    ((731, 5000), (731, 1000), (1000, 5000))
    """
    rng = np.random.default_rng(seed)
    n_rows = round(n_labels * FULL_ROWS / FULL_LABELS)
    extra = min(20_000, max(1_000, n_rows // 20)) if test_rows is None else test_rows
    n_families = -(-n_labels // FAMILY)
    own = rng.integers(0, n_features, size=(n_labels, OWN_FEATURES), dtype=np.int32)
    family = rng.integers(0, n_features, size=(n_families, FAMILY_FEATURES), dtype=np.int32)
    # Training rows cover the whole label space in random order; test rows take random places.
    places = np.concatenate([rng.permutation(n_rows), rng.integers(0, n_rows, size=extra)])
    features, labels = [], []
    for start in range(0, len(places), BLOCK_ROWS):
        Y = _draw_labels(rng, places[start : start + BLOCK_ROWS], n_rows, n_labels)
        labels.append(Y)
        features.append(_draw_features(rng, Y, own, family, n_features))
    X, Y = sparse.vstack(features, format="csr"), sparse.vstack(labels, format="csr")
    X = _weigh(X, n_rows)
    return Synthetic(X[:n_rows], Y[:n_rows], X[n_rows:], Y[n_rows:])


def _power_law(rng: np.random.Generator, n: int, size: int) -> Array:
    """Random numbers below `n`; number r has a probability proportional to about 1 / (r + 1)."""
    drawn: Array = np.exp(rng.random(size) * np.log(n + 1)).astype(np.int64) - 1
    return np.minimum(drawn, n - 1, out=drawn)


def _draw_labels(rng: np.random.Generator, places: Array, n_rows: int, n_labels: int) -> Any:
    """The labels at each row's place, then others of the same family or of a popular one."""
    first = places * n_labels // n_rows
    past = np.maximum((places + 1) * n_labels // n_rows, first + 1)
    visited = past - first
    visited_rows = np.repeat(np.arange(len(places)), visited)
    offsets = np.arange(len(visited_rows)) - np.repeat(np.cumsum(visited) - visited, visited)
    more = rng.poisson(DRAWN_LABELS * LABELS_PER_ROW - n_labels / n_rows, size=len(places))
    more_rows = np.repeat(np.arange(len(places)), more)
    popular = _power_law(rng, -(-n_labels // FAMILY), len(more_rows))
    families = np.where(rng.random(len(more_rows)) < SHARE_OF_FAMILY, first[more_rows] // FAMILY, popular)
    others = np.minimum(families * FAMILY + _power_law(rng, FAMILY, len(more_rows)), n_labels - 1)
    rows = np.concatenate([visited_rows, more_rows])
    columns = np.concatenate([first[visited_rows] + offsets, others])
    Y = sparse.csr_array((np.ones(len(rows), np.float32), (rows, columns)), shape=(len(places), n_labels))
    Y.sum_duplicates()
    Y.data[:] = 1
    return Y


def _draw_features(rng: np.random.Generator, Y: Any, own: Array, family: Array, n_features: int) -> Any:
    """Counts of a few features of each label of a row, and of common words."""
    of_label = np.repeat(Y.indices, SHOWN_PER_LABEL)
    rows = np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr) * SHOWN_PER_LABEL)
    which = rng.integers(0, OWN_FEATURES + FAMILY_FEATURES, size=len(of_label))
    telling = np.where(
        which < OWN_FEATURES,
        own[of_label, which % OWN_FEATURES],
        family[of_label // FAMILY, which % FAMILY_FEATURES],
    )
    wanted = np.maximum(round(DRAWN_FEATURES * NONZEROS_PER_ROW) - np.diff(Y.indptr) * SHOWN_PER_LABEL, 5)
    common_rows = np.repeat(np.arange(Y.shape[0]), wanted)
    common = _power_law(rng, n_features, len(common_rows))
    rows, columns = np.concatenate([rows, common_rows]), np.concatenate([telling, common])
    X = sparse.csr_array((np.ones(len(rows), np.float32), (rows, columns)), shape=(Y.shape[0], n_features))
    X.sum_duplicates()
    return X


def _weigh(X: Any, n_rows: int) -> Any:
    """Turn counts into tf-idf of unit length, with the frequencies of the first `n_rows` rows."""
    frequencies = np.bincount(X.indices[: X.indptr[n_rows]], minlength=X.shape[1])
    weights = (np.log((1 + n_rows) / (1 + frequencies)) + 1).astype(np.float32)
    X.data = (1 + np.log(X.data)) * weights[X.indices]
    lengths = np.sqrt(np.add.reduceat(X.data.astype(np.float64) ** 2, X.indptr[:-1]))
    X.data = (X.data / np.repeat(lengths, np.diff(X.indptr))).astype(np.float32)
    return X
