"""PECOS: XR-Linear with its documented defaults (leaves of 100 labels, 16 branches, beam 10, threshold 0.1)."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from pecos.xmc import Indexer, LabelEmbeddingFactory  # type: ignore[import-not-found]
from pecos.xmc.xlinear import XLinearModel  # type: ignore[import-not-found]

from benchmarks.adapters.base import Adapter
from benchmarks.arrays import top_labels

BEAM = 10


class XLinear(Adapter):
    """One tree; `negatives` is a negative sampling scheme of PECOS."""

    def __init__(self, threads: int, negatives: str = "tfn") -> None:
        super().__init__(threads)
        self.negatives = negatives

    def version(self) -> str:
        return version("libpecos")

    def train(self, X: Any, Y: Any) -> None:
        labels = Y.tocsc().astype(np.float32)
        vectors = LabelEmbeddingFactory.create(labels, X, method="pifa")
        chain = Indexer.gen(vectors, threads=self.threads)
        self.model = XLinearModel.train(
            X,
            labels,
            C=chain,
            threads=self.threads,
            negative_sampling_scheme=self.negatives,
            threshold=0.1,
            pred_kwargs={"beam_size": BEAM, "only_topk": 20},
        )

    def save(self, path: Path) -> None:
        self.model.save(str(path))

    def load(self, path: Path) -> None:
        self.model = XLinearModel.load(str(path), is_predict_only=True)

    def predict(self, X: Any, k: int) -> Any:
        return top_labels(self.model.predict(X, only_topk=k, beam_size=BEAM, threads=self.threads), k)

    def predict_one(self, single: Any, k: int) -> Any:
        return self.model.predict(single, only_topk=k, beam_size=BEAM, threads=1)
