"""Gather weights label block by label block and drop the small ones on the way.

The dense matrix of all features and labels exists only if all weights are kept. Otherwise memory stays within a small
multiple of the kept weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

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

    def collector(self, n_features: int, n_labels: int) -> Collector:
        """An empty collector for a model of this size."""
        if self.is_identity:
            return _KeepAll(n_features, n_labels)
        if self.top:
            return _TopOfEachLabel(n_features, n_labels, self.top)
        if self.smallest:
            return _AtLeast(n_features, n_labels, self.smallest)
        assert self.density is not None
        return _LargestOverall(n_features, n_labels, round(self.density * n_features * n_labels))

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


class Collector(Protocol):
    def add(self, first_label: int, weights: Array) -> None:
        """Take the weights of labels `first_label` onwards, one label per row; blocks come in order."""

    def finish(self) -> Any:
        """The coefficients, n_features x n_labels: an array, or CSR if weights were dropped."""


class _KeepAll:
    def __init__(self, n_features: int, n_labels: int) -> None:
        self._coefficients = np.zeros((n_features, n_labels), dtype=np.float32)

    def add(self, first_label: int, weights: Array) -> None:
        self._coefficients[:, first_label : first_label + len(weights)] = weights.T

    def finish(self) -> Any:
        return self._coefficients


class _Entries:
    """Kept weights as parallel arrays in label order."""

    def __init__(self, n_features: int, n_labels: int) -> None:
        self._shape = (n_features, n_labels)
        index = np.int32 if max(self._shape) < 2**31 else np.int64
        self._labels: list[Array] = [np.zeros(0, dtype=index)]
        self._features: list[Array] = [np.zeros(0, dtype=index)]
        self._values: list[Array] = [np.zeros(0, dtype=np.float32)]
        self._index = index

    def _append(self, labels: Array, features: Array, values: Array) -> None:
        self._labels.append(labels.astype(self._index, copy=False))
        self._features.append(features.astype(self._index, copy=False))
        self._values.append(values)

    def finish(self) -> Any:
        values = np.concatenate(self._values)
        features = np.concatenate(self._features)
        labels = np.concatenate(self._labels)
        self._labels, self._features, self._values = [], [], []
        coefficients = sparse.csr_array((values, (features, labels)), shape=self._shape)
        coefficients.sum_duplicates()
        return coefficients


def _strips(weights: Array) -> list[slice]:
    """Rows to search at a time, so that the positions found take little memory beside the block itself."""
    return split(len(weights), max(1, _STRIP // max(1, weights.shape[1])))


class _AtLeast(_Entries):
    def __init__(self, n_features: int, n_labels: int, smallest: float) -> None:
        super().__init__(n_features, n_labels)
        self._smallest = np.float32(smallest)

    def add(self, first_label: int, weights: Array) -> None:
        for rows in _strips(weights):
            labels, features = np.nonzero(np.abs(weights[rows]) >= self._smallest)
            self._append(labels + (first_label + rows.start), features, weights[rows][labels, features])


class _TopOfEachLabel(_Entries):
    def __init__(self, n_features: int, n_labels: int, count: int) -> None:
        super().__init__(n_features, n_labels)
        self._count = min(count, n_features)

    def add(self, first_label: int, weights: Array) -> None:
        if self._count == 0 or len(weights) == 0:
            return
        largest = np.argpartition(np.abs(weights), -self._count, axis=1)[:, -self._count :]
        largest.sort(axis=1)
        values = np.take_along_axis(weights, largest, axis=1)
        labels, places = np.nonzero(values)
        self._append(labels + first_label, largest[labels, places], values[labels, places])


class _LargestOverall(_Entries):
    """Exactly the `count` largest of all: a weight below the current `count`-th largest can be dropped for good."""

    def __init__(self, n_features: int, n_labels: int, count: int) -> None:
        super().__init__(n_features, n_labels)
        self._count = count
        self._floor = np.float32(0)
        self._held = 0

    def add(self, first_label: int, weights: Array) -> None:
        for rows in _strips(weights):
            labels, features = np.nonzero(np.abs(weights[rows]) > self._floor)
            self._append(labels + (first_label + rows.start), features, weights[rows][labels, features])
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
        self._trim()
        return super().finish()
