"""`FeatureRows`: what one pass over labelled rows of features leaves to know of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from longtail.arrays import Array
from longtail.checking.contents import Digests, duplicate_findings, id_findings, unlabelled
from longtail.checking.counting import equal_groups
from longtail.checking.finding import Example, Finding
from longtail.checking.labels import LabelTable
from longtail.data import Batch
from longtail.printable import counted

_MIXERS = np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB], dtype=np.uint64)
_SHIFTS = np.array([30, 27, 31], dtype=np.uint64)


class FeatureRows:
    """Collects what a check needs to know of rows of features.

    Parameters
    ----------
    batch : Batch
        The first rows; they say how many features and which labels there are.
    most : int
        The number of examples to keep of each finding.
    """

    def __init__(self, batch: Batch, most: int) -> None:
        width = batch.rows.shape[1]
        self.labels = LabelTable(batch.label_names)
        self.n_rows = 0
        self.n_labels = np.zeros(1, dtype=np.int64)
        self.ids = Digests()
        self._most = most
        self._hashes: list[Array] = []
        self._label_sets: list[Array] = []
        self._unlabelled = np.zeros(0, dtype=np.int64)
        self._empty = np.zeros(0, dtype=np.int64)
        self._n_unlabelled = self._n_empty = 0
        # A feature is constant if all rows have its first value.
        self._n_values = np.zeros(width, dtype=np.int64)
        self._value = np.zeros(width, dtype=np.float32)
        self._varies = np.zeros(width, dtype=bool)

    @property
    def n_features(self) -> int:
        return len(self._n_values)

    @property
    def hashes(self) -> Array:
        return np.concatenate(self._hashes) if self._hashes else np.zeros(0, np.int64)

    @property
    def places(self) -> Array:
        return np.arange(1, self.n_rows + 1)

    def add(self, batch: Batch) -> None:
        """Look at some rows."""
        first_place = self.n_rows + 1
        features, labels = batch.rows, batch.labels
        self.n_rows += features.shape[0]
        self.labels.add_rows(first_place, labels)
        n_labels = np.diff(labels.indptr)
        found = np.bincount(n_labels)
        length = max(len(found), len(self.n_labels))
        self.n_labels = np.pad(found, (0, length - len(found))) + np.pad(
            self.n_labels, (0, length - len(self.n_labels))
        )
        missing = np.flatnonzero(n_labels == 0)
        self._unlabelled = np.append(self._unlabelled, first_place + missing)[: self._most]
        self._n_unlabelled += len(missing)
        empty = np.flatnonzero(np.diff(features.indptr) == 0)
        self._empty = np.append(self._empty, first_place + empty)[: self._most]
        self._n_empty += len(empty)
        self._hashes.append(row_hashes(features))
        self._label_sets.append(row_hashes(labels))
        self._add_values(features)
        for number, name in enumerate(batch.row_names or (), start=first_place):
            self.ids.add(number, name)

    def _add_values(self, features: Any) -> None:
        columns, values = features.indices, features.data
        new = self._n_values[columns] == 0
        self._value[columns[new]] = values[new]
        self._varies[columns[values != self._value[columns]]] = True
        self._n_values += np.bincount(columns, minlength=len(self._n_values))

    def findings(self) -> Iterator[Finding]:
        """What is wrong with the features and with the labels of rows."""
        yield from unlabelled(
            self._n_unlabelled, self.n_rows, [Example((place,)) for place in self._unlabelled.tolist()]
        )
        if self._n_empty:
            yield Finding(
                "rows_without_features",
                "error" if self._n_empty == self.n_rows else "warning",
                self._n_empty,
                f"{counted(self._n_empty, 'row')} ha{'s' if self._n_empty == 1 else 've'} no feature",
                "Leave out these rows; nothing can be learned from them.",
                [Example((place,)) for place in self._empty.tolist()],
            )
        hashes = self.hashes
        kept = hashes != 0  # rows without features
        groups = equal_groups(hashes[kept])
        label_sets = np.concatenate(self._label_sets)[kept]
        yield from duplicate_findings(groups, label_sets, self.places[kept], self._most, "features")
        yield from id_findings(self.ids, 0, (), self._most)
        unused = np.flatnonzero(self._n_values == 0)
        if len(unused):
            yield Finding(
                "unused_features",
                "note",
                len(unused),
                f"{len(unused):,} of {counted(self.n_features, 'feature')} stand{'s' * (len(unused) == 1)} in no row",
                "They cost little; leave them, unless rows are missing.",
                [Example((), f"feature {column}") for column in unused[: self._most].tolist()],
            )
        constant = np.flatnonzero((self._n_values == self.n_rows) & ~self._varies)
        if len(constant) and self.n_rows > 1:
            yield Finding(
                "constant_features",
                "note",
                len(constant),
                f"{len(constant):,} of {counted(self.n_features, 'feature')} "
                f"ha{'s' if len(constant) == 1 else 've'} the same value in every row",
                "They tell no rows apart; leave them out.",
                [
                    Example((), f"feature {column} is {self._value[column]:g}")
                    for column in constant[: self._most].tolist()
                ],
            )


def row_hashes(matrix: Any) -> Array:
    """A hash of the entries of each row of a CSR matrix, whatever their order; 0 for an empty row.

    >>> from scipy import sparse
    >>> hashes = row_hashes(sparse.csr_array(np.array([[1, 0, 2], [0, 0, 0], [1, 0, 2], [2, 0, 1]], dtype=np.float32)))
    >>> bool(hashes[0] == hashes[2]), bool(hashes[0] == hashes[3]), int(hashes[1])
    (True, False, 0)
    """
    bits = np.ascontiguousarray(matrix.data, dtype=np.float32).view(np.uint32).astype(np.uint64)
    mixed = (matrix.indices.astype(np.uint64) << np.uint64(32) | bits) + np.uint64(1)
    for factor, shift in zip(_MIXERS, _SHIFTS, strict=True):
        mixed *= factor
        mixed ^= mixed >> shift
    before = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])
    return (before[matrix.indptr[1:]] - before[matrix.indptr[:-1]]).view(np.int64)
