"""A learner that predicts the most frequent labels, and fails in the way it is told to."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.adapters.base import Adapter


class Fake(Adapter):
    def __init__(self, threads: int, fault: str = "") -> None:
        super().__init__(threads)
        self.fault = fault

    def version(self) -> str:
        return "1.0"

    def train(self, X: Any, Y: Any) -> None:
        if self.fault == "dies":
            os._exit(3)
        if self.fault == "raises":
            raise RuntimeError("no model today")
        if self.fault == "hangs":
            time.sleep(60)
        if self.fault == "allocates":
            np.ones(2**23)
        counts = np.asarray(Y.sum(axis=0)).ravel()
        self.model = np.argsort(-counts, kind="stable").astype(np.int32)

    def save(self, path: Path) -> None:
        path.mkdir()
        np.save(path / "order.npy", self.model)

    def load(self, path: Path) -> None:
        self.model = np.load(path / "order.npy")

    def predict(self, X: Any, k: int) -> Any:
        return np.tile(self.model[:k], (X.shape[0], 1))

    def predict_one(self, single: Any, k: int) -> Any:
        return self.model[:k]


class NeedsWhatIsNotThere(Adapter):
    def __init__(self, threads: int) -> None:
        import a_package_that_nobody_has  # type: ignore[import-not-found] # noqa: F401
