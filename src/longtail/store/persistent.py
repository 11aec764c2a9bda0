"""`Persistent`: an estimator that can be saved, by saying what its state is."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Self

from longtail.store.state import State
from longtail.store.write import write_model


class Persistent(ABC):
    """Adds `save` to a class that can take itself apart and be put together again."""

    fingerprint_: str
    """The SHA-256 of the ``manifest.json`` that the model was loaded from."""

    def save(self, directory: str | os.PathLike[str], card: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        """Write the fitted model to `directory`, over an earlier model if one is there; `longtail.load` reads it.

        Parameters
        ----------
        directory : str or path-like
            A new directory, an empty one, or one that holds a longtail model.
        card : mapping or None
            Sections of its card, as `longtail.store.update_card` takes them.
        """
        write_model(self.to_state(), directory, card)

    @abstractmethod
    def to_state(self) -> State:
        """Take the fitted model apart."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: State) -> Self:
        """Put a model together, or raise `ModelFormatError` if `state` does not describe one of this class."""
