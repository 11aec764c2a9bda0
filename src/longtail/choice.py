"""Which learner to train, and why: ridge, one-vs-rest or label trees, by size and by estimated cost."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from longtail.errors import InvalidInput
from longtail.estimator import Estimator
from longtail.labels import LabelHierarchy
from longtail.memory import available_memory, format_bytes
from longtail.parallel import resolve_jobs
from longtail.ridge import Ridge, RidgeCV, Shape
from longtail.trees import LabelTree, OneVsRest
from longtail.validation import as_features, as_labels

NETWORK = "network"
_LINEAR = ("tree", "one-vs-rest", "ridge")
LEARNERS = ("auto", *_LINEAR, NETWORK)
_WEIGHTINGS = {"loss": (*_LINEAR, NETWORK), "target": ("ridge",), "score": ("tree", "one-vs-rest")}

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


def _of(*learners: str) -> Any:
    """A parameter that only these learners have; None leaves it to them."""
    return field(default=None, metadata={"learners": learners})


@dataclass(frozen=True)
class LearnerOptions:
    """What to train, as far as it is decided; the data decide the rest.

    A parameter that is None is left to the learner. A parameter that only some learners have restricts the choice to
    them. Parameters have the names and meanings of those of the learners.

    Parameters
    ----------
    learner : {"auto", "tree", "one-vs-rest", "ridge", "network"}
    taxonomy : str or None
        A file of lines ``child TAB parent``, used as the label tree.
    missing : {"error", "root", "drop"} or None
        What to do with labels that are not in the taxonomy; None means error.

    Examples
    --------
    >>> LearnerOptions(C=2.0).candidates()
    (['tree', 'one-vs-rest'], None)
    >>> LearnerOptions(n_trees=3).candidates()
    (['tree'], 'n_trees is given')
    """

    learner: str = "auto"
    n_trees: int | None = _of("tree")
    leaf_size: int | None = _of("tree")
    branching: int | None = _of("tree")
    beam: int | None = _of("tree")
    negatives: str | None = _of("tree")
    hierarchy: LabelHierarchy | None = field(default=None, metadata={"learners": ("tree",)})
    taxonomy: str | None = _of("tree")
    missing: str | None = _of("tree")
    loss: str | None = _of("tree", "one-vs-rest")
    C: float | None = _of("tree", "one-vs-rest")
    prune: float | None = _of(*_LINEAR)
    alpha: float | None = _of("ridge")
    solver: str | None = _of("ridge")
    fit_intercept: bool | None = _of("ridge")
    density: float | None = _of("ridge")
    updatable: bool | None = _of("ridge")
    weighting: str | None = _of(*_LINEAR, NETWORK)
    head: str | None = _of(NETWORK)
    n_heads: int | None = _of(NETWORK)
    width: int | None = _of(NETWORK)
    epochs: int | None = _of(NETWORK)
    batch_size: int | None = _of(NETWORK)
    learning_rate: float | None = _of(NETWORK)
    dropout: float | None = _of(NETWORK)
    n_networks: int | None = _of(NETWORK)
    checkpoint: str | None = _of(NETWORK)
    random_state: int = 0
    n_jobs: int | None = None

    def given(self) -> dict[str, Any]:
        """The parameters of learners that are set, by name."""
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.metadata}
        return {name: value for name, value in values.items() if value is not None and value is not False}

    def candidates(self, spell: Callable[[str], str] = str) -> tuple[list[str], str | None]:
        """The learners that have all the given parameters and, where that leaves one, what decided.

        Parameters
        ----------
        spell : callable
            How to write the name of a parameter in an error message.

        Raises
        ------
        InvalidInput
            With code ``conflicting_parameters`` where no learner has all of them.
        """
        if self.learner not in LEARNERS:
            raise InvalidInput(f"learner is {self.learner!r}; expected one of {', '.join(map(repr, LEARNERS))}")
        if self.missing is not None and self.taxonomy is None:
            message = f"{spell('missing')} needs {spell('taxonomy')}"
            raise InvalidInput(message, code="conflicting_parameters", name="missing")
        if self.density is not None and self.prune is not None:
            message = f"{spell('density')} and {spell('prune')} exclude each other"
            raise InvalidInput(message, code="conflicting_parameters", name="density")
        left = list(_LINEAR) if self.learner == "auto" else [self.learner]
        why = None if self.learner == "auto" else "requested"
        decided = f"{spell('learner')} {self.learner}"
        for name, value in self.given().items():
            owners = learners_taking(name, value)
            spelled = f"{spell(name)} {value}" if name == "weighting" else spell(name)
            fitting = [learner for learner in left if learner in owners]
            if not fitting:
                message = f"{spelled} is for {' and '.join(owners)}; it does not go with {decided}"
                raise InvalidInput(message, code="conflicting_parameters", name=name)
            if len(fitting) < len(left):
                decided = spelled
                why = f"{name} is given" if len(fitting) == 1 else why
            left = fitting
        return left, why


def learners_taking(parameter: str, value: Any) -> tuple[str, ...]:
    """The learners that have a parameter of `LearnerOptions` and accept the value.

    >>> learners_taking("C", 1.0)
    ('tree', 'one-vs-rest')
    >>> learners_taking("weighting", "target")
    ('ridge',)
    """
    if parameter == "weighting":
        if value not in _WEIGHTINGS:
            raise InvalidInput(f"weighting is {value!r}; expected one of None, {', '.join(map(repr, _WEIGHTINGS))}")
        return _WEIGHTINGS[value]
    owners = {each.name: each.metadata.get("learners", LEARNERS[1:]) for each in fields(LearnerOptions)}
    return owners[parameter]


def check_learner(estimator: Any, owner: str) -> None:
    """Refuse an estimator that could be trained on rows but not rank labels, such as those of other libraries."""
    name = type(estimator).__name__
    if not isinstance(estimator, Estimator):
        raise InvalidInput(
            f"{owner}: the estimator is a {name}, not a longtail.estimator.Estimator; use a learner such as LabelTree, "
            "OneVsRest or Ridge, or None to have one chosen"
        )
    if "groups" in inspect.signature(estimator.fit).parameters:
        raise InvalidInput(f"{owner}: the estimator is a {name}, which learns from groups; use a learner of rows")


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
