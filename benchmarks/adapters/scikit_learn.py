"""scikit-learn: one linear SVM per label, on threads (LIBLINEAR releases the interpreter lock)."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import joblib  # type: ignore[import-untyped]
import numpy as np
import sklearn
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from benchmarks.adapters.base import Adapter


class OneVsRestSVC(Adapter):
    """OneVsRestClassifier(LinearSVC()), both with their defaults."""

    def version(self) -> str:
        return str(sklearn.__version__)

    def train(self, X: Any, Y: Any) -> None:
        model = OneVsRestClassifier(LinearSVC(), n_jobs=self.threads)
        with joblib.parallel_config(backend="threading"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning for every label without training rows
            self.model = model.fit(X, Y.astype(np.int32))

    def save(self, path: Path) -> None:
        joblib.dump(self.model, path)

    def load(self, path: Path) -> None:
        self.model = joblib.load(path)

    def predict(self, X: Any, k: int) -> Any:
        scores = self.model.decision_function(X)
        top = np.argpartition(-scores, k, axis=1)[:, :k]
        order = np.argsort(-np.take_along_axis(scores, top, axis=1), axis=1, kind="stable")
        return np.take_along_axis(top, order, axis=1)

    def predict_one(self, single: Any, k: int) -> Any:
        return self.predict(single, k)
