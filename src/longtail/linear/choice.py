"""Which learner to train, and why: an alpha chosen by leave-one-out where that is affordable, else a fixed one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from longtail.linear.cost import Shape
from longtail.linear.ridge import Ridge
from longtail.linear.ridge_cv import RidgeCV
from longtail.memory import available_memory, format_bytes
from longtail.validation import as_features, as_labels

# Dense multiply-adds; a small machine does about this many in a minute or two.
_AFFORDABLE_WORK = 3e12
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
    ['learner: ridge, alpha chosen by leave-one-out']
    """
    given = {name: value for name, value in given.items() if value is not None and value is not False}
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

    candidate = _with_path(given, seed)
    against = _against_path(candidate, shape, given, available)
    if candidate is not None and against is None:
        reasons.append("learner: ridge, alpha chosen by leave-one-out")
        return Choice(candidate, reasons)
    estimator = Ridge(**given)
    reasons.append(f"learner: ridge with alpha={estimator.alpha:g}, as {against}")
    return Choice(estimator, reasons)


def _with_path(given: Mapping[str, Any], seed: int) -> RidgeCV | None:
    """The learner that chooses its alpha, or None where the parameters given exclude it."""
    if {"alpha", "updatable"} & given.keys() or given.get("solver") == "cg" or given.get("weighting") == "loss":
        return None
    return RidgeCV(
        random_state=seed, **{name: value for name, value in given.items() if name not in ("tol", "max_iter")}
    )


def _against_path(candidate: RidgeCV | None, shape: Shape, given: Mapping[str, Any], available: int) -> str | None:
    """Why alpha is not chosen by leave-one-out, or None where it is."""
    if "alpha" in given:
        return "given"
    if candidate is None:
        clashing = {"solver": "cg", "weighting": "loss", "updatable": True}
        name = next(name for name, value in clashing.items() if given.get(name) == value)
        return f"{name}={given[name]} and the choice by leave-one-out exclude each other"
    path = candidate.cheapest_path(shape)
    if path.plan.total > available / 2:
        return f"choosing it by leave-one-out would take {format_bytes(path.plan.total)} of memory"
    if path.work > _AFFORDABLE_WORK:
        return "choosing it by leave-one-out would take long with this many rows and features"
    return None
