"""longtail's own estimators, by the name of their class."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import longtail
from benchmarks.adapters.base import Adapter


class Estimator(Adapter):
    """`name` is a class of ``longtail``; everything else goes to its constructor."""

    def __init__(self, threads: int, name: str, **parameters: Any) -> None:
        super().__init__(threads)
        self.estimator = getattr(longtail, name)(n_jobs=threads, **parameters)

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
