"""A small prepared data set, and measurements made by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from benchmarks.arrays import write_matrix
from benchmarks.data import PARTS, Prepared
from benchmarks.measure import Measurement


@pytest.fixture
def prepared(tmp_path: Path) -> Prepared:
    """Twelve rows and six labels, where label 5 is the most frequent."""
    rng = np.random.default_rng(0)
    X = sparse.csr_array(rng.random((12, 4), dtype=np.float32))
    Y = np.zeros((12, 6), dtype=np.float32)
    Y[:, 5] = 1
    Y[:4, 2] = 1
    folder = tmp_path / "bibtex"
    for part, matrix in zip(PARTS, (X, sparse.csr_array(Y), X, sparse.csr_array(Y)), strict=True):
        write_matrix(folder / part, matrix)
    facts = {"train_rows": 12, "test_rows": 12, "features": 4, "labels": 6, "nonzeros": 48}
    return Prepared("bibtex", folder, facts | {"nonzeros_per_row": 4.0, "labels_per_row": 16 / 12})


@pytest.fixture
def measured() -> Callable[..., Measurement]:
    """A measurement of Bibtex with the figures given, and 1 for all others."""
    names = ("train_seconds", "train_cpu_seconds", "memory_peak", "memory_growth", "model_bytes", "load_seconds")
    names += ("rows_per_second", "latency_median", "latency_p99")
    names += tuple(f"{name}@{k}" for name in ("P", "nDCG", "PSP") for k in (1, 3, 5))

    def make(learner: str, round_number: int = 1, **figures: float) -> Measurement:
        values = dict.fromkeys(names, 1.0) | {name.replace("_at_", "@"): v for name, v in figures.items()}
        return Measurement("bibtex", learner, round_number, "ok", version="1.0", figures=values)

    return make
