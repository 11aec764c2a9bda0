"""Outliers: labels that the subset does not explain, learned by a separate estimator.

An estimator that is linear in its targets, such as ridge, learns the residual E = Y - Ys Z of Barezi et al. (NAACL
2019): its weights for E are those for Y minus those for Ys times Z. Other estimators learn the labels themselves.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.estimator import Explanation, fit_with
from longtail.memory import MemoryPlan
from longtail.parallel import split
from longtail.parameters import Number
from longtail.subset.decoding import Decoding

_LABELS = 256  # labels in a block when weights of labels become weights of residuals


@dataclass(frozen=True)
class Budget:
    """How many outliers to learn: "auto", "all", a whole number of labels, or a share of them as a float."""

    def accepts(self, value: Any) -> bool:
        if isinstance(value, str):
            return value in ("auto", "all")
        return Number(low=0, whole=True).accepts(value) or (
            isinstance(value, float | np.floating) and Number(low=0, high=1).accepts(value)
        )

    def describe(self) -> str:
        return "'auto', 'all', a whole number of labels of at least 0, or a share between 0.0 and 1.0"

    def bad_values(self) -> list[Any]:
        return ["many", -1, 1.5, float("nan"), None, True, [1]]


def worst_explained(norms: Array) -> Array:
    """Labels with a residual, the largest norm first, ties to the lowest id."""
    order = np.argsort(-norms, kind="stable")
    return order[norms[order] > 0]


@dataclass(frozen=True)
class Outliers:
    """Labels with a separate estimator.

    Parameters
    ----------
    labels : int64 array, ascending
    estimator : fitted estimator with one label per outlier
    residual : bool
        Whether its scores are added to the decoded scores instead of replacing them.
    active : bool array
        The outliers in use; the others keep their decoded scores.

    Without outliers, the arrays are empty and the estimator is None.
    """

    labels: Array
    estimator: Any
    residual: bool
    active: Array

    @classmethod
    def none(cls) -> Outliers:
        return cls(np.zeros(0, dtype=np.int64), None, False, np.zeros(0, dtype=bool))

    @classmethod
    def learn(
        cls,
        estimator: Any,
        X: Any,
        Y: Any,
        labels: Array,
        subset: Array,
        decoding: Decoding,
        weights: Array | None = None,
    ) -> Outliers:
        """Fit `estimator` to the outliers `labels`, which ascend."""
        active = np.ones(len(labels), dtype=bool)
        if not estimator.linear_in_targets:
            return cls(labels, fit_with(estimator, X, sparse.csr_array(Y[:, labels]), weights), False, active)
        both = np.concatenate([labels, subset])
        MemoryPlan(
            "learning outliers",
            {"weights": 4 * X.shape[1] * len(both), "weights of residuals": 4 * X.shape[1] * len(labels)},
            "Learn fewer outliers, or use fewer features.",
        ).check()
        fitted = fit_with(estimator, X, sparse.csr_array(Y[:, both]), weights)
        return cls(labels, _residual_model(fitted, labels, decoding), True, active)

    def limited_to(self, labels: Array) -> Outliers:
        """The same with only some of the labels in use."""
        return replace(self, active=np.isin(self.labels, labels))

    @property
    def replaced(self) -> Array:
        """Labels whose scores replace the decoded ones."""
        return self.labels[:0] if self.residual else self.labels[self.active]

    def add_residuals(self, X: Any, block: slice, scores: Array) -> None:
        """Add residuals to the scores (labels x rows) of the labels in `block`."""
        first, last = np.searchsorted(self.labels, [block.start, block.stop])
        if not self.residual or first == last:
            return
        out = self.estimator.scores(X, slice(first, last))
        active = self.active[first:last]
        scores[self.labels[first:last][active] - block.start] += out.T[active]

    def best(self, X: Any, k: int, mask: Array | None) -> tuple[Array, Array]:
        """The k best outliers in use that `mask`, over all labels, allows."""
        allowed = self.active if mask is None else self.active & mask[self.labels]
        places, scores = self.estimator.predict_topk(X, k, allow=allowed)
        return np.where(places >= 0, self.labels[places], -1), scores

    def explain(self, x: Any, label: int) -> Explanation:
        """The explanation of an outlier by its estimator.

        Without the steps, which name nodes of a tree over other labels.
        """
        return replace(self.estimator.explain(x, int(np.searchsorted(self.labels, label))), label=label, steps=())


def _residual_model(fitted: Any, labels: Array, decoding: Decoding) -> Any:
    """A model of the residuals, from one of the outliers followed by the subset."""
    count = len(labels)
    model = copy.copy(fitted)
    weights = np.array(fitted.coef_[:, :count])
    # The constants are decoded together with the weights, as one more row.
    subset = np.vstack([fitted.coef_[:, count:], fitted.centre_scores_[None, count:]])
    mixed = decoding.mix(subset)
    codes = replace(decoding, codes=decoding.codes[labels])
    constants = np.array(fitted.centre_scores_[:count])
    for block in split(count, _LABELS):
        explained = codes.decode(mixed, block)
        weights[:, block] -= explained[:, :-1].T
        constants[block] -= explained[:, -1]
    model.coef_, model.centre_scores_, model.n_labels_ = weights, constants, count
    model.inverse_propensity_ = np.array(fitted.inverse_propensity_[:count])
    model.__dict__.pop("statistics_", None)
    return model
