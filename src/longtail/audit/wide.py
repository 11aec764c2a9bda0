"""Wide layers: find inputs by linear algebra alone, because linear programs over many features are too large.

The scores that inputs can have form a linear space, which holds all scores if the weights are linearly independent. The
search looks for scores with the right signs in that space, and then for an input that has them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg, sparse

from longtail.arrays import Array
from longtail.estimator import OutputLayer

_ROUNDS = 100
_MARGIN = 0.1  # scores above this count as right while they are moved towards 1


class WideLayer:
    """Inputs of a layer that has at least as many features as labels.

    Parameters
    ----------
    layer : OutputLayer
    rank : int
        The rank of its weights.
    """

    def __init__(self, layer: OutputLayer, rank: int) -> None:
        self._layer = layer
        gram = layer.weights @ layer.weights.T
        dense = gram.toarray() if sparse.issparse(gram) else gram
        self._factor: Any = None
        if rank == layer.n_labels:
            self._factor = linalg.cho_factor(dense)
            self._out_of_reach = np.zeros((layer.n_labels, 0))
        else:
            values, vectors = linalg.eigh(dense)
            out = layer.n_labels - rank
            self._out_of_reach = vectors[:, :out]
            self._values, self._vectors = values[out:], vectors[:, out:]

    def inputs(self, wanted: Array) -> Array:
        """Inputs, one per column, whose scores should have the wanted signs; they are not checked.

        Parameters
        ----------
        wanted : array of shape (n_labels, n_sets)
            1 for labels in the set and -1 for the others. One label of a set may be 0: the others are then compared
            with its score instead of with 0.
        """
        return np.asarray(self._layer.weights.T @ self._weigh(self._scores(wanted)))

    def _scores(self, wanted: Array) -> Array:
        """Scores in reach, without offsets: moved to the right signs and back into reach, again and again."""
        offsets = self._layer.offsets[:, None]
        scores = self._into_reach(wanted - offsets)
        for _ in range(_ROUNDS if self._out_of_reach.shape[1] else 0):
            there = scores + offsets
            wrong = np.where(wanted == 0, np.abs(there) > _MARGIN / 2, wanted * there < _MARGIN)
            moving = np.flatnonzero(wrong.any(axis=0))
            if not len(moving):
                break
            moved = np.where(wrong[:, moving], wanted[:, moving] - offsets, scores[:, moving])
            scores[:, moving] = self._into_reach(moved)
        return scores

    def _into_reach(self, scores: Array) -> Array:
        return np.asarray(scores - self._out_of_reach @ (self._out_of_reach.T @ scores))

    def _weigh(self, scores: Array) -> Array:
        if self._factor is not None:
            return np.asarray(linalg.cho_solve(self._factor, scores))
        return np.asarray(self._vectors @ ((self._vectors.T @ scores) / self._values[:, None]))
