"""`Persistent` and `load`: save a model to a directory, and build one of a fixed set of classes from it again."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

from longtail.errors import InvalidInput, ModelFormatError
from longtail.store.kinds import put_together
from longtail.store.layout import plain_value
from longtail.store.read import inspect_model, read_model
from longtail.store.state import State
from longtail.store.write import write_model
from longtail.version import __version__


class Persistent(ABC):
    """Adds `save` to a class that can take itself apart and be put together again."""

    fingerprint_: str
    """The SHA-256 of the ``manifest.json`` that the model was loaded from."""

    def save(self, directory: str | os.PathLike[str], card: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        """Write the fitted model to `directory`, over an earlier model if one is there; `longtail.load` reads it.

        The model is put together again before anything is written, so that what is written can be loaded.

        Parameters
        ----------
        directory : str or path-like
            A new directory, an empty one, or one that holds a longtail model.
        card : mapping or None
            Sections of its card, as `longtail.store.update_card` takes them.

        Raises
        ------
        InvalidInput
            If the model could not be loaded again; nothing is written then.
        """
        state = self.to_state()
        try:
            put_together(_as_read(state))
        except ModelFormatError as error:
            raise InvalidInput(f"{type(self).__name__} cannot be saved, for it could not be loaded: {error}") from None
        except MemoryError:
            pass  # there is no room to check, and what was trained must not be lost for that
        write_model(state, directory, card)

    @abstractmethod
    def to_state(self) -> State:
        """Take the fitted model apart."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: State) -> Self:
        """Put a model together, or raise `ModelFormatError` if `state` does not describe one of this class."""


def part_state(part: Any) -> State:
    """The state of a model inside another, or `InvalidInput` if it is somebody else's and has none."""
    try:
        take_apart = part.to_state
    except AttributeError:
        raise InvalidInput(f"a {type(part).__name__} cannot be saved; only what longtail brings along can") from None
    found: State = take_apart()
    return found


def _as_read(state: State) -> State:
    """The state as it comes back from a manifest, in which numbers are Python's."""
    try:
        params, facts = (plain_value(values, state.kind) for values in (state.params, state.facts))
    except ValueError as error:
        raise ModelFormatError(str(error)) from None
    return replace(
        state, params=params, facts=facts, parts={name: _as_read(part) for name, part in state.parts.items()}
    )


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
