"""`Adapter`: the interface between the child and a learner.

Work that is not training, such as reading files or converting formats, belongs in `prepare`, which is not timed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.arrays import read_matrix


class Adapter:
    """A family of learners; the `settings` in the table of learners are its keyword arguments."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.model: Any = None

    def version(self) -> str:
        raise NotImplementedError

    def read_training(self, data: Path) -> tuple[Any, Any]:
        """Read the training rows from the prepared files; not timed."""
        return read_matrix(data / "train_features"), read_matrix(data / "train_labels")

    def prepare(self, X: Any, Y: Any, data: Path, folder: Path) -> tuple[Any, Any]:
        """Prepare the arguments of `train` and do everything else that is not timed.

        `data` holds the prepared files; `folder` belongs to the child, and `save` gets its path ``model``.
        """
        return X, Y

    def train(self, X: Any, Y: Any) -> None:
        raise NotImplementedError

    def save(self, path: Path) -> None:
        raise NotImplementedError

    def forget(self) -> None:
        """Drop the trained model, so that loading cannot reuse it."""
        self.model = None

    def load(self, path: Path) -> None:
        raise NotImplementedError

    def read_test(self, data: Path) -> Any:
        """Read the test rows, as a matrix or a list; not timed."""
        return read_matrix(data / "test_features")

    def predict(self, X: Any, k: int) -> Any:
        """The k best labels of every row, -1 if there are fewer."""
        raise NotImplementedError

    def single_input(self, row: Any) -> Any:
        """Convert a row to the form that `predict_one` takes; not timed."""
        return row

    def predict_one(self, single: Any, k: int) -> Any:
        """The k best labels of one row, called as users of the learner would."""
        raise NotImplementedError
