"""The classes that a model may be of: a fixed set, by the name that a manifest gives, with the package of each.

A class is imported when a model of it is put together: networks bring torch along.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from longtail.errors import ModelFormatError
from longtail.store.state import State

_LINEAR = ("LabelSubsetClassifier", "LabelTree", "OneVsRest", "Ridge", "RidgeCV")
_NEURAL = ("DeepMIML", "MultiHeadClassifier")
ESTIMATORS = (*_LINEAR, *_NEURAL)
FEATURES = ("RowScaling", "TextFeatures")
PACKAGES = {
    **dict.fromkeys(_LINEAR, "longtail.linear"),
    **dict.fromkeys(_NEURAL, "longtail.neural"),
    **dict.fromkeys(FEATURES, "longtail.text"),
    "AggregatedClassifier": "longtail.aggregated",
    "Tagger": "longtail.tagger",
}


def put_together(state: State) -> Any:
    """The model that `state` describes, or `ModelFormatError`.

    Examples
    --------
    >>> put_together(State("RowScaling", {"log": False, "unit": True}, {"n_features": 2}))
    RowScaling()
    """
    if state.kind not in PACKAGES:
        raise ModelFormatError(f"the model is a {state.kind!r}; this version knows {sorted(PACKAGES)}")
    return getattr(import_module(PACKAGES[state.kind]), state.kind).from_state(state)
