"""`HeldOut`: rankings of rows that a model did not learn from, as pairs of row and label with the truth.

They teach what a score is worth, and from which score on a label should be given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from longtail.arrays import Array
from longtail.trees import is_true

PLACES = 100  # of a ranking that are kept; few rows have more labels


class HeldOut(NamedTuple):
    """Ranked labels of held-out rows.

    Parameters
    ----------
    rows : int64 array of n pairs
        Ascending; the labels of a row are in the order of the ranking.
    scores : float32 array of n pairs
    hits : bool array of n pairs
        Whether the row has the label.
    n_true : int
        Number of true pairs, ranked or not.
    n_rows : int
    """

    rows: Array
    scores: Array
    hits: Array
    n_true: int
    n_rows: int

    @classmethod
    def of(cls, labels: Array, scores: Array, truth: Any, ignored: Array | None = None) -> Self:
        """From the result of ``predict_topk`` and the true labels; labels in the mask `ignored` are left out.

        Examples
        --------
        >>> from scipy import sparse
        >>> truth = sparse.csr_array([[0, 1, 0], [1, 0, 1]])
        >>> found = HeldOut.of(np.array([[1, 0], [2, -1]]), np.array([[0.9, 0.1], [0.8, -np.inf]]), truth)
        >>> found.hits.tolist(), found.n_true
        ([True, False, True], 3)
        """
        there, n_true = labels >= 0, truth.nnz
        if ignored is not None:
            there &= ~ignored[labels]
            n_true -= int(np.count_nonzero(ignored[truth.indices]))
        rows, places = np.nonzero(there)
        hits = is_true(rows, labels[rows, places], truth)
        return cls(rows, scores[rows, places].astype(np.float32), hits, n_true, len(labels))

    @classmethod
    def join(cls, parts: Sequence[HeldOut]) -> Self:
        """The rows of several parts, one part after the other."""
        starts = np.cumsum([0, *(part.n_rows for part in parts)])
        return cls(
            np.concatenate([part.rows + start for part, start in zip(parts, starts[:-1], strict=True)]),
            np.concatenate([part.scores for part in parts]),
            np.concatenate([part.hits for part in parts]),
            sum(part.n_true for part in parts),
            int(starts[-1]),
        )

    @property
    def is_first(self) -> Array:
        """Whether each pair is the first of its row."""
        return np.diff(self.rows, prepend=-1) > 0
