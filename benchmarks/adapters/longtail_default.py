"""What ``longtail train`` does by default: it makes features, chooses a learner and trains it.

It gets the texts and, if there is a vocabulary, the texts of the labels; rows of features only if there are no texts.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import longtail
from benchmarks.adapters.base import Adapter
from benchmarks.arrays import read_matrix
from longtail import Tagger
from longtail.choice import LearnerOptions
from longtail.data import Corpus


class Default(Adapter):
    """`options` are those of `LearnerOptions`."""

    def __init__(self, threads: int, **options: Any) -> None:
        super().__init__(threads)
        self.tagger = Tagger(estimator=LearnerOptions(n_jobs=threads, **options))
        logging.basicConfig(level=logging.INFO, format="%(message)s")

    def version(self) -> str:
        return longtail.__version__

    def read_training(self, data: Path) -> tuple[Any, Any]:
        """The corpus, in place of both matrices."""
        Y = sparse.csr_array(read_matrix(data / "train_labels"))
        texts = _read_list(data / "train_texts.json")
        if texts is None:
            names = [str(label) for label in range(Y.shape[1])]
            return Corpus(Y, names, features=read_matrix(data / "train_features")), None
        names = _read_list(data / "label_names.json") or []
        Y.resize((Y.shape[0], len(names)))
        return Corpus(Y, names, texts=texts, label_texts=_read_list(data / "label_texts.json")), None

    def prepare(self, X: Any, Y: Any, data: Path, folder: Path) -> tuple[Any, Any]:
        self.column_of = {name: column for column, name in enumerate(X.label_names)}
        return X, Y

    def train(self, X: Any, Y: Any) -> None:
        self.model = self.tagger.fit_corpus(X)

    def save(self, path: Path) -> None:
        self.model.save(path)

    def forget(self) -> None:
        self.model = self.tagger = None

    def load(self, path: Path) -> None:
        self.model = longtail.load(path)
        self.columns = np.array([self.column_of[name] for name in self.model.label_names_] + [-1])

    def read_test(self, data: Path) -> Any:
        texts = _read_list(data / "test_texts.json")
        return super().read_test(data) if texts is None else texts

    def predict(self, X: Any, k: int) -> Any:
        return self.columns[self.model.predict_topk(X, k)[0]]

    def single_input(self, row: Any) -> Any:
        return [row] if isinstance(row, str) else row

    def predict_one(self, single: Any, k: int) -> Any:
        return self.model.predict_topk(single, k)


def _read_list(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
