"""`Persistent`: an estimator that can be saved, by saying what its state is."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import Self

from longtail.store.state import State
from longtail.store.write import write_model


class Persistent(ABC):
    """Adds `save` to a class that can take itself apart and be put together again."""

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write the fitted model to `directory`, over an earlier model if one is there; `longtail.load` reads it.

        Parameters
        ----------
        directory : str or path-like
            A new directory, an empty one, or one that holds a longtail model.
        """
        write_model(self.to_state(), directory)

    @abstractmethod
    def to_state(self) -> State:
        """Take the fitted model apart."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: State) -> Self:
        """Put a model together, or raise `ModelFormatError` if `state` does not describe one of this class."""
