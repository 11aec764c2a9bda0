"""The classes that can be loaded: those of longtail, and learners that the program or a package registered.

A class is imported when a model of it is built, because networks import torch. Nothing in a model directory can extend
the set.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, TypeVar

from longtail.errors import InvalidInput, ModelFormatError
from longtail.store.state import State

_ESTIMATORS = {
    "LabelSubsetClassifier": "longtail.subset",
    "LabelTree": "longtail.trees",
    "OneVsRest": "longtail.trees",
    "Ridge": "longtail.ridge",
    "RidgeCV": "longtail.ridge",
    "TwoStage": "longtail.ranking",
    "DeepMIML": "longtail.neural",
    "MultiHeadClassifier": "longtail.neural",
}
_FEATURES = {
    "JoinedFeatures": "longtail.text",
    "RowScaling": "longtail.text",
    "SentenceFeatures": "longtail.neural",
    "TextFeatures": "longtail.text",
    "TokenFeatures": "longtail.neural",
}
FEATURES = tuple(_FEATURES)
PACKAGES = {
    **_ESTIMATORS,
    **_FEATURES,
    "AggregatedClassifier": "longtail.aggregated",
    "Tagger": "longtail.tagger",
}

_GROUP = "longtail.learners"  # the entry points that installed packages may declare
_registered: dict[str, Any] = {}

Learner = TypeVar("Learner", bound=type)


def register(learner: Learner) -> Learner:
    """Allow `longtail.load` to build models of a class, by its name. Use it to decorate the class.

    An installed package registers its learners without being imported if it declares entry points of the group
    ``longtail.learners``, each with the name of its class.

    Raises
    ------
    InvalidInput
        If longtail has a class of that name.
    """
    name = learner.__name__
    if name in PACKAGES:
        raise InvalidInput(f"longtail has a class {name} already; rename the learner")
    _registered[name] = learner
    return learner


def put_together(state: State) -> Any:
    """Build the model that `state` describes, or raise `ModelFormatError`.

    Examples
    --------
    >>> put_together(State("RowScaling", {"log": False, "unit": True}, {"n_features": 2}))
    RowScaling()
    """
    found = _class_of(state.kind)
    # Features of rows are only ever parts of a model and have no more than their own state.
    return getattr(found, "from_saved", found.from_state)(state)


def put_learner_together(state: State) -> Any:
    """Build the learner of rows inside another model, or raise `ModelFormatError`."""
    if state.kind in PACKAGES and state.kind not in _ESTIMATORS:
        raise ModelFormatError(f"{state.kind} does not learn from rows; expected one of {', '.join(_ESTIMATORS)}")
    return put_together(state)


def _class_of(kind: str) -> Any:
    if kind in PACKAGES:
        return getattr(import_module(PACKAGES[kind]), kind)
    if kind not in _registered:
        for point in entry_points(group=_GROUP, name=kind):
            register(point.load())
    if kind not in _registered:
        raise ModelFormatError(
            f"the model is a {kind!r}; known classes are {sorted([*PACKAGES, *_registered])}. Import the module that "
            "registers this learner, or install its package"
        )
    return _registered[kind]
