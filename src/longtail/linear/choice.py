"""Which learner to train, and why: an alpha chosen by leave-one-out where that is affordable, else a fixed one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from longtail.linear.cost import Shape, cheapest, estimate_path
from longtail.linear.ridge import Ridge
from longtail.linear.ridge_cv import RidgeCV
from longtail.memory import available_memory, format_bytes
from longtail.validation import as_features, as_labels

# Dense multiply-adds; a small machine does about this many in a minute or two.
_AFFORDABLE_WORK = 3e12
_ALPHAS = 7
_SAMPLED = 2000
_BLOCK = 2048
_BYTES_OF_A_KEPT_WEIGHT = 24


class Choice(NamedTuple):
    """A learner, not fitted, and what to tell about the choice."""

    estimator: Ridge | RidgeCV
    reasons: list[str]


def choose_learner(X: Any, Y: Any, **given: Any) -> Choice:
    """Choose for features X and labels Y.

    Parameters
    ----------
    X, Y : sparse matrices
    **given
        Parameters of `Ridge`, or the `random_state` of `RidgeCV`, that are set already; None where not.

    Examples
    --------
    >>> import numpy as np
    >>> choose_learner(np.eye(3), np.eye(3)).reasons
    ['learner: ridge, alpha chosen out of 7 by leave-one-out']
    """
    given = {name: value for name, value in given.items() if value is not None}
    seed = given.pop("random_state", 0)
    shape = Shape.of(as_features(X), as_labels(Y))
    available = available_memory()
    reasons = []

    dense = 4 * shape.n_features * shape.n_labels
    sparsified = {"keep", "top_features_per_label", "threshold"} & given.keys()
    if not sparsified and dense > available / 4:
        fitting = available // 8 // (_BYTES_OF_A_KEPT_WEIGHT * shape.n_labels)
        given["top_features_per_label"] = int(min(max(fitting, 10), 1000, shape.n_features))
        reasons.append(
            f"keeping the {given['top_features_per_label']} largest weights of each label, as all "
            f"{shape.n_features:,} x {shape.n_labels:,} would take {format_bytes(dense)} of {format_bytes(available)}"
        )

    against = _against_path(shape, given, available)
    if against is None:
        settings = {name: value for name, value in given.items() if name not in ("updatable", "weighting")}
        weighting = given.get("weighting")
        reasons.append(f"learner: ridge, alpha chosen out of {_ALPHAS} by leave-one-out")
        return Choice(RidgeCV(random_state=seed, weighting=weighting, **settings), reasons)
    estimator = Ridge(**given)
    reasons.append(f"learner: ridge with alpha={estimator.alpha:g}, as {against}")
    return Choice(estimator, reasons)


def _against_path(shape: Shape, given: Mapping[str, Any], available: int) -> str | None:
    """Why alpha cannot be chosen by leave-one-out, or None where it can."""
    if "alpha" in given:
        return "given"
    for name, value in (("solver", "cg"), ("weighting", "loss"), ("updatable", True)):
        if given.get(name) == value:
            return f"{name}={value} and the choice by leave-one-out exclude each other"
    kept = given.get("top_features_per_label")
    weights = 4 * shape.n_features * shape.n_labels if kept is None else _BYTES_OF_A_KEPT_WEIGHT * kept * shape.n_labels
    sampled = min(shape.n_rows, _SAMPLED)
    path = cheapest(
        [
            estimate_path(shape, side, spectral, _ALPHAS, sampled, _BLOCK, weights)
            for side in ("primal", "dual")
            if given.get("solver") in (None, "auto", side)
            for spectral in (False, True)
        ]
    )
    if path.plan.total > available / 2:
        return f"choosing it by leave-one-out would take {format_bytes(path.plan.total)} of memory"
    if path.work > _AFFORDABLE_WORK:
        return "choosing it by leave-one-out would take long with this many rows and features"
    return None
