"""NumPy twin of the inverted index."""

from __future__ import annotations

import numpy as np

from longtail.arrays import Array
from longtail.native.clamped import bounds
from longtail.parallel import check_stop


class InvertedIndex:
    """The items that have each feature: feature f has the entries ``starts[f]:starts[f + 1]`` of items and values.

    The arrays may be mapped from a file that was not verified: bounds outside the arrays are moved into them, and
    entries with an item outside ``range(n_items)`` are ignored.

    Parameters
    ----------
    n_items : int
    starts : int64 array of n_features + 1
    items : int32 array
    values : float32 array
    """

    def __init__(self, n_items: int, starts: Array, items: Array, values: Array) -> None:
        self._n_items, self._starts, self._items, self._values = n_items, starts, items, values

    def topk(
        self,
        indptr: Array,
        indices: Array,
        data: Array,
        first: int,
        last: int,
        mask: Array | None,
        out_items: Array,
        out_scores: Array,
    ) -> None:
        """Write the items with the largest products with rows `first` to `last`, best first, to `out_items`.

        The products go to `out_scores`. Only items in `mask` and with a product above 0 count. Ties go to the lowest
        item; rows with fewer items end in -1 and -inf. A product is a sum of float32 in the order of the row's
        features.
        """
        for row in range(first, last):
            check_stop()
            sums = np.zeros(self._n_items, dtype=np.float32)
            for e in range(indptr[row], indptr[row + 1]):
                from_, to = bounds(self._starts, int(indices[e]), min(len(self._items), len(self._values)))
                items = self._items[from_:to]
                inside = (items >= 0) & (items < self._n_items)
                np.add.at(sums, items[inside], data[e] * self._values[from_:to][inside])
            if mask is not None:
                sums = np.where(mask[: self._n_items], sums, np.float32(0))
            write_best(sums, out_items[row], out_scores[row])


def write_best(sums: Array, ids: Array, scores: Array) -> None:
    """Write the ids with the largest sums above 0, best first, and pad with -1 and -inf."""
    found = np.flatnonzero(sums > 0)
    found = found[np.lexsort((found, -sums[found]))][: len(ids)]
    ids[:], scores[:] = -1, -np.inf
    ids[: len(found)], scores[: len(found)] = found, sums[found]
