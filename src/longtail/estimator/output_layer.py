"""A linear output layer: labels as half-spaces of inputs, and what its rank alone says about the sets it can give.

A layer gives a label where ``weights @ x + offset`` is above 0, or at least 0. Where the weights of the labels are
linearly independent every set is given to some `x`; only below that rank is there something to look for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import svds

from longtail.arrays import Array
from longtail.errors import InvalidInput
from longtail.estimator.twins import first_twins
from longtail.memory import MemoryPlan

Rule = Literal["predict", "topk"]

MOST_FOR_RANK = 5_000  # rows of the Gram matrix whose eigenvalues are still cheap: under a minute on one core
MOST_FOR_SINGULAR_VALUES = 2_000
MOST_DENSE = 50_000_000  # entries of weights that are still made dense
_LARGEST_OFFSET = 1e300


@dataclass(frozen=True)
class OutputLayer:
    """Labels as half-spaces of inputs.

    Parameters
    ----------
    weights : float64 array or csr_array of shape (n_labels, n_features)
    offsets : float64 array of n_labels
        Intercepts, less the score from which on a label is given.
    rule : {"predict", "topk"}
        Whether labels are given by a score of their own, or as the best of all; then only differences count.
    description : str
        When the model gives a label, in words.
    at_least : bool
        Whether a score of exactly 0, offset included, gives the label too. In rankings equal scores go to the lowest
        label.
    """

    weights: Any
    offsets: Array
    rule: Rule
    description: str
    at_least: bool = False

    @property
    def n_labels(self) -> int:
        return int(self.weights.shape[0])

    @property
    def n_features(self) -> int:
        """Features that have a weight for some label; others change nothing."""
        return len(self.used_features())

    def used_features(self) -> Array:
        """The ids of the features that have a weight for some label."""
        return np.flatnonzero(_column_maxima(self.weights))

    def unit(self) -> OutputLayer:
        """The layer with rows of weights of length 1 and offsets to match: it gives the same labels.

        Examples
        --------
        >>> layer = OutputLayer(np.array([[3.0, 4.0], [0.0, 1e-200]]), np.array([1.0, 1e-200]), "predict", "").unit()
        >>> layer.weights.tolist(), layer.offsets.tolist()
        ([[0.6, 0.8], [0.0, 1.0]], [0.2, 1.0])
        """
        # The largest first: squares of very small or large weights leave the range of floats.
        largest = _no_zeros(_column_maxima(self.weights.T))
        weights = _rows_over(self.weights, largest)
        lengths = _no_zeros(row_lengths(weights))
        with np.errstate(over="ignore"):
            offsets = np.clip(self.offsets / largest / lengths, -_LARGEST_OFFSET, _LARGEST_OFFSET)
        return replace(self, weights=_rows_over(weights, lengths), offsets=offsets)

    def with_cut(self) -> OutputLayer:
        """A ranking as labels over a threshold: one more feature is the score of the cut, which may be anything.

        The labels of a set come first for some input exactly if some input of this layer gives them. Differences of
        weights have one rank less than its weights.
        """
        largest = float(_column_maxima(self.weights).max(initial=0)) or 1.0
        length = float(np.sqrt(np.mean(np.square(row_lengths(self.weights / largest)))))
        # Any scale will do; this one keeps radii the same when all weights are scaled.
        column = np.full((self.n_labels, 1), -largest * (length or 1.0))
        weights = (
            sparse.csr_array(sparse.hstack([self.weights, column]))
            if sparse.issparse(self.weights)
            else np.hstack([self.weights, column])
        )
        return replace(self, weights=weights, rule="predict")

    def constant_labels(self) -> Array:
        """Labels without any weight: no input changes whether they are given."""
        return np.flatnonzero(_column_maxima(self.weights.T) == 0)

    def rank(self) -> int | None:
        """The numerical rank of the weights, or None where it would take long.

        From the eigenvalues of the smaller Gram matrix, which tell singular values apart from 0 down to about one
        millionth of the largest; where that leaves some in doubt, and the matrix is not too large, from the singular
        values themselves.
        """
        used = self.used_features()
        size = min(self.n_labels, len(used))
        if size == 0:
            return 0
        if size > MOST_FOR_RANK:
            return None
        weights = self.weights[:, used]
        gram = weights @ weights.T if self.n_labels <= len(used) else weights.T @ weights
        values = linalg.eigvalsh(gram.toarray() if sparse.issparse(gram) else gram)
        precision = np.finfo(np.float64).eps
        above = int(np.count_nonzero(values > values[-1] * size * precision))
        if above == size or size > MOST_FOR_SINGULAR_VALUES or self.n_labels * len(used) > MOST_DENSE:
            return above
        singular = linalg.svdvals(self.dense())
        return int(np.count_nonzero(singular > singular[0] * max(self.n_labels, len(used)) * precision))

    def dense(self) -> Array:
        """The weights of the features used, as a matrix."""
        weights = self.weights[:, self.used_features()]
        check_memory({"dense weights and two matrices of their size": 24 * weights.shape[0] * weights.shape[1]})
        return np.asarray(weights.toarray() if sparse.issparse(weights) else weights, dtype=np.float64)

    def truncations(self, most: int) -> Callable[[int], Array]:
        """A function from a rank to the weights of that rank nearest to the layer's: its largest singular directions.

        Their columns are orthogonal, so a rank-d layer has d of them and the offsets are those of the whole layer.
        Labels with the same weights keep the same, and those of which nothing but rounding is left have none.

        Parameters
        ----------
        most : int
            The largest rank that will be asked for.

        Examples
        --------
        >>> layer = OutputLayer(np.diag([3.0, 2.0, 1.0]), np.zeros(3), "predict", "")
        >>> np.abs(layer.truncations(2)(2)).round(6).tolist()
        [[3.0, 0.0], [0.0, 2.0], [0.0, 0.0]]
        """
        size = min(self.n_labels, self.n_features)
        if not 1 <= most <= size:
            raise InvalidInput(f"rank {most} of a layer whose rank is at most {size}")
        if (size <= MOST_FOR_SINGULAR_VALUES and self.n_labels * self.n_features <= MOST_DENSE) or most == size:
            left, values, _ = linalg.svd(self.dense(), full_matrices=False, lapack_driver="gesdd")
        else:
            check_memory({"singular vectors, twice": 16 * most * sum(self.weights.shape)})
            start = np.random.default_rng(0).normal(size=min(self.weights.shape))
            left, values, _ = svds(self.weights, k=most, v0=start)
            left, values = left[:, ::-1], values[::-1]
        scaled = (left * values)[first_twins(self.weights)]
        rounding = max(self.n_labels, self.n_features) * float(np.finfo(np.float64).eps) * float(values[0])

        def truncate(rank: int) -> Array:
            if not 1 <= rank <= most:
                raise InvalidInput(f"rank {rank} of truncations to a rank of 1 to {most}")
            cut = np.ascontiguousarray(scaled[:, :rank])
            cut[row_lengths(cut) <= rounding] = 0
            return cut

        return truncate


def check_memory(parts: dict[str, int]) -> None:
    """Refuse what does not fit before it is allocated."""
    MemoryPlan("the audit of an output layer", parts, "Audit a layer with fewer labels or features.").check()


def row_lengths(rows: Any) -> Array:
    """The Euclidean length of each row."""
    squares = rows.multiply(rows).sum(axis=1) if sparse.issparse(rows) else np.einsum("ij,ij->i", rows, rows)
    return np.sqrt(np.asarray(squares).ravel())


def _no_zeros(values: Array) -> Array:
    return np.where(values == 0, 1.0, values)


def _rows_over(rows: Any, divisors: Array) -> Any:
    if not sparse.issparse(rows):
        return rows / divisors[:, None]
    return sparse.csr_array(
        (rows.data / np.repeat(divisors, np.diff(rows.indptr)), rows.indices, rows.indptr), shape=rows.shape
    )


def _column_maxima(matrix: Any) -> Array:
    if 0 in matrix.shape:
        return np.zeros(matrix.shape[1])
    highest, lowest = (
        np.asarray(found.toarray() if sparse.issparse(found) else found).ravel()
        for found in (matrix.max(axis=0), matrix.min(axis=0))
    )
    return np.maximum(highest, -lowest)
