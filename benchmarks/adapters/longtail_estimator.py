"""longtail's own learners and those of installed packages, by the name of their class."""

from __future__ import annotations

from importlib.metadata import entry_points
from inspect import signature
from pathlib import Path
from typing import Any

import longtail
from benchmarks.adapters.base import Adapter
from longtail.store import register


class Estimator(Adapter):
    """`name` is a class of ``longtail`` or an entry point ``longtail.learners``; the rest goes to its constructor."""

    def __init__(self, threads: int, name: str, **parameters: Any) -> None:
        super().__init__(threads)
        own = entry_points(group="longtail.learners", name=name)
        kind = register(next(iter(own)).load()) if own else getattr(longtail, name)
        if "n_jobs" in signature(kind).parameters:
            parameters["n_jobs"] = threads
        self.estimator = kind(**parameters)

    def version(self) -> str:
        return longtail.__version__

    def train(self, X: Any, Y: Any) -> None:
        self.model = self.estimator.fit(X, Y)

    def save(self, path: Path) -> None:
        self.model.save(path)

    def forget(self) -> None:
        self.model = self.estimator = None

    def load(self, path: Path) -> None:
        self.model = longtail.load(path)

    def predict(self, X: Any, k: int) -> Any:
        return self.model.predict_topk(X, k)[0]

    def predict_one(self, single: Any, k: int) -> Any:
        return self.model.predict_topk(single, k)
