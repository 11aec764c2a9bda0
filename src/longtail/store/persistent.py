"""`Persistent` and `load`: save a model to a directory, and build one of a fixed set of classes from it again."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

from longtail.errors import InvalidInput, ModelFormatError
from longtail.files import PathName, is_url
from longtail.store.kinds import put_together
from longtail.store.layout import plain_value
from longtail.store.read import inspect_model, read_model
from longtail.store.state import State
from longtail.store.write import write_model
from longtail.version import __version__


class Persistent(ABC):
    """Adds `save` to a class that can be converted to a `State` and back."""

    fingerprint_: str
    """The SHA-256 of the ``manifest.json`` that the model was loaded from."""
    directory_: str
    """The directory, or the URL, that the model was loaded from."""

    def save(
        self,
        directory: PathName,
        card: Mapping[str, Mapping[str, Any]] | None = None,
        *,
        replaces: str | None = None,
    ) -> None:
        """Write the fitted model to `directory`, replacing an earlier model; `longtail.load` reads it.

        The model is first rebuilt from its state, so a model that could not be loaded is never written.

        Parameters
        ----------
        directory : str or path-like
            A new directory, an empty one, or one that holds a longtail model; or a URL such as ``s3://bucket/model``.
        card : mapping or None
            Sections of its card, as for `longtail.store.update_card`.
        replaces : str or None
            The ``fingerprint_`` of the only model that may be replaced; None replaces any.

        Raises
        ------
        InvalidInput
            If the model could not be loaded again, or there is another model than the one to replace; nothing is
            written.
        """
        state = self.state()
        try:
            put_together(_as_read(state))
        except ModelFormatError as error:
            raise InvalidInput(
                f"{type(self).__name__} cannot be saved because it could not be loaded again: {error}"
            ) from None
        except MemoryError:
            pass  # too little memory to check; the trained model must not be lost
        write_model(state, directory, card, replaces=replaces)

    def state(self) -> State:
        """Return what is saved: the state of the fitted model, and what a base class adds."""
        return self.to_state()

    @classmethod
    def from_saved(cls, state: State) -> Self:
        """Build a model from what `state` has returned, or raise `ModelFormatError`."""
        return cls.from_state(state)

    @abstractmethod
    def to_state(self) -> State:
        """Return the state of the fitted model."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: State) -> Self:
        """Build a model, or raise `ModelFormatError` if `state` does not describe one of this class."""


def part_state(part: Any) -> State:
    """Return the state of a model inside another, or raise `InvalidInput` if another library made it."""
    try:
        take_apart = part.state if isinstance(part, Persistent) else part.to_state
    except AttributeError:
        raise InvalidInput(f"a {type(part).__name__} cannot be saved; only classes of longtail can") from None
    found: State = take_apart()
    return found


def _as_read(state: State) -> State:
    """The state as it is read from a manifest, with Python numbers."""
    try:
        params, facts = (plain_value(values, state.kind) for values in (state.params, state.facts))
    except ValueError as error:
        raise ModelFormatError(str(error)) from None
    return replace(
        state, params=params, facts=facts, parts={name: _as_read(part) for name, part in state.parts.items()}
    )


def load(directory: PathName, *, verify: bool = False) -> Any:
    """Load a model written with ``save``.

    Large arrays are mapped into memory, not read, so even a large model loads in milliseconds. A damaged model cannot
    crash the program or make it read outside its arrays, but it may give wrong scores. ``verify=True`` finds all
    damage. ``docs/model-format.md`` lists all checks.

    Parameters
    ----------
    directory : str or path-like
        A directory, or a URL such as ``s3://bucket/model``: what the cache lacks is fetched from there.
    verify : bool
        Read every file and compare it with its checksum.

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
    model.directory_ = directory if is_url(directory) else os.path.abspath(directory)
    return model
