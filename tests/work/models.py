"""Small data, learners, and the bytes of their models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from longtail import LabelTree, OneVsRest, Ridge, RidgeCV
from longtail.estimator.checks import planted

LEARNERS = [
    LabelTree(leaf_size=3, branching=2),
    LabelTree(leaf_size=3, branching=2, negatives="beam", beam=2),
    LabelTree(leaf_size=4, branching=3, n_trees=2, weighting="loss", calibrate="platt", precision=32),
    OneVsRest(),
    Ridge(fit_intercept=True, block_size=5),
    Ridge(0.5, solver="dual", weighting="loss", prune=0.01, block_size=4),
    Ridge(0.5, solver="cg", prune=7, block_size=5),
    RidgeCV((0.1, 1.0), fit_intercept=True, block_size=5),
]


def data() -> tuple[Any, Any]:
    """Rows whose labels depend on their features."""
    return planted(np.random.default_rng(0))


def model_bytes(model: Any, directory: Path) -> dict[str, bytes]:
    """The content of every array file of a saved model."""
    model.save(directory)
    return {path.name: path.read_bytes() for path in directory.glob("*.npy")}
