"""Gather weights label block by label block and drop the small ones on the way.

The dense matrix of all features and labels exists only if all weights are kept. Otherwise memory stays within a small
multiple of the kept weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.estimator import read_prune
from longtail.parallel import split

_STRIP = 2**18
_ENTRY_BYTES = 12  # of a gathered weight: value, feature and label


@dataclass(frozen=True)
class Sparsification:
    """Which weights to keep; at most one of the three is given.

    Parameters
    ----------
    density : float or None
        Share of all n_features x n_labels weights, the largest by magnitude over all labels.
    top : int
        Number of weights of each label, the largest by magnitude; 0 keeps all.
    smallest : float
        Smallest magnitude kept.
    """

    density: float | None = None
    top: int = 0
    smallest: float = 0.0

    @classmethod
    def of(cls, density: float | None, prune: float | None) -> Sparsification:
        """From the parameters of an estimator."""
        smallest, top = read_prune(prune or 0.0)
        return cls(density, top, smallest)

    @property
    def is_identity(self) -> bool:
        return self.density in (None, 1) and not self.top and not self.smallest

    @property
    def prunes(self) -> bool:
        """Whether each label keeps weights of its own, whatever those of other labels are."""
        return bool(self.top or self.smallest)

    def collector(self, n_features: int, n_labels: int) -> LargestOverall:
        """An empty collector of the largest weights of all labels, for a model of this size."""
        assert self.density is not None
        return LargestOverall(n_features, n_labels, round(self.density * n_features * n_labels))

    def pruned(self, weights: Array) -> dict[str, Array]:
        """The weights kept of some labels, one label per row: their number for each label, features and values."""
        return _top(weights, self.top) if self.top else _at_least(weights, np.float32(self.smallest))

    def memory(self, n_features: int, n_labels: int) -> int:
        """Peak bytes of the gathered weights; a guess if only a smallest magnitude is given."""
        everything = n_features * n_labels
        if self.is_identity:
            return 4 * everything
        if self.top:
            return 2 * _ENTRY_BYTES * n_labels * min(self.top, n_features)
        if self.density is not None:
            return 3 * _ENTRY_BYTES * round(self.density * everything)
        return 2 * _ENTRY_BYTES * everything // 10


def columns_of(pruned: Mapping[str, Array], n_features: int) -> Any:
    """The CSR coefficients, n_features x n_labels, from what `Sparsification.pruned` keeps of all labels."""
    ends = np.concatenate([[0], np.cumsum(pruned["lengths"])])
    by_label = sparse.csc_array((pruned["values"], pruned["features"], ends), shape=(n_features, len(ends) - 1))
    return by_label.tocsr()


def _strips(weights: Array) -> list[slice]:
    """Rows to search at a time, so that the positions found take little memory beside the block itself."""
    return split(len(weights), max(1, _STRIP // max(1, weights.shape[1])))


def _at_least(weights: Array, smallest: np.float32) -> dict[str, Array]:
    parts = [_entries(weights[rows], *np.nonzero(np.abs(weights[rows]) >= smallest)) for rows in _strips(weights)]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _top(weights: Array, count: int) -> dict[str, Array]:
    count = min(count, weights.shape[1])
    largest = np.argpartition(np.abs(weights), -count, axis=1)[:, -count:]
    largest.sort(axis=1)
    labels, places = np.nonzero(np.take_along_axis(weights, largest, axis=1))
    return _entries(weights, labels, largest[labels, places])


def _entries(weights: Array, labels: Array, features: Array) -> dict[str, Array]:
    return {
        "lengths": np.bincount(labels, minlength=len(weights)),
        "features": features.astype(np.int32),
        "values": weights[labels, features],
    }


class LargestOverall:
    """Exactly the `count` largest of all: a weight below the current `count`-th largest can be dropped for good."""

    def __init__(self, n_features: int, n_labels: int, count: int) -> None:
        self._shape = (n_features, n_labels)
        index = np.int32 if max(self._shape) < 2**31 else np.int64
        self._labels: list[Array] = [np.zeros(0, dtype=index)]
        self._features: list[Array] = [np.zeros(0, dtype=index)]
        self._values: list[Array] = [np.zeros(0, dtype=np.float32)]
        self._index = index
        self._count = count
        self._floor = np.float32(0)
        self._held = 0

    def add(self, first_label: int, weights: Array) -> None:
        """Take the weights of labels `first_label` onwards, one label per row; blocks come in order."""
        for rows in _strips(weights):
            labels, features = np.nonzero(np.abs(weights[rows]) > self._floor)
            self._labels.append((labels + (first_label + rows.start)).astype(self._index, copy=False))
            self._features.append(features.astype(self._index, copy=False))
            self._values.append(weights[rows][labels, features])
            self._held += len(labels)
            if self._held > 2 * self._count:
                self._trim()

    def _trim(self) -> None:
        labels, features, values = (np.concatenate(p) for p in (self._labels, self._features, self._values))
        if len(values) > self._count:
            magnitude = np.abs(values)
            floor = np.partition(magnitude, -self._count)[-self._count] if self._count else np.float32(np.inf)
            chosen = magnitude > floor
            at_floor = np.flatnonzero(magnitude == floor)
            chosen[at_floor[: self._count - int(chosen.sum())]] = True
            labels, features, values = labels[chosen], features[chosen], values[chosen]
            self._floor = floor
        self._labels, self._features, self._values = [labels], [features], [values]
        self._held = len(values)

    def finish(self) -> Any:
        """The coefficients, n_features x n_labels, as CSR."""
        self._trim()
        values, features, labels = (np.concatenate(part) for part in (self._values, self._features, self._labels))
        self._labels, self._features, self._values = [], [], []
        coefficients = sparse.csr_array((values, (features, labels)), shape=self._shape)
        coefficients.sum_duplicates()
        return coefficients
