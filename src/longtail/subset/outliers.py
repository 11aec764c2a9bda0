"""Outlier labels: those that the subset does not explain, learned by an estimator of their own.

Ridge learns the residual E = Y - Ys Z, as in Barezi et al. (NAACL 2019): ridge is linear in its targets, so the weights
for E are those for Y less those for Ys times Z, and no target but 0 and 1 is needed. Other estimators learn the labels.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.estimator import Explanation
from longtail.memory import MemoryPlan
from longtail.parallel import split
from longtail.subset.decoding import Decoding

_LABELS = 256  # whose weights are turned into those of residuals together


@dataclass(frozen=True)
class Outliers:
    """Labels with an estimator of their own.

    Parameters
    ----------
    labels : int64 array, ascending
    estimator : fitted estimator with one label per outlier
    residual : bool
        Whether its scores are added to what the subset says, rather than taken instead.
    active : bool array
        Which of them count; where not, a label has the score that the subset gives it.
    """

    labels: Array
    estimator: Any
    residual: bool
    active: Array

    @classmethod
    def learn(cls, estimator: Any, X: Any, Y: Any, labels: Array, subset: Array, decoding: Decoding) -> Outliers:
        """Train `estimator`, which is not fitted yet, for the outliers `labels`, in ascending order."""
        active = np.ones(len(labels), dtype=bool)
        if not learns_residuals(estimator):
            return cls(labels, estimator.fit(X, sparse.csr_array(Y[:, labels])), False, active)
        both = np.concatenate([labels, subset])
        MemoryPlan(
            "learning outliers",
            {"weights": 4 * X.shape[1] * len(both), "weights of residuals": 4 * X.shape[1] * len(labels)},
            "Learn fewer outliers, or other features.",
        ).check()
        fitted = estimator.fit(X, sparse.csr_array(Y[:, both]))
        return cls(labels, _residual_model(fitted, labels, decoding), True, active)

    def limited_to(self, labels: Array) -> Outliers:
        """The same where only some of the labels count."""
        return replace(self, active=np.isin(self.labels, labels))

    @property
    def replaced(self) -> Array:
        """Labels whose score the subset has no part in."""
        return self.labels[:0] if self.residual else self.labels[self.active]

    def add_residuals(self, X: Any, block: slice, scores: Array) -> None:
        """Add to the scores (labels x rows) of the labels of `block`."""
        first, last = np.searchsorted(self.labels, [block.start, block.stop])
        if not self.residual or first == last:
            return
        out = self.estimator.scores(X, slice(first, last))
        active = self.active[first:last]
        scores[self.labels[first:last][active] - block.start] += out.T[active]

    def best(self, X: Any, k: int, mask: Array | None) -> tuple[Array, Array]:
        """The k best of the outliers that count and that `mask`, over all labels, allows."""
        allowed = self.active if mask is None else self.active & mask[self.labels]
        places, scores = self.estimator.predict_topk(X, k, allow=allowed)
        return np.where(places >= 0, self.labels[places], -1), scores

    def explain(self, x: Any, label: int) -> Explanation:
        """What the outliers' estimator says to an outlier."""
        return replace(self.estimator.explain(x, int(np.searchsorted(self.labels, label))), label=label, steps=())


def learns_residuals(estimator: Any) -> bool:
    """Whether an estimator is linear in its targets: ridge that weighs all labels alike and keeps all weights."""
    return bool(estimator.linear_in_targets)


def _residual_model(fitted: Any, labels: Array, decoding: Decoding) -> Any:
    """Ridge for the residuals, from ridge for the outliers followed by the subset."""
    count = len(labels)
    model = copy.copy(fitted)
    weights = np.array(fitted.coef_[:, :count])
    # A row of constants below the weights carries the constants along.
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
