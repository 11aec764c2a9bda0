"""Which learner to train by size alone: for work that cannot wait for a race, such as labels of groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from longtail.choice.options import NETWORK, LearnerOptions
from longtail.errors import InvalidInput
from longtail.estimator import Estimator
from longtail.memory import available_memory, format_bytes
from longtail.parallel import resolve_jobs
from longtail.ridge import Ridge, RidgeCV, Shape
from longtail.trees import LabelTree, OneVsRest
from longtail.validation import as_features, as_labels

# Dense multiply-adds; a small machine does about this many in a minute or two.
_AFFORDABLE_WORK = 3e12
_BYTES_OF_A_KEPT_WEIGHT = 24
# Up to this many labels ridge, which tunes its penalty, ranks better than classifiers that do not.
_FEW_LABELS = 300
# Seconds of one core per row, classifier and feature of the row; each row costs as much as this many more features.
_SECONDS = 2.2e-9
_FEATURES_OF_A_ROW = 60
_PATIENCE = 120.0
_COST_OF_BEAM = 4  # times that of a tree without


class Choice(NamedTuple):
    """A learner that is not fitted yet, and the reasons for choosing it."""

    estimator: Estimator
    reasons: list[str]


def choose_learner(X: Any, Y: Any, options: LearnerOptions | None = None) -> Choice:
    """Choose a learner, and its parameters, for features X and labels Y.

    Ridge for few labels, one-vs-rest where it takes no more than a minute or two, else label trees.

    Parameters
    ----------
    X, Y : sparse matrices
    options : LearnerOptions or None
        What is decided already. Networks and taxonomies need more than X and Y: `longtail.Tagger` takes them.

    Examples
    --------
    >>> import numpy as np
    >>> choose_learner(np.eye(3), np.eye(3)).reasons
    ['learner: ridge, as 3 labels x 3 rows are few; alpha chosen by leave-one-out']
    >>> choose_learner(np.eye(3), np.eye(3), LearnerOptions(n_trees=2)).reasons
    ['learner: label tree with negatives=beam, as n_trees is given']
    """
    options = LearnerOptions() if options is None else options
    left, why = options.candidates()
    if options.learner == NETWORK or options.taxonomy is not None:
        raise InvalidInput("a network or a taxonomy cannot be chosen by size; give the options to longtail.Tagger")
    settings = {**options.given(), "n_jobs": options.n_jobs}
    X, Y = as_features(X), as_labels(Y)
    shape = Shape.of(X, Y)
    name = left[0]
    if why is None:
        name, why = _by_size(shape, left, X, Y, settings)
    if name == "ridge":
        return _ridge(shape, settings, options.random_state, why)
    settings["random_state"] = options.random_state
    if name == "one-vs-rest":
        return Choice(OneVsRest(**settings), [f"learner: one-vs-rest, as {why}"])
    return _tree(shape, X, Y, settings, why)


def _by_size(shape: Shape, left: list[str], X: Any, Y: Any, settings: Mapping[str, Any]) -> tuple[str, str]:
    """The best of the learners left that trains within the time limit, and the numbers that decided."""
    sizes = f"{shape.n_labels:,} labels x {shape.n_rows:,} rows"
    if "ridge" in left and shape.n_labels <= _FEW_LABELS:
        return "ridge", f"{sizes} are few"
    seconds = _seconds(shape, shape.n_labels, settings)
    if seconds > _PATIENCE:
        return "tree", f"{sizes} would take one-vs-rest about {seconds / 60:,.0f} min"
    memory = OneVsRest(**settings).memory_plan(X, Y).total
    if memory > available_memory() / 2:
        return "tree", f"{sizes} would take one-vs-rest {format_bytes(memory)} of memory"
    return "one-vs-rest", f"{sizes} take only about {max(1, round(seconds))} s"


def _seconds(shape: Shape, classifiers: float, settings: Mapping[str, Any]) -> float:
    """Estimated time to train this many classifiers on all rows."""
    per_row = shape.non_zeros + _FEATURES_OF_A_ROW * shape.n_rows
    return _SECONDS * per_row * classifiers / resolve_jobs(settings.get("n_jobs"))


def _tree(shape: Shape, X: Any, Y: Any, settings: dict[str, Any], why: str) -> Choice:
    """A label tree; unless told otherwise, with the negatives that the beam finds if that is affordable."""
    plain = LabelTree(**settings)
    if "negatives" not in settings:
        # A row passes a node or two on each level and, for each of its labels, a leaf.
        per_row = plain.branching + plain.leaf_size * shape.label_non_zeros / max(1, shape.n_rows)
        seconds = _COST_OF_BEAM * plain.n_trees * _seconds(shape, min(per_row, shape.n_labels), settings)
        better = LabelTree(negatives="beam", **settings)
        if seconds <= _PATIENCE and better.memory_plan(X, Y).total <= available_memory() / 2:
            return Choice(better, [f"learner: label tree with negatives=beam, as {why}"])
    return Choice(plain, [f"learner: label tree, as {why}"])


def _ridge(shape: Shape, settings: dict[str, Any], seed: int, why: str) -> Choice:
    """Ridge, with alpha chosen by leave-one-out where that is affordable, else a fixed one."""
    available = available_memory()
    reasons = []
    dense = 4 * shape.n_features * shape.n_labels
    if not {"density", "prune"} & settings.keys() and dense > available / 4:
        fitting = available // 8 // (_BYTES_OF_A_KEPT_WEIGHT * shape.n_labels)
        settings["prune"] = int(min(max(fitting, 10), 1000, shape.n_features))
        reasons.append(
            f"keeping the {settings['prune']} largest weights of each label: all {shape.n_features:,} x "
            f"{shape.n_labels:,} would take {format_bytes(dense)} of {format_bytes(available)} of memory"
        )
    if "alpha" in settings:
        return Choice(Ridge(**settings), [*reasons, f"learner: ridge with alpha={settings['alpha']:g}, as given"])
    found = _leave_one_out(settings, shape, available, seed)
    if isinstance(found, RidgeCV):
        return Choice(found, [*reasons, f"learner: ridge, as {why}; alpha chosen by leave-one-out"])
    estimator = Ridge(**settings)
    return Choice(estimator, [*reasons, f"learner: ridge, as {why}; alpha={estimator.alpha:g}, as {found}"])


def _leave_one_out(settings: Mapping[str, Any], shape: Shape, available: int, seed: int) -> RidgeCV | str:
    """Ridge that chooses its alpha, or why that is not possible."""
    for name, value in (("solver", "cg"), ("weighting", "loss"), ("updatable", True)):
        if settings.get(name) == value:
            return f"leave-one-out does not support {name}={value}"
    candidate = RidgeCV(random_state=seed, **settings)
    path = candidate.cheapest_path(shape)
    if path.plan.total > available / 2:
        return f"leave-one-out would take {format_bytes(path.plan.total)} of memory"
    if path.work > _AFFORDABLE_WORK:
        return "leave-one-out would take too long with this many rows and features"
    return candidate
