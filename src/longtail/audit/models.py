"""The linear output layer inside a fitted model, with the rule by which the model gives labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from longtail.errors import InvalidInput
from longtail.estimator.output_layer import Array, OutputLayer, Rule, check_memory
from longtail.linear.model import LinearModel
from longtail.linear.one_vs_rest import OneVsRest
from longtail.linear.ridge_model import RidgeModel
from longtail.linear.tree_model import TreeModel
from longtail.linear.tree_weights import BLOCK_CHILDREN, TreeWeights
from longtail.native.tree_search import block_entries, log_probability

_FARTHEST_MARGIN = 1e3


def output_layer(estimator: Any, rule: Rule = "predict") -> OutputLayer:
    """The linear output layer of a fitted estimator.

    Parameters
    ----------
    estimator : Ridge, RidgeCV, OneVsRest or MultiHeadClassifier
        Of networks those whose head is a linear layer, and its inputs are what the network makes of rows.
    rule : {"predict", "topk"}
        Label sets as ``predict`` gives them, or as the first places of ``predict_topk``.

    Returns
    -------
    OutputLayer

    Raises
    ------
    InvalidInput
        For models that have none: label trees multiply many classifiers, and some heads of networks several layers.

    Examples
    --------
    >>> from longtail import Ridge
    >>> layer = output_layer(Ridge(0.1).fit([[1.0, 0.0], [0.0, 1.0]], [[1, 0], [0, 1]]))
    >>> layer.n_labels, layer.rank(), layer.description
    (2, 2, 'its fitted value is at least 0.5')
    """
    if rule not in ("predict", "topk"):
        raise InvalidInput(f"rule is {rule!r}; expected 'predict' or 'topk'")
    if hasattr(estimator, "output_layer"):  # networks, which this module knows nothing of
        layer: OutputLayer = estimator.output_layer(rule)
        return layer
    if isinstance(estimator, RidgeModel):
        return _ridge_layer(estimator, rule)
    if isinstance(estimator, OneVsRest):
        return _one_vs_rest_layer(estimator, rule)
    raise InvalidInput(
        f"{type(estimator).__name__} has no linear output layer: "
        + (
            "the score of a label is a product along its path in a tree"
            if isinstance(estimator, TreeModel)
            else "audited are Ridge, RidgeCV, OneVsRest and MultiHeadClassifier, or give the weights as a matrix"
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
