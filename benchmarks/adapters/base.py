"""`Adapter`: what the child asks of a learner.

Everything between `prepare` and the end of `train` that is not training (reading files, changing formats the learner
cannot take) belongs into `prepare`, which is not timed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any


class Adapter:
    """A learner of one family; `settings` of the table of learners are its keyword arguments."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.model: Any = None

    def version(self) -> str:
        raise NotImplementedError

    def prepare(self, X: Any, Y: Any, data: Path, folder: Path) -> tuple[Any, Any]:
        """What `train` is given, and whatever else must happen before the clock starts.

        `data` holds the prepared files; `folder` is the child's own, where ``model`` is the path given to `save`.
        """
        return X, Y

    def train(self, X: Any, Y: Any) -> None:
        raise NotImplementedError

    def save(self, path: Path) -> None:
        raise NotImplementedError

    def forget(self) -> None:
        """Drop the trained model, so that loading cannot lean on it."""
        self.model = None

    def load(self, path: Path) -> None:
        raise NotImplementedError

    def predict(self, X: Any, k: int) -> Any:
        """The k best labels of every row, -1 where there are fewer."""
        raise NotImplementedError

    def single_input(self, row: Any) -> Any:
        """One row in the form `predict_one` takes; not timed."""
        return row

    def predict_one(self, single: Any, k: int) -> Any:
        """The k best labels of one row, as users of the learner ask for them."""
        raise NotImplementedError
