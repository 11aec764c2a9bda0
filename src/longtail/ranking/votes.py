"""`RowLabels`: the labels of training rows, and the votes that rows similar to a new one give to their labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail.arrays import Array
from longtail.native import kernels
from longtail.parallel import map_blocks
from longtail.ranking.pairs import Pairs, row_blocks
from longtail.store import State

NEIGHBOURS = 30
NEAREST = 10  # of the neighbours, counted separately


@dataclass(frozen=True)
class RowLabels:
    """The labels of training row r are ``labels[starts[r]:starts[r + 1]]``.

    The vote of a row is the square of its similarity.

    Parameters
    ----------
    starts : int64 array of n_rows + 1
    labels : int32 array
    n_labels : int
    """

    starts: Array
    labels: Array
    n_labels: int

    @classmethod
    def of(cls, Y: Any) -> RowLabels:
        """The labels of a checked CSR matrix; arrays are shared where their types allow it."""
        return cls(Y.indptr.astype(np.int64, copy=False), Y.indices.astype(np.int32, copy=False), Y.shape[1])

    def most_voted(
        self, neighbours: Array, similarities: Array, n: int, mask: Array | None, n_jobs: int | None
    ) -> tuple[Array, Array]:
        """The n labels with the most votes, only those in `mask`, and their votes; -1 and -inf where there are fewer.

        Parameters
        ----------
        neighbours : int64 array of shape (n_rows, m)
            Training rows; -1 is none.
        similarities : float32 array of the same shape
            At least 0.
        n : int
        mask : bool array of n_labels or None
        n_jobs : int or None
        """
        shape = (len(neighbours), min(n, max(1, self.n_labels)))
        labels, votes = np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.float32)
        weights = similarities**2

        def part(rows: slice) -> None:
            kernels.neighbour_votes(
                neighbours,
                weights,
                rows.start,
                rows.stop,
                self.starts,
                self.labels,
                self.n_labels,
                mask,
                labels,
                votes,
            )

        for _ in map_blocks(part, row_blocks(len(neighbours), n_jobs), n_jobs, blas=False):
            pass
        return labels, votes

    def votes(self, pairs: Pairs, neighbours: Array, similarities: Array, n: int, n_jobs: int | None) -> Array:
        """The votes of the first n neighbours for each pair."""
        neighbours = np.ascontiguousarray(neighbours[:, :n])
        weights = np.ascontiguousarray(similarities[:, :n] ** 2)
        out = np.empty(len(pairs), dtype=np.float32)

        def part(rows: slice) -> None:
            kernels.pair_votes(
                neighbours,
                weights,
                rows.start,
                rows.stop,
                self.starts,
                self.labels,
                self.n_labels,
                pairs.starts,
                pairs.labels,
                out,
            )

        for _ in map_blocks(part, row_blocks(len(neighbours), n_jobs), n_jobs, blas=False):
            pass
        return out

    def to_arrays(self) -> dict[str, Array]:
        """The arrays for a `State`."""
        return {"label_starts": self.starts, "labels": self.labels}

    @classmethod
    def from_state(cls, state: State, n_rows: int, n_labels: int) -> RowLabels:
        """Build it again, or raise `ModelFormatError`; the kernels ignore rows and labels that do not exist."""
        starts = state.array("label_starts", np.int64, (n_rows + 1,))
        return cls(starts, state.array("labels", np.int32, (None,)), n_labels)
