"""The linear output layer inside a fitted model, and what its rank alone says about the label sets it can give.

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

from longtail.audit.twins import first_twins
from longtail.errors import InvalidInput
from longtail.linear.model import LinearModel
from longtail.linear.one_vs_rest import OneVsRest
from longtail.linear.ridge_model import RidgeModel
from longtail.linear.tree_model import TreeModel
from longtail.linear.tree_weights import BLOCK_CHILDREN, TreeWeights
from longtail.memory import MemoryPlan
from longtail.native.tree_search import block_entries, log_probability

Array = np.ndarray[Any, np.dtype[Any]]
Rule = Literal["predict", "topk"]

MOST_FOR_RANK = 5_000  # rows of the Gram matrix whose eigenvalues are still cheap: under a minute on one core
MOST_FOR_SINGULAR_VALUES = 2_000
MOST_DENSE = 50_000_000  # entries of weights that are still made dense
_FARTHEST_MARGIN = 1e3
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


def output_layer(estimator: Any, rule: Rule = "predict") -> OutputLayer:
    """The linear output layer of a fitted estimator.

    Parameters
    ----------
    estimator : Ridge, RidgeCV or OneVsRest
    rule : {"predict", "topk"}
        Label sets as ``predict`` gives them, or as the first places of ``predict_topk``.

    Returns
    -------
    OutputLayer

    Raises
    ------
    InvalidInput
        For models that have none: label trees multiply many classifiers.

    Examples
    --------
    >>> from longtail import Ridge
    >>> layer = output_layer(Ridge(0.1).fit([[1.0, 0.0], [0.0, 1.0]], [[1, 0], [0, 1]]))
    >>> layer.n_labels, layer.rank(), layer.description
    (2, 2, 'its fitted value is at least 0.5')
    """
    if rule not in ("predict", "topk"):
        raise InvalidInput(f"rule is {rule!r}; expected 'predict' or 'topk'")
    if isinstance(estimator, RidgeModel):
        return _ridge_layer(estimator, rule)
    if isinstance(estimator, OneVsRest):
        return _one_vs_rest_layer(estimator, rule)
    raise InvalidInput(
        f"{type(estimator).__name__} has no linear output layer: "
        + (
            "the score of a label is a product along its path in a tree"
            if isinstance(estimator, TreeModel)
            else "audited are Ridge, RidgeCV and OneVsRest, or give the weights as a matrix"
        )
    )


def _ridge_layer(model: LinearModel, rule: Rule) -> OutputLayer:
    coefficients = model.coef_.T
    if not sparse.issparse(coefficients):
        check_memory({"weights in 64 bits, twice": 16 * coefficients.size})
    weights = (
        sparse.csr_array(coefficients, dtype=np.float64)
        if sparse.issparse(coefficients)
        else np.ascontiguousarray(coefficients, dtype=np.float64)
    )
    intercepts = model.intercept_.astype(np.float64)
    if rule == "predict":
        return OutputLayer(weights, intercepts - 0.5, rule, "its fitted value is at least 0.5", at_least=True)
    scale = model._label_scale()
    if scale is not None:
        weights = (
            sparse.csr_array(sparse.diags_array(scale.astype(np.float64)) @ weights)
            if sparse.issparse(weights)
            else weights * scale.astype(np.float64)[:, None]
        )
        intercepts = intercepts * scale
    return OutputLayer(weights, intercepts, rule, "its score is among the highest")


def _one_vs_rest_layer(model: OneVsRest, rule: Rule) -> OutputLayer:
    [tree] = model.trees_
    weights, intercepts, trained = _tree_layer(tree)
    factors = model._label_factors()
    if rule == "topk":
        if factors is not None:
            raise InvalidInput(
                "OneVsRest(weighting='score') multiplies scores that are not linear, so its ranking is not that of a "
                "linear layer; audit what `predict` gives instead"
            )
        if not trained.all():
            untrained = int(np.count_nonzero(~trained))
            raise InvalidInput(f"{untrained} labels were never trained and have no score; audit what `predict` gives")
        return OutputLayer(weights, intercepts, rule, "its score is among the highest")
    thresholds = np.broadcast_to(np.asarray(model._thresholds(), dtype=np.float32), model.n_labels_)
    needed = _margins_needed(model, thresholds, factors)
    # A label that no margin brings over its threshold, or that was never trained, is one without weights.
    possible = trained & np.isfinite(needed)
    weights = sparse.csr_array(sparse.diags_array(possible.astype(np.float64)) @ weights)
    weights.eliminate_zeros()
    offsets = np.where(possible, intercepts - np.where(possible, needed, 0.0), -1.0)
    return OutputLayer(weights, offsets, rule, "its score reaches its threshold", at_least=True)


def _tree_layer(tree: TreeWeights) -> tuple[Any, Array, Array]:
    """Weights and intercepts of the classifiers of a tree of one node by label, and which labels have one."""
    hierarchy = tree.hierarchy
    labels = ~np.asarray(hierarchy.children)
    arrays = tree.for_search()
    rows, columns, values = [], [], []
    for block in range(-(-len(labels) // BLOCK_CHILDREN)):
        features, slots, stored = block_entries(arrays, block, tree.n_features)
        edges = block * BLOCK_CHILDREN + slots.astype(np.int64)
        rows.append(labels[edges])
        columns.append(features)
        values.append(stored.astype(np.float64) * tree.scales[edges])
    entries = [np.concatenate([np.zeros(0, dtype), *parts]) for dtype, parts in _typed(rows, columns, values)]
    shape = (hierarchy.n_labels, tree.n_features)
    weights = sparse.csr_array((entries[2], (entries[0], entries[1])), shape=shape)
    weights.eliminate_zeros()
    intercepts = np.zeros(hierarchy.n_labels)
    intercepts[labels] = tree.intercepts
    trained = np.zeros(hierarchy.n_labels, dtype=bool)
    trained[labels] = True
    return weights, intercepts, trained


def _typed(rows: list[Array], columns: list[Array], values: list[Array]) -> list[tuple[Any, list[Array]]]:
    return [(np.int64, rows), (np.int64, columns), (np.float64, values)]


def _margins_needed(model: OneVsRest, thresholds: Array, factors: Array | None) -> Array:
    """The margin at which each label's score reaches its threshold, or infinity: scores rise with margins."""

    def reaches(margins: Array) -> Array:
        logs = log_probability(margins, model.loss == "logistic")
        scores = model.calibrations_[0].probability(logs) if model.calibrations_ else np.exp(logs)
        scores = np.asarray(scores if factors is None else scores * factors, dtype=np.float32)
        return np.asarray((scores >= thresholds) & (scores > 0))

    low, high = np.full(len(thresholds), -_FARTHEST_MARGIN), np.full(len(thresholds), _FARTHEST_MARGIN)
    never = ~reaches(high)
    for _ in range(64):
        middle = (low + high) / 2
        there = reaches(middle)
        high, low = np.where(there, middle, high), np.where(there, low, middle)
    return np.where(never, np.inf, high)
