"""Loading: one of a fixed set of classes is built from a model directory; nothing in the directory is run."""

from __future__ import annotations

import os
from typing import Any

from longtail.errors import ModelFormatError
from longtail.store import read_model
from longtail.tagger import ESTIMATORS, FEATURES, Tagger

KINDS: dict[str, Any] = {"Tagger": Tagger, **ESTIMATORS, **FEATURES}


def load(directory: str | os.PathLike[str], *, verify: bool = True) -> Any:
    """Load a model that was written with ``save``.

    Parameters
    ----------
    directory : str or path-like
    verify : bool
        Check every file against its hash. Without it files are only mapped, which takes the same time whatever their
        size; their structure is checked either way.

    Examples
    --------
    >>> import tempfile
    >>> from longtail import Ridge, load
    >>> directory = tempfile.mkdtemp() + "/model"
    >>> Ridge().fit([[1.0, 0.0], [0.0, 1.0]], [[1, 0], [0, 1]]).save(directory)
    >>> load(directory).predict_topk([[1.0, 0.0]], k=1)[0].tolist()
    [[0]]
    """
    state = read_model(directory, verify=verify)
    if state.kind not in KINDS:
        raise ModelFormatError(
            f"{os.fspath(directory)}: the model is a {state.kind!r}; this version knows {sorted(KINDS)}"
        )
    return KINDS[state.kind].from_state(state)
