"""`Pairs`: the candidate labels of each row, and columns of numbers about them; `SparseRows`: a matrix for kernels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.errors import ModelFormatError
from longtail.native import kernels
from longtail.parallel import map_blocks, resolve_jobs, split
from longtail.store import State
from longtail.validation import own

_FEWEST_ROWS, _MOST_ROWS = 64, 1024  # fewer are not worth a thread


def row_blocks(n_rows: int, n_jobs: int | None) -> list[slice]:
    """Blocks of rows for the threads."""
    if n_rows <= _FEWEST_ROWS:
        return [slice(0, n_rows)]
    return split(n_rows, int(np.clip(-(-n_rows // resolve_jobs(n_jobs)), _FEWEST_ROWS, _MOST_ROWS)))


@dataclass(frozen=True)
class SparseRows:
    """A CSR matrix with the integer types of the kernels.

    Parameters
    ----------
    indptr : int64 array of n_rows + 1
    indices : int32 array
    data : float32 array
    n_columns : int
    """

    indptr: Array
    indices: Array
    data: Array
    n_columns: int

    @classmethod
    def of(cls, matrix: Any) -> SparseRows:
        """The rows of a checked CSR matrix; arrays are shared where their types allow it."""
        return cls(
            matrix.indptr.astype(np.int64, copy=False),
            matrix.indices.astype(np.int32, copy=False),
            matrix.data.astype(np.float32, copy=False),
            matrix.shape[1],
        )

    @property
    def n_rows(self) -> int:
        return len(self.indptr) - 1

    def lengths(self) -> Array:
        """The number of entries of each row."""
        return np.diff(self.indptr)

    def regrouped(self, rows: Array, new: Any) -> Any:
        """A CSR matrix of the `rows` of this one; the row -1 stands for the next row of `new`, or an empty one.

        Column numbers that do not exist, which only a damaged file has, are left out.
        """
        there = (self.indices >= 0) & (self.indices < self.n_columns)
        ends = np.concatenate([[0], np.cumsum(there)])[self.indptr]
        shape = (self.n_rows, self.n_columns)
        known = sparse.csr_array((self.data[there], self.indices[there], ends), shape=shape)
        added = np.flatnonzero(rows < 0)
        more = sparse.csr_array((len(added), self.n_columns), dtype=np.float32) if new is None else new
        places = rows.copy()
        places[added] = self.n_rows + np.arange(len(added))
        return own(sparse.csr_array(sparse.vstack([known, more], format="csr")[places]))

    def to_state(self) -> State:
        arrays = {"indptr": self.indptr, "indices": self.indices, "data": self.data}
        return State("SparseRows", facts={"n_columns": self.n_columns}, arrays=arrays)

    @classmethod
    def from_state(cls, state: State, n_rows: int, n_columns: int) -> SparseRows:
        """Build it again, or raise `ModelFormatError`; the kernels ignore column numbers that do not exist."""
        indptr = state.array("indptr", np.int64, (n_rows + 1,))
        indices = state.array("indices", np.int32, (None,))
        data = state.array("data", np.float32, indices.shape)
        if indptr[0] != 0 or indptr[-1] != len(indices) or (indptr[1:] < indptr[:-1]).any():
            raise ModelFormatError(f"{state.kind}: 'indptr' does not divide the {len(indices)} entries")
        if state.size("n_columns") != n_columns:
            raise ModelFormatError(f"{state.kind}: {state.facts['n_columns']} columns; expected {n_columns}")
        return cls(indptr, indices, data, n_columns)


@dataclass(frozen=True)
class Pairs:
    """The candidate labels of each row: ``labels[starts[r]:starts[r + 1]]`` for row r, ascending.

    Examples
    --------
    >>> pairs = Pairs.join([np.array([[4, 2], [7, -1]]), np.array([[2], [0]])])
    >>> pairs.starts.tolist(), pairs.labels.tolist()
    ([0, 2, 4], [2, 4, 0, 7])
    >>> pairs.column(np.array([[4, 2], [7, -1]]), np.array([[0.9, 0.5], [0.3, 0.0]]), default=-1).tolist()
    [0.5, 0.8999999761581421, -1.0, 0.30000001192092896]
    """

    starts: Array
    labels: Array

    @classmethod
    def join(cls, found: list[Array], n_jobs: int | None = None) -> Pairs:
        """The distinct labels that several sources found for each row; -1 is no label."""
        n_rows = len(found[0])
        parts = list(
            map_blocks(
                lambda rows: kernels.join_candidates(found, rows.start, rows.stop),
                row_blocks(n_rows, n_jobs),
                n_jobs,
                blas=False,
            )
        )
        starts = np.zeros(n_rows + 1, dtype=np.int64)
        np.cumsum(np.concatenate([counts for counts, _ in parts]), out=starts[1:])
        return cls(starts, np.concatenate([labels for _, labels in parts]))

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def rows(self) -> Array:
        """The row of each pair."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    @cached_property
    def _keys(self) -> Array:
        return (self.rows << 32) + self.labels

    def column(self, labels: Array, values: Array, default: float) -> Array:
        """One number for each pair from a matrix of labels that are all among the pairs, and their values."""
        rows, places = np.nonzero(labels >= 0)
        column = np.full(len(self), default, dtype=np.float32)
        column[np.searchsorted(self._keys, (rows << 32) + labels[rows, places])] = values[rows, places]
        return column

    def of_rows(self, values: Array) -> Array:
        """A number of each row, repeated for its pairs."""
        return np.asarray(values, dtype=np.float32)[self.rows]

    def dots(self, Q: SparseRows, vectors: SparseRows, n_jobs: int | None = None) -> Array:
        """The product of each row of `Q` with the vectors of its candidate labels."""
        out = np.empty(len(self), dtype=np.float32)

        def part(rows: slice) -> None:
            kernels.pair_dots(
                Q.indptr,
                Q.indices,
                Q.data,
                rows.start,
                rows.stop,
                self.starts,
                self.labels,
                vectors.indptr,
                vectors.indices,
                vectors.data,
                Q.n_columns,
                out,
            )

        for _ in map_blocks(part, row_blocks(Q.n_rows, n_jobs), n_jobs, blas=False):
            pass
        return out

    def best(self, scores: Array, k: int) -> tuple[Array, Array]:
        """The k labels of each row with the highest scores, ties to the lowest label; -1 and -inf where fewer."""
        order = np.lexsort((self.labels, -scores, self.rows))
        place = np.arange(len(self)) - np.repeat(self.starts[:-1], np.diff(self.starts))
        kept = place < k
        labels = np.full((len(self.starts) - 1, k), -1, dtype=np.int64)
        best = np.full(labels.shape, -np.inf, dtype=np.float32)
        labels[self.rows[kept], place[kept]] = self.labels[order[kept]]
        best[self.rows[kept], place[kept]] = scores[order[kept]]
        return labels, best

    def matrix(self, given: Array, n_labels: int) -> Any:
        """A 0/1 matrix of rows and labels with the pairs in the mask `given`."""
        ends = np.concatenate([[0], np.cumsum(given)])[self.starts]
        ones = np.ones(int(given.sum()), dtype=np.int8)
        return sparse.csr_array((ones, self.labels[given], ends), shape=(len(ends) - 1, n_labels))
