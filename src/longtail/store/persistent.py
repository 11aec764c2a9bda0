"""`Persistent`: an estimator that can be saved, by saying what its state is."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

from longtail.errors import InvalidInput, ModelFormatError
from longtail.store.kinds import put_together
from longtail.store.state import State
from longtail.store.values import plain_value
from longtail.store.write import write_model


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
