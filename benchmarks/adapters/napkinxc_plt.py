"""napkinXC: a probabilistic label tree with its documented defaults.

It writes the model to disk while it trains, and normalises rows to unit length itself.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from napkinxc.models import PLT  # type: ignore[import-untyped]

from benchmarks.adapters.base import Adapter


class LabelTree(Adapter):
    """One tree."""

    def version(self) -> str:
        return version("napkinxc")

    def prepare(self, X: Any, Y: Any, data: Path, folder: Path) -> tuple[Any, Any]:
        self.path = folder / "model"
        return X, Y

    def train(self, X: Any, Y: Any) -> None:
        self.model = PLT(str(self.path), threads=self.threads)
        self.model.fit(X, Y)

    def save(self, path: Path) -> None:
        if path != self.path:
            raise ValueError(f"napkinXC wrote its model to {self.path}, not to {path}")

    def load(self, path: Path) -> None:
        self.model = PLT(str(path), threads=self.threads)
        self.model.load()

    def predict(self, X: Any, k: int) -> Any:
        top = np.full((X.shape[0], k), -1, dtype=np.int32)
        for row, labels in enumerate(self.model.predict(X, top_k=k)):
            top[row, : len(labels)] = labels
        return top

    def predict_one(self, single: Any, k: int) -> Any:
        return self.model.predict(single, top_k=k)
