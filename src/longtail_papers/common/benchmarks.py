"""The benchmark data sets as experiments use them: both parts, scaled, and judged by the same metrics."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from longtail.arrays import Array
from longtail.data import Corpus, data_set, load_data_set, part_files
from longtail.errors import Unavailable
from longtail.metrics import inverse_propensity, precision_at_k, propensity_constants, psp_at_k
from longtail.text import RowScaling

KS = (1, 3, 5)
PRECISIONS = tuple(f"P@{k}" for k in KS)
METRICS = (*PRECISIONS, *(f"PSP@{k}" for k in KS))
SCALINGS = {
    "as published": RowScaling(log=False, unit=False),
    "rows normalised": RowScaling(log=False, unit=True),
    "log(1+v), rows normalised": RowScaling(log=True, unit=True),
}


@dataclass(frozen=True)
class Benchmark:
    """The training and test rows of a data set with features."""

    name: str
    train: Corpus
    test: Corpus

    @property
    def title(self) -> str:
        return data_set(self.name).title

    @cached_property
    def inverse_propensity(self) -> Array:
        a, b = propensity_constants(self.name)
        return inverse_propensity(self.train.label_counts, self.train.n_rows, a=a, b=b)

    def features(self, scaling: str) -> tuple[Any, Any]:
        """The training and test rows, scaled as `SCALINGS` says."""
        scale = SCALINGS[scaling]
        return scale.fit_transform(self.train.features), scale.transform(self.test.features)

    def with_frequent_labels(self, most: int) -> Benchmark:
        """The same rows with only the `most` labels that have the most training rows."""
        if self.train.n_labels <= most:
            return self
        chosen = np.sort(np.argsort(-self.train.label_counts, kind="stable")[:most])
        names = [self.train.label_names[label] for label in chosen]
        return Benchmark(self.name, self.train.with_label_names(names), self.test.with_label_names(names))

    def judge(self, top_labels: Array) -> dict[str, float]:
        """The metrics of rankings of the test rows, in percent."""
        truth, weights = self.test.labels, self.inverse_propensity
        return precisions(truth, top_labels) | {f"PSP@{k}": 100 * psp_at_k(truth, top_labels, k, weights) for k in KS}


def precisions(truth: Any, top_labels: Array) -> dict[str, float]:
    """P@k of rankings, in percent."""
    return {f"P@{k}": 100 * precision_at_k(truth, top_labels, k) for k in KS}


def load_benchmarks(names: tuple[str, ...]) -> list[Benchmark]:
    """Load the data sets that are installed."""
    return [
        Benchmark(name, load_data_set(name, "train"), load_data_set(name, "test"))
        for name in names
        if why_missing(name) is None
    ]


def why_missing(name: str) -> str | None:
    """None if both parts of a data set are installed; otherwise where they were looked for and how to get them."""
    try:
        part_files(name, "train")
        part_files(name, "test")
    except Unavailable as error:
        return str(error)
    return None
