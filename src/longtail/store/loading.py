"""Loading: one of a fixed set of classes is built from a model directory; nothing in the directory is run."""

from __future__ import annotations

import os
from typing import Any

from longtail.errors import ModelFormatError
from longtail.store.kinds import put_together
from longtail.store.read import inspect_model, read_model
from longtail.version import __version__


def load(directory: str | os.PathLike[str], *, verify: bool = False) -> Any:
    """Load a model that was written with ``save``.

    Large arrays are mapped into memory and not read through, so that even a large model is there in milliseconds.
    A damaged model cannot crash the program or make it read outside its arrays, but it may give wrong scores; with
    ``verify=True`` any damage is found. What is checked when is listed in ``docs/model-format.md``.

    Parameters
    ----------
    directory : str or path-like
    verify : bool
        Read every file through and compare it with its checksum.

    Raises
    ------
    ModelFormatError
        If there is no model, or damage is found.

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
    try:
        model = put_together(state)
    except ModelFormatError as error:
        about = inspect_model(directory)
        writer = about["written_by"].get("longtail", "of an unknown version")
        raise ModelFormatError(
            f"{os.fspath(directory)}: {error} (a model of format {about['format_version']}, written by longtail "
            f"{writer}; this is longtail {__version__})"
        ) from None
    model.fingerprint_ = state.fingerprint
    return model
