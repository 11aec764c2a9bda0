"""Which learner to train, and why: ridge, one-vs-rest or label trees, by size and by what each would cost."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple

from longtail.errors import InvalidInput
from longtail.estimator import Estimator
from longtail.memory import available_memory, format_bytes
from longtail.parallel import resolve_jobs
from longtail.ridge import Ridge, RidgeCV, Shape
from longtail.trees import LabelTree, OneVsRest
from longtail.validation import as_features, as_labels

_CLASSES: dict[str, Any] = {"tree": LabelTree, "one-vs-rest": OneVsRest, "ridge": Ridge}
LEARNERS = tuple(_CLASSES)

# Dense multiply-adds; a small machine does about this many in a minute or two.
_AFFORDABLE_WORK = 3e12
_BYTES_OF_A_KEPT_WEIGHT = 24
# Up to this many labels ridge, which chooses its penalty, ranks better than classifiers that do not.
_FEW_LABELS = 300
# Seconds of one core for a row, a classifier and a feature of the row; a row itself costs as much as so many features.
_SECONDS = 2.2e-9
_FEATURES_OF_A_ROW = 60
_PATIENCE = 120.0
_COST_OF_BEAM = 4  # times that of a tree without


class Choice(NamedTuple):
    """A learner, not fitted, and what to tell about the choice."""

    estimator: Estimator
    reasons: list[str]


def learners_taking(parameter: str, value: Any) -> tuple[str, ...]:
    """The learners that have a parameter and accept the value.

    >>> learners_taking("C", 1.0)
    ('tree', 'one-vs-rest')
    >>> learners_taking("weighting", "target")
    ('ridge',)
    """
    found = []
    for name, cls in _CLASSES.items():
        if parameter in inspect.signature(cls).parameters:
            constraint = cls._parameters.get(parameter)
            if parameter != "weighting" or constraint.accepts(value):
                found.append(name)
    return tuple(found)


def check_learner(estimator: Any, owner: str) -> None:
    """Refuse what could be trained on rows and then not rank labels, as estimators of other libraries."""
    name = type(estimator).__name__
    if not isinstance(estimator, Estimator):
        learners = ", ".join(learner.__name__ for learner in _CLASSES.values())
        raise InvalidInput(
            f"{owner}: the estimator is a {name}, which is no longtail.estimator.Estimator; take a learner such as "
            f"{learners}, or None to have one chosen"
        )
    if "groups" in inspect.signature(estimator.fit).parameters:
        raise InvalidInput(f"{owner}: the estimator is a {name}, which learns from groups; take a learner of rows")


def choose_learner(X: Any, Y: Any, learner: str = "auto", **given: Any) -> Choice:
    """Choose for features X and labels Y.

    Ridge where labels are few, one-vs-rest where it takes no more than a minute or two, else label trees.

    Parameters
    ----------
    X, Y : sparse matrices
    learner : {"auto", "tree", "one-vs-rest", "ridge"}
        A choice made already; its parameters are still chosen.
    **given
        Parameters of the learners that are set already; None where not. Those that only some learners have limit the
        choice to these.

    Examples
    --------
    >>> import numpy as np
    >>> choose_learner(np.eye(3), np.eye(3)).reasons
    ['learner: ridge, as 3 labels x 3 rows are few; alpha chosen by leave-one-out']
    >>> choose_learner(np.eye(3), np.eye(3), n_trees=2).reasons
    ['learner: label tree with negatives=beam, as n_trees is given']
    """
    given = {name: value for name, value in given.items() if value is not None and value is not False}
    seed = given.pop("random_state", 0)
    left, why = _candidates(learner, given)
    X, Y = as_features(X), as_labels(Y)
    shape = Shape.of(X, Y)
    if why is None:
        name, why = _by_size(shape, left, X, Y, given)
    else:
        name = left[0]
    if name == "ridge":
        return _ridge(shape, given, seed, why)
    given["random_state"] = seed
    if name == "one-vs-rest":
        return Choice(OneVsRest(**given), [f"learner: one-vs-rest, as {why}"])
    return _tree(shape, X, Y, given, why)


def _candidates(learner: str, given: Mapping[str, Any]) -> tuple[list[str], str | None]:
    """The learners that have all parameters given and, where only one is left, what decided."""
    if learner not in ("auto", *LEARNERS):
        raise InvalidInput(f"learner is {learner!r}; expected one of 'auto', {', '.join(map(repr, LEARNERS))}")
    left = list(LEARNERS) if learner == "auto" else [learner]
    why = None if learner == "auto" else "asked for"
    for parameter, value in given.items():
        owners = learners_taking(parameter, value)
        fitting = [name for name in left if name in owners]
        if not fitting:
            shown = f"{parameter}={value!r}" if parameter == "weighting" else parameter
            raise InvalidInput(
                f"{shown} is a parameter of {' and '.join(owners) or 'no learner'}; what else is given leaves "
                f"{' and '.join(left)}"
            )
        if len(fitting) == 1 < len(left):
            why = f"{parameter} is given"
        left = fitting
    return left, why


def _by_size(shape: Shape, left: list[str], X: Any, Y: Any, given: Mapping[str, Any]) -> tuple[str, str]:
    """The learner, among those left, that is best within the time one waits, and the numbers that decided."""
    sizes = f"{shape.n_labels:,} labels x {shape.n_rows:,} rows"
    if "ridge" in left and shape.n_labels <= _FEW_LABELS:
        return "ridge", f"{sizes} are few"
    seconds = _seconds(shape, shape.n_labels, given)
    if seconds > _PATIENCE:
        return "tree", f"{sizes} would take one-vs-rest about {seconds / 60:,.0f} min"
    memory = OneVsRest(**given).memory_plan(X, Y).total
    if memory > available_memory() / 2:
        return "tree", f"{sizes} would take one-vs-rest {format_bytes(memory)} of memory"
    return "one-vs-rest", f"{sizes} take it about {max(1, round(seconds))} s"


def _seconds(shape: Shape, classifiers: float, given: Mapping[str, Any]) -> float:
    """About how long so many classifiers take that each learn from all rows."""
    per_row = shape.non_zeros + _FEATURES_OF_A_ROW * shape.n_rows
    return _SECONDS * per_row * classifiers / resolve_jobs(given.get("n_jobs"))


def _tree(shape: Shape, X: Any, Y: Any, given: dict[str, Any], why: str) -> Choice:
    """A label tree: with the negatives that the beam finds where nothing else was said and that is affordable."""
    plain = LabelTree(**given)
    if "negatives" not in given:
        # A row passes a node or two on each level and, for each of its labels, a leaf.
        per_row = plain.branching + plain.leaf_size * shape.label_non_zeros / max(1, shape.n_rows)
        seconds = _COST_OF_BEAM * plain.n_trees * _seconds(shape, min(per_row, shape.n_labels), given)
        better = LabelTree(negatives="beam", **given)
        if seconds <= _PATIENCE and better.memory_plan(X, Y).total <= available_memory() / 2:
            return Choice(better, [f"learner: label tree with negatives=beam, as {why}"])
    return Choice(plain, [f"learner: label tree, as {why}"])


def _ridge(shape: Shape, given: dict[str, Any], seed: int, why: str) -> Choice:
    """Ridge, with an alpha chosen by leave-one-out where that is affordable, else a fixed one."""
    available = available_memory()
    reasons = []
    dense = 4 * shape.n_features * shape.n_labels
    sparsified = {"density", "prune"} & given.keys()
    if not sparsified and dense > available / 4:
        fitting = available // 8 // (_BYTES_OF_A_KEPT_WEIGHT * shape.n_labels)
        given["prune"] = int(min(max(fitting, 10), 1000, shape.n_features))
        reasons.append(
            f"keeping the {given['prune']} largest weights of each label, as all "
            f"{shape.n_features:,} x {shape.n_labels:,} would take {format_bytes(dense)} of {format_bytes(available)}"
        )
    if "alpha" in given:
        return Choice(Ridge(**given), [*reasons, f"learner: ridge with alpha={given['alpha']:g}, as given"])
    candidate = _with_path(given, seed)
    against = _against_path(candidate, shape, given, available)
    if candidate is not None and against is None:
        return Choice(candidate, [*reasons, f"learner: ridge, as {why}; alpha chosen by leave-one-out"])
    estimator = Ridge(**given)
    return Choice(estimator, [*reasons, f"learner: ridge, as {why}; alpha={estimator.alpha:g}, as {against}"])


def _with_path(given: Mapping[str, Any], seed: int) -> RidgeCV | None:
    """The learner that chooses its alpha, or None where the parameters given exclude it."""
    if "updatable" in given or given.get("solver") == "cg" or given.get("weighting") == "loss":
        return None
    return RidgeCV(
        random_state=seed, **{name: value for name, value in given.items() if name not in ("tol", "max_iter")}
    )


def _against_path(candidate: RidgeCV | None, shape: Shape, given: Mapping[str, Any], available: int) -> str | None:
    """Why alpha is not chosen by leave-one-out, or None where it is."""
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
