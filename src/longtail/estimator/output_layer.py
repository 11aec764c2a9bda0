"""A linear output layer: each label is a half-space of inputs.

A layer gives a label where ``weights @ x + offset`` is above 0, or at least 0. If the weights of the labels are
linearly independent, every label set has an input. Only layers of lower rank have sets that no input gets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import svds

from longtail.arrays import Array
from longtail.errors import InvalidInput, WrongType
from longtail.memory import MemoryPlan

Rule = Literal["predict", "topk"]

MOST_FOR_RANK = 5_000  # rows of a Gram matrix whose eigenvalues take less than a minute on one core
MOST_FOR_SINGULAR_VALUES = 2_000
MOST_DENSE = 50_000_000  # entries of weights that are still made dense
_LARGEST_OFFSET = 1e300
_SMALL = 1e-140  # squares of numbers below this, or above its inverse, leave the range of floats
_DIGEST = 16


@dataclass(frozen=True, eq=False)
class OutputLayer:
    """Labels as half-spaces of inputs.

    Parameters
    ----------
    weights : float64 array or csr_array of shape (n_labels, n_inputs)
    offsets : float64 array of shape (n_labels,)
        Intercepts minus thresholds.
    rule : {"predict", "topk"}
        "predict": a label is given by its own score. "topk": the labels with the highest scores are given, so only
        differences between scores count.
    description : str
        When the model gives a label, in words.
    at_least : bool or None
        Whether a score of exactly 0, offset included, gives the label. In rankings, equal scores go to the lowest
        label. None means there is no rule for ties: an input with tied scores gets no label set.
    label_names : tuple of str or None
        The name of each label, if known.
    fed_by : int or None
        The number of features of which the inputs are a linear projection; None if there is none, or it is not known.
    """

    weights: Any
    offsets: Array
    rule: Rule
    description: str
    at_least: bool | None = False
    label_names: tuple[str, ...] | None = None
    fed_by: int | None = None

    @classmethod
    def of(
        cls,
        weights: Any,
        bias: Any = None,
        *,
        threshold: Any = 0.0,
        rule: Rule = "predict",
        at_least: bool | None = None,
    ) -> OutputLayer:
        """Check weights, bias and thresholds, and make a layer of them.

        Parameters
        ----------
        weights : sparse matrix or array-like of shape (n_labels, n_inputs)
        bias : array-like of shape (n_labels,), float or None
            Added to the score of each label.
        threshold : float or array-like of shape (n_labels,)
            The score that a label must exceed.
        rule, at_least
            As for the class.

        Raises
        ------
        InvalidInput
            If the numbers are not finite, or their shapes do not match.
        """
        if rule not in ("predict", "topk"):
            raise InvalidInput(f"rule is {rule!r}; expected 'predict' or 'topk'")
        weights = _numbers(weights, "weights")
        if weights.ndim != 2:
            raise InvalidInput(f"weights has {weights.ndim} dimensions; expected a matrix with one row per label")
        if 0 in weights.shape:
            raise InvalidInput(f"weights has shape {weights.shape}; expected at least one label and one input")
        n_labels = weights.shape[0]
        offsets = _per_label(0.0 if bias is None else bias, n_labels, "bias")
        offsets = offsets - _per_label(threshold, n_labels, "threshold")
        return cls(weights, offsets, rule, "its score is above its threshold", at_least)

    @property
    def n_labels(self) -> int:
        return int(self.weights.shape[0])

    @property
    def n_inputs(self) -> int:
        """The width of the layer."""
        return int(self.weights.shape[1])

    @property
    def n_features(self) -> int:
        """The number of inputs that have a weight for some label; the others change nothing."""
        return len(self.used_features)

    @cached_property
    def used_features(self) -> Array:
        """The ids of the inputs that have a weight for some label."""
        return np.flatnonzero(_column_maxima(self.weights))

    @cached_property
    def has_offsets(self) -> bool:
        return bool(self.offsets.any())

    @cached_property
    def lengths(self) -> Array:
        """The length of each row of weights."""
        return row_lengths(self.weights)

    @cached_property
    def empty(self) -> Array:
        """Which labels have a score of 0 for every input."""
        return np.asarray((self.lengths == 0) & (self.offsets == 0))

    @cached_property
    def cut(self) -> float:
        """The unit of the score that separates the first places of a ranking from the rest; 0 for other rules.

        Any scale would do. This one, the root mean square length of the rows, keeps radii the same when all weights
        are scaled.
        """
        if self.rule != "topk":
            return 0.0
        largest = float(self.lengths.max(initial=0)) or 1.0
        return largest * float(np.sqrt(np.mean(np.square(self.lengths / largest)))) or 1.0

    def part(self, labels: Array) -> OutputLayer:
        """The layer of some of the labels."""
        names = None if self.label_names is None else tuple(self.label_names[label] for label in labels.tolist())
        return replace(self, weights=self.weights[labels], offsets=self.offsets[labels], label_names=names)

    def named(self, names: Iterable[str] | None) -> OutputLayer:
        """The layer with a name for each label; raises `InvalidInput` if there are more or fewer names."""
        if names is None:
            return self
        every = tuple(names)
        if len(every) != self.n_labels:
            raise InvalidInput(f"{len(every)} label names for {self.n_labels} labels")
        return replace(self, label_names=every)

    def unit(self) -> OutputLayer:
        """The layer with rows of weights of length 1 and offsets to match; it gives the same labels.

        Examples
        --------
        >>> layer = OutputLayer.of([[3.0, 4.0], [0.0, 1e-200]], [1.0, 1e-200]).unit()
        >>> layer.weights.tolist(), layer.offsets.tolist()
        ([[0.6, 0.8], [0.0, 1.0]], [0.2, 1.0])
        """
        lengths = _no_zeros(self.lengths)
        with np.errstate(over="ignore"):
            offsets = np.clip(self.offsets / lengths, -_LARGEST_OFFSET, _LARGEST_OFFSET)
        return replace(self, weights=_rows_over(self.weights, lengths), offsets=offsets)

    def with_cut(self, cut: float) -> OutputLayer:
        """A ranking as labels above a threshold: one more input is the score of the cut, which may be any number.

        The labels of a set can come first exactly if some input of this layer gives them. The rank of this layer is
        one more than that of the differences between the rows of weights.
        """
        column = np.full((self.n_labels, 1), -cut)
        weights = (
            sparse.csr_array(sparse.hstack([self.weights, column]))
            if sparse.issparse(self.weights)
            else np.hstack([self.weights, column])
        )
        return replace(self, weights=weights, rule="predict")

    def constant_labels(self) -> Array:
        """Labels without weights: no input changes whether they are given."""
        return np.flatnonzero(self.lengths == 0)

    def first_twins(self, offsets: bool = True) -> Array:
        """For each label, the first label with the same weights and, if `offsets`, the same offset: mostly itself.

        Examples
        --------
        >>> OutputLayer.of([[1.0], [2.0], [1.0]]).first_twins().tolist()
        [0, 1, 0]
        """
        added = self.offsets + 0.0 if offsets else np.zeros(self.n_labels)  # -0 becomes 0
        seen: dict[bytes, int] = {}
        rows: Iterator[tuple[Array, ...]]
        first = np.empty(self.n_labels, dtype=np.int64)
        if sparse.issparse(self.weights):
            plain = sparse.csr_array(self.weights, copy=True)
            plain.sum_duplicates()
            plain.eliminate_zeros()
            rows = ((plain.indices[a:b], plain.data[a:b]) for a, b in pairwise(plain.indptr.tolist()))
        else:
            rows = ((row + 0.0,) for row in self.weights)
        for label, (parts, offset) in enumerate(zip(rows, added, strict=True)):
            # Digests, because keys made of the rows would hold all weights once more.
            digest = blake2b(offset.tobytes(), digest_size=_DIGEST)
            for part in parts:
                digest.update(np.ascontiguousarray(part).data)
            first[label] = seen.setdefault(digest.digest(), label)
        return first

    def rank(self) -> int | None:
        """The numerical rank of the weights, or None if it would take too long.

        The eigenvalues of the smaller Gram matrix tell singular values apart from 0 down to about one millionth of the
        largest. If that leaves some in doubt and the matrix is not too large, the singular values themselves decide.
        """
        used = self.used_features
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
        """The weights of the used inputs, as a matrix."""
        weights = self.weights[:, self.used_features]
        check_memory({"dense weights and two matrices of their size": 24 * weights.shape[0] * weights.shape[1]})
        return np.asarray(weights.toarray() if sparse.issparse(weights) else weights, dtype=np.float64)

    def truncations(self, most: int) -> Truncations:
        """The nearest weights of each rank up to `most`: the largest singular directions of the layer.

        Examples
        --------
        >>> layer = OutputLayer.of(np.diag([3.0, 2.0, 1.0]))
        >>> np.abs(layer.truncations(2)(2)).round(6).tolist()
        [[3.0, 0.0], [0.0, 2.0], [0.0, 0.0]]
        """
        used = self.used_features
        size = min(self.n_labels, len(used))
        if not 1 <= most <= size:
            raise InvalidInput(f"rank {most} of a layer whose rank is at most {size}")
        if (size <= MOST_FOR_SINGULAR_VALUES and self.n_labels * len(used) <= MOST_DENSE) or most == size:
            left, values, right = linalg.svd(self.dense(), full_matrices=False, lapack_driver="gesdd")
        else:
            weights = self.weights[:, used]
            check_memory({"singular vectors, twice": 16 * most * sum(weights.shape)})
            start = np.random.default_rng(0).normal(size=min(weights.shape))
            left, values, right = svds(weights, k=most, v0=start)
            left, values, right = left[:, ::-1], values[::-1], right[::-1]
        rounding = max(self.n_labels, len(used)) * float(np.finfo(np.float64).eps) * float(values[0])
        return Truncations((left * values)[self.first_twins(offsets=False), :most], right[:most], rounding)


@dataclass(frozen=True, eq=False)
class Truncations:
    """The weights of a layer cut down to lower ranks.

    Parameters
    ----------
    scaled : array of shape (n_labels, most)
        Left singular vectors times singular values, largest first. Twin labels have the same row.
    directions : array of shape (most, n_features)
        Right singular vectors: the inputs that the columns of the weights stand for.
    rounding : float
        Rows up to this length are rounding errors.
    """

    scaled: Array
    directions: Array
    rounding: float

    def __call__(self, rank: int) -> Array:
        """The nearest weights of this rank, with orthogonal columns; the offsets are those of the whole layer.

        Labels with the same weights keep the same weights. Rows that are only rounding errors become 0.
        """
        most = self.scaled.shape[1]
        if not 1 <= rank <= most:
            raise InvalidInput(f"rank {rank} of truncations to a rank of 1 to {most}")
        weights = np.ascontiguousarray(self.scaled[:, :rank])
        weights[row_lengths(weights) <= self.rounding] = 0
        return weights


def check_memory(parts: dict[str, int]) -> None:
    """Raise `NotEnoughMemory` before anything too large is allocated."""
    MemoryPlan("the audit of an output layer", parts, "Audit a layer with fewer labels or features.").check()


def row_lengths(rows: Any) -> Array:
    """The Euclidean length of each row, for weights of any magnitude."""
    largest = _column_maxima(rows.T)
    if np.any((largest != 0) & ((largest < _SMALL) | (largest > 1 / _SMALL))):
        scale = _no_zeros(largest)
        return np.asarray(scale * row_lengths(_rows_over(rows, scale)))
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
    """The largest absolute value of each column."""
    if 0 in matrix.shape:
        return np.zeros(matrix.shape[1])
    highest, lowest = (
        np.asarray(found.toarray() if sparse.issparse(found) else found).ravel()
        for found in (matrix.max(axis=0), matrix.min(axis=0))
    )
    return np.maximum(highest, -lowest)


def _numbers(values: Any, name: str) -> Any:
    """A float64 array, or csr_array, of finite numbers."""
    array = sparse.csr_array(values) if sparse.issparse(values) else np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise WrongType(f"{name} has dtype {array.dtype}; expected real numbers")
    array = array.astype(np.float64, copy=False)
    if not np.isfinite(array.data if sparse.issparse(array) else array).all():
        raise InvalidInput(f"{name} contains NaN or infinity; every value must be finite")
    return array


def _per_label(values: Any, n: int, name: str) -> Array:
    array = _numbers(values, name)
    if array.ndim == 0:
        return np.full(n, float(array))
    if array.shape != (n,):
        raise InvalidInput(f"{name} has shape {array.shape}; expected one number, or one for each of the {n} labels")
    return np.asarray(array)
