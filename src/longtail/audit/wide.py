"""Wide layers: label sets settled by linear algebra alone, where features are many and linear programs too large.

An input is looked for that leads to scores of the right signs; scores in reach are a linear space, all of it where the
weights are linearly independent.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg, sparse

from longtail.arrays import Array
from longtail.estimator.output_layer import OutputLayer, row_lengths

_ROUNDS = 100
_MARGIN = 0.1  # of the score of a label that counts as right while scores are moved; 1 is aimed at


class WideLayer:
    """Inputs of a layer that has at least as many features as labels.

    Parameters
    ----------
    layer : OutputLayer
    rank : int
        Of its weights.
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

    def reaches(self, wanted: Array) -> Array:
        """Whether an input was found that gets each label set; checked on the scores of the input itself.

        Parameters
        ----------
        wanted : array of shape (n_labels, n_sets)
            1 for labels in the set and -1 for the others. A 0, at most one in a set, is a label whose score the others
            are compared with, instead of 0.
        """
        layer = self._layer
        inputs = layer.weights.T @ self._weigh(self._scores(wanted))
        scores = layer.weights @ inputs
        rounding = (
            (layer.n_features + 6)
            * np.finfo(np.float64).eps
            * np.outer(row_lengths(layer.weights), row_lengths(inputs.T))
        )
        scores = scores + layer.offsets[:, None]
        pivot = wanted == 0
        margins = wanted * (scores - np.where(pivot, scores, 0.0).sum(axis=0))
        return np.asarray((pivot | (margins > rounding + np.where(pivot, rounding, 0.0).sum(axis=0))).all(axis=0))

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
