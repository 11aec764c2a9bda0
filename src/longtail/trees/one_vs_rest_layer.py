"""The classifiers of `OneVsRest` as one linear output layer."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.errors import InvalidInput
from longtail.estimator import OutputLayer, Rule
from longtail.native import block_entries, log_probability
from longtail.trees.weights import BLOCK_CHILDREN, TreeWeights

_FARTHEST_MARGIN = 1e3


def one_vs_rest_layer(model: Any, rule: Rule) -> OutputLayer:
    """The layer of a fitted `OneVsRest`: margins, less what each label needs to reach its threshold."""
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


def _margins_needed(model: Any, thresholds: Array, factors: Array | None) -> Array:
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
