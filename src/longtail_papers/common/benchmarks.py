"""The benchmark data sets as experiments use them: both parts, scaled, and judged by one set of metrics."""

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
METRICS = (*(f"P@{k}" for k in KS), *(f"PSP@{k}" for k in KS))
SCALINGS = {
    "as published": RowScaling(log=False, unit=False),
    "rows normalised": RowScaling(log=False, unit=True),
    "log(1+v), rows normalised": RowScaling(log=True, unit=True),
}


@dataclass(frozen=True)
class Benchmark:
    """A data set with features, both parts."""

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
        """The training and the test rows, scaled as `SCALINGS` says."""
        scale = SCALINGS[scaling]
        return scale.fit_transform(self.train.features), scale.transform(self.test.features)

    def with_frequent_labels(self, most: int) -> Benchmark:
        """The same rows with only the `most` labels of the most training rows, in training and test."""
        if self.train.n_labels <= most:
            return self
        chosen = np.sort(np.argsort(-self.train.label_counts, kind="stable")[:most])
        names = [self.train.label_names[label] for label in chosen]
        return Benchmark(self.name, self.train.with_label_names(names), self.test.with_label_names(names))

    def judge(self, top_labels: Array) -> dict[str, float]:
        """The metrics of rankings of the test rows, in percent."""
        truth = self.test.labels
        precision = {f"P@{k}": 100 * precision_at_k(truth, top_labels, k) for k in KS}
        return precision | {f"PSP@{k}": 100 * psp_at_k(truth, top_labels, k, self.inverse_propensity) for k in KS}


def load_benchmarks(names: tuple[str, ...]) -> list[Benchmark]:
    """Those of the data sets that are here."""
    return [
        Benchmark(name, load_data_set(name, "train"), load_data_set(name, "test"))
        for name in names
        if why_missing(name) is None
    ]


def why_missing(name: str) -> str | None:
    """None where both parts of a data set are here; else where they were looked for and how to get them."""
    try:
        part_files(name, "train")
        part_files(name, "test")
    except Unavailable as error:
        return str(error)
    return None


def left_out(names: tuple[str, ...]) -> str:
    """A sentence for a report on those of the data sets that are not here; nothing where all are."""
    missing = ", ".join(data_set(name).title for name in names if why_missing(name) is not None)
    return f" Left out, because not found in `$LONGTAIL_DATA`, the cache or the system: {missing}." if missing else ""
