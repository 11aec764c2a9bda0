"""`SparseIndex`: the rows of a sparse matrix that are most similar to given rows, found exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.errors import InvalidInput, ModelFormatError, NotEnoughMemory
from longtail.memory import MemoryPlan
from longtail.native import kernels
from longtail.parallel import map_blocks
from longtail.ranking.pairs import row_blocks
from longtail.store import State
from longtail.validation import as_features, check_k


@dataclass(frozen=True)
class SparseIndex:
    """An inverted index of the rows of a matrix, here called items: which items have a feature, and with which value.

    Build it with `SparseIndex.build`.

    Parameters
    ----------
    n_items : int
    starts : int64 array of n_features + 1
        Feature f has the entries ``starts[f]:starts[f + 1]`` of the arrays below.
    items : int32 array
    values : float32 array

    Examples
    --------
    >>> index = SparseIndex.build([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
    >>> items, scores = index.topk([[0.0, 1.0]], k=2)
    >>> items
    array([[2, 1]])
    >>> scores
    array([[1. , 0.8]], dtype=float32)
    """

    n_items: int
    starts: Array
    items: Array
    values: Array

    @classmethod
    def build(cls, matrix: Any, max_df: float = 1.0) -> SparseIndex:
        """Index the rows of a matrix.

        Parameters
        ----------
        matrix : sparse matrix or array of shape (n_items, n_features)
        max_df : float
            Leave out features that occur in more than this share of the items. They cost the most time and
            distinguish items the least.
        """
        matrix = as_features(matrix, "matrix")
        n_items, n_features = matrix.shape
        if not 0 <= max_df <= 1:
            raise InvalidInput(f"max_df is {max_df!r}; expected a number from 0 to 1")
        if max(n_items, n_features) >= 2**31:
            raise InvalidInput(f"the matrix has the shape {matrix.shape}; expected fewer than 2^31 rows and columns")
        counts = np.bincount(matrix.indices, minlength=n_features)
        frequent = counts > max_df * n_items
        if frequent.any():
            kept = ~frequent[matrix.indices]
            ends = np.concatenate([[0], np.cumsum(kept)])[matrix.indptr]
            matrix = sparse.csr_array((matrix.data[kept], matrix.indices[kept], ends), shape=matrix.shape)
        by_feature = matrix.tocsc()
        return cls(
            n_items,
            by_feature.indptr.astype(np.int64, copy=False),
            by_feature.indices.astype(np.int32, copy=False),
            by_feature.data,
        )

    @property
    def n_features(self) -> int:
        return len(self.starts) - 1

    def topk(self, Q: Any, k: int, mask: Array | None = None, n_jobs: int | None = None) -> tuple[Array, Array]:
        """Find the k items with the largest inner products with each row.

        Parameters
        ----------
        Q : sparse matrix or array of shape (n_rows, n_features)
        k : int
        mask : bool array of n_items or None
            The items to search; None searches all.
        n_jobs : int or None
            Number of threads; None uses every core. The result does not depend on it.

        Returns
        -------
        items : int64 array of shape (n_rows, k)
            Best first, ties to the lowest item. Items whose product is not above 0 are left out; the rest of the row
            is -1.
        scores : float32 array of shape (n_rows, k)
            The products, -inf where there is no item.
        """
        Q = as_features(Q, "Q", self.n_features, "the index")
        n_rows = Q.shape[0]
        k = check_k(k, n_rows)
        if mask is not None and (mask.dtype != bool or mask.shape != (self.n_items,)):
            raise InvalidInput(
                f"mask has dtype {mask.dtype} and shape {mask.shape}; expected bool and ({self.n_items},)"
            )
        allowed = None if mask is None else np.ascontiguousarray(mask)
        search = kernels.InvertedIndex(self.n_items, self.starts, self.items, self.values)
        indptr, indices = Q.indptr.astype(np.int64, copy=False), Q.indices.astype(np.int32, copy=False)
        items = np.empty((n_rows, k), dtype=np.int64)
        scores = np.empty((n_rows, k), dtype=np.float32)

        def part(block: slice) -> None:
            search.topk(indptr, indices, Q.data, block.start, block.stop, allowed, items, scores)

        for _ in map_blocks(part, row_blocks(n_rows, n_jobs), n_jobs, blas=False):
            pass
        return items, scores

    def to_state(self) -> State:
        arrays = {"starts": self.starts, "items": self.items, "values": self.values}
        return State("SparseIndex", facts={"n_items": self.n_items}, arrays=arrays)

    @classmethod
    def from_state(cls, state: State) -> SparseIndex:
        """Build the index again, or raise `ModelFormatError`.

        Items and values are not read: the search ignores items that do not exist.
        """
        n_items = state.size("n_items")
        starts = state.array("starts", np.int64, (None,))
        items = state.array("items", np.int32, (None,))
        values = state.array("values", np.float32, items.shape)
        if not len(starts) or starts[0] != 0 or starts[-1] != len(items) or (starts[1:] < starts[:-1]).any():
            raise ModelFormatError(f"{state.kind}: 'starts' does not divide the {len(items)} items")
        if n_items > len(items):  # which is only a claim then
            try:
                MemoryPlan("searching an index", {"a sum for each item": 4 * n_items}).check()
            except NotEnoughMemory as error:
                raise ModelFormatError(f"{state.kind}: {error}") from None
        return cls(n_items, starts, items, values)
