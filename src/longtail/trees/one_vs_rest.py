"""`OneVsRest`: one linear classifier per label over all rows, the accuracy reference if you can afford it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from longtail.arrays import Array
from longtail.errors import InvalidInput
from longtail.estimator import OutputLayer, Rule, column_counts
from longtail.labels import LabelHierarchy
from longtail.memory import MemoryPlan
from longtail.native import block_entries, log_probability
from longtail.trees.model import TreeModel
from longtail.trees.weighting import Weighting
from longtail.trees.weights import BLOCK_CHILDREN, TreeWeights
from longtail.work import Results, Work

_FARTHEST_MARGIN = 1e3


class OneVsRest(TreeModel):
    """A linear classifier for every label, each against all other rows.

    A label tree with one node. 64 labels are trained in lockstep, so one pass over a row serves 64 classifiers.

    Parameters
    ----------
    prune : float or int
        A float drops weights up to this magnitude; a whole number of 1 or more keeps that many weights of each label.
    loss, C, weighting, propensity, calibrate, thresholds, holdout, precision, tol, max_sweeps, random_state, n_jobs
        As for `LabelTree`.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail import OneVsRest
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1], [0.1, 0.9]])
    >>> Y = np.array([[1, 0], [0, 1], [1, 0], [0, 1]])
    >>> OneVsRest().fit(X, Y).predict_topk(X, k=1)[0].ravel().tolist()
    [0, 1, 0, 1]
    """

    def __init__(
        self,
        loss: str = "squared_hinge",
        C: float = 1.0,
        prune: float = 0.05,
        *,
        weighting: str | None = None,
        propensity: tuple[float, float] = (0.55, 1.5),
        calibrate: str | None = None,
        thresholds: str | None = None,
        holdout: float = 0.1,
        precision: int = 16,
        tol: float = 0.01,
        max_sweeps: int = 20,
        random_state: int | None = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.loss = loss
        self.C = C
        self.prune = prune
        self.weighting = weighting
        self.propensity = propensity
        self.calibrate = calibrate
        self.thresholds = thresholds
        self.holdout = holdout
        self.precision = precision
        self.tol = tol
        self.max_sweeps = max_sweeps
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _memory_plan(self, X: Any, Y: Any) -> MemoryPlan:
        return self._plan(X, Y, 1, Y.shape[1], duals=False)

    @property
    def scores_along_trees(self) -> bool:
        return False

    def _clustering(
        self, work: Work, members: Results, X: Any, Y: Any, weighting: Weighting | None
    ) -> Callable[[str, int], LabelHierarchy]:
        labels = np.flatnonzero(column_counts(Y))
        pointers = [0, len(labels)] if len(labels) else [0]
        flat = LabelHierarchy(np.array(pointers), ~labels, Y.shape[1])
        return lambda name, seed: flat

    def _output_layer(self, rule: Rule) -> OutputLayer:
        """Margins minus what each label needs to reach its threshold."""
        [tree] = self.trees_
        weights, intercepts, trained = _tree_layer(tree)
        factors = self._label_factors()
        if rule == "topk":
            if factors is not None:
                raise InvalidInput(
                    "OneVsRest(weighting='score') multiplies scores that are not linear, so its ranking is not that of "
                    "a linear layer; audit the result of `predict` instead"
                )
            if not trained.all():
                untrained = int(np.count_nonzero(~trained))
                raise InvalidInput(
                    f"{untrained} labels were never trained and have no score; audit the result of `predict` instead"
                )
            return OutputLayer(weights, intercepts, rule, "its score is among the highest")
        needed = self._margins_needed(self._thresholds(), factors)
        # A label that was never trained, or that no margin brings over its threshold, gets no weights.
        possible = trained & np.isfinite(needed)
        weights = sparse.csr_array(sparse.diags_array(possible.astype(np.float64)) @ weights)
        weights.eliminate_zeros()
        offsets = np.where(possible, intercepts - np.where(possible, needed, 0.0), -1.0)
        return OutputLayer(weights, offsets, rule, "its score reaches its threshold", at_least=True)

    def _margins_needed(self, thresholds: Array, factors: Array | None) -> Array:
        """The margin at which the score of each label reaches its threshold, or infinity: scores rise with margins."""

        def reaches(margins: Array) -> Array:
            logs = log_probability(margins, self.loss == "logistic")
            scores = self.calibrations_[0].probability(logs) if self.calibrations_ else np.exp(logs)
            scores = np.asarray(scores if factors is None else scores * factors, dtype=np.float32)
            return np.asarray((scores >= thresholds) & (scores > 0))

        low, high = np.full(len(thresholds), -_FARTHEST_MARGIN), np.full(len(thresholds), _FARTHEST_MARGIN)
        never = ~reaches(high)
        for _ in range(64):
            middle = (low + high) / 2
            there = reaches(middle)
            high, low = np.where(there, middle, high), np.where(there, low, middle)
        return np.where(never, np.inf, high)

    def summary(self) -> str:
        check_is_fitted(self)
        return f"{self._n_weights():,} weights"


def _tree_layer(tree: TreeWeights) -> tuple[Any, Array, Array]:
    """Weights and intercepts by label of the classifiers of a one-node tree, and which labels have a classifier."""
    hierarchy = tree.hierarchy
    labels = ~np.asarray(hierarchy.children)
    arrays = tree.for_search()
    rows, columns, values = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]
    for block in range(-(-len(labels) // BLOCK_CHILDREN)):
        features, slots, stored = block_entries(arrays, block, tree.n_features)
        edges = block * BLOCK_CHILDREN + slots.astype(np.int64)
        rows.append(labels[edges])
        columns.append(features)
        values.append(stored.astype(np.float64) * tree.scales[edges])
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    weights = sparse.csr_array(entries, shape=(hierarchy.n_labels, tree.n_features))
    weights.eliminate_zeros()
    intercepts = np.zeros(hierarchy.n_labels)
    intercepts[labels] = tree.intercepts
    trained = np.zeros(hierarchy.n_labels, dtype=bool)
    trained[labels] = True
    return weights, intercepts, trained
