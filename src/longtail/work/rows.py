"""Rows of sparse matrices in the form that kernels take, and matrices whose rows lie in several pieces."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from longtail.arrays import Array
from longtail.errors import InvalidInput
from longtail.work.results import Results


class Rows(NamedTuple):
    """A sparse matrix, row by row: int64 pointers, int32 columns and float32 values."""

    indptr: Array
    indices: Array
    data: Array
    n_columns: int

    @classmethod
    def of(cls, matrix: Any, name: str = "X") -> Rows:
        """The arrays of a checked matrix."""
        if matrix.shape[1] >= 2**31:
            raise InvalidInput(f"{name} has {matrix.shape[1]} columns; expected fewer than 2^31")
        indptr, indices = matrix.indptr.astype(np.int64, copy=False), matrix.indices.astype(np.int32, copy=False)
        return cls(indptr, indices, matrix.data, matrix.shape[1])

    def __len__(self) -> int:
        return len(self.indptr) - 1


class Stacked:
    """The rows of consecutive pieces with the arrays ``indptr``, ``indices`` and perhaps ``data``, as one matrix.

    Examples
    --------
    >>> one = {"indptr": np.array([0, 2, 3]), "indices": np.array([4, 5, 6])}
    >>> two = {"indptr": np.array([0, 1]), "indices": np.array([7])}
    >>> stacked = Stacked(Results([(0, 2), (2, 3)], [one, two]))
    >>> stacked.take(np.array([2, 0]))[:2]
    (array([0, 1, 3]), array([7, 4, 5]))
    """

    def __init__(self, pieces: Results) -> None:
        self._pieces = pieces
        self._ends = np.array([stop for _, stop in pieces.ranges], dtype=np.int64)

    def lengths(self) -> Array:
        """The number of entries of each row."""
        parts = [np.diff(np.asarray(piece["indptr"])) for piece in self._pieces]
        return np.concatenate([np.zeros(0, np.int64), *parts]).astype(np.int64)

    def take(self, rows: Array) -> tuple[Array, Array, Array | None]:
        """Pointers, columns and, if there are any, values of some rows, in the given order."""
        owners = np.searchsorted(self._ends, rows, side="right")
        used = np.unique(owners)
        if len(used) == 1:
            return self._take_from(int(used[0]), rows)
        lengths = np.zeros(len(rows), dtype=np.int64)
        parts = []
        for owner in used.tolist():
            places = np.flatnonzero(owners == owner)
            parts.append((places, *self._take_from(owner, rows[places])))
            lengths[places] = np.diff(parts[-1][1])
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        if not parts:
            return indptr, np.zeros(0, np.int32), None
        indices = np.empty(indptr[-1], dtype=parts[0][2].dtype)
        data = None if parts[0][3] is None else np.empty(indptr[-1], dtype=parts[0][3].dtype)
        for places, _, own_indices, own_data in parts:
            entries = _entries(indptr[places], lengths[places])
            indices[entries] = own_indices
            if data is not None and own_data is not None:
                data[entries] = own_data
        return indptr, indices, data

    def _take_from(self, owner: int, rows: Array) -> tuple[Array, Array, Array | None]:
        piece, first = self._pieces[owner], self._pieces.ranges[owner][0]
        starts = np.asarray(piece["indptr"])[rows - first].astype(np.int64)
        lengths = np.asarray(piece["indptr"])[rows - first + 1] - starts
        entries = _entries(starts, lengths)
        data = piece["data"][entries] if "data" in piece else None
        return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), piece["indices"][entries], data


def _entries(starts: Array, lengths: Array) -> Array:
    ends = np.cumsum(lengths)
    return np.repeat(starts - ends + lengths, lengths) + np.arange(ends[-1] if len(ends) else 0)


def even_ranges(costs: Array, most: float) -> Sequence[tuple[int, int]]:
    """Ranges of consecutive items whose costs add up to about `most`.

    >>> even_ranges(np.array([1, 1, 5, 1, 1]), 3)
    [(0, 2), (2, 3), (3, 5)]
    """
    ends = np.cumsum(costs)
    bounds, start, before = [0], 0, 0.0
    while start < len(ends):
        stop = max(start + 1, int(np.searchsorted(ends, before + most, side="right")))
        bounds.append(stop)
        start, before = stop, float(ends[stop - 1])
    return list(pairwise(bounds))
