"""Random truths and rankings, with rows without labels and rankings that end early."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse


@dataclass(frozen=True)
class Case:
    truth: Any
    top: NDArray[np.int64]
    weights: NDArray[np.float64]

    @property
    def csr(self) -> sparse.csr_array:
        return sparse.csr_array(self.truth)


def make_case(seed: int, n_rows: int, n_labels: int, n_places: int, density: float, cut: float = 0.3) -> Case:
    rng = np.random.default_rng(seed)
    truth = (rng.random((n_rows, n_labels)) < density).astype(np.int64)
    top = np.full((n_rows, n_places), -1, dtype=np.int64)
    for row in range(n_rows):
        room = min(n_places, n_labels)
        length = rng.integers(0, room + 1) if rng.random() < cut else room
        top[row, :length] = rng.permutation(n_labels)[:length]
    return Case(truth, top, 1 + 9 * rng.random(n_labels))


cases = st.builds(
    make_case,
    seed=st.integers(0, 10_000),
    n_rows=st.integers(1, 12),
    n_labels=st.integers(1, 9),
    n_places=st.integers(1, 7),
    density=st.sampled_from([0.0, 0.1, 0.4, 0.9]),
)
