"""One head of each kind, for tests of what all heads have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from longtail.neural import BagLabels
from longtail.neural.heads import (
    DFT,
    Bottleneck,
    Cascade,
    Head,
    Kronecker,
    OneHot,
    PowersetCascade,
    PowersetProduct,
    PowersetSampling,
    Product,
    Sampling,
)

WIDTH, N_LABELS = 8, 23
ORDER = torch.randperm(N_LABELS, generator=torch.Generator().manual_seed(5)).numpy()
WEIGHTS = torch.linspace(0.5, 2, N_LABELS)
SINGLE: dict[str, Any] = {"task": "single-label"}

EVERY_HEAD: dict[str, Callable[[], Head]] = {
    "one-hot": lambda: OneHot(WIDTH, N_LABELS, label_weights=WEIGHTS),
    "one-hot, single": lambda: OneHot(WIDTH, N_LABELS, **SINGLE, bias=False),
    "bottleneck": lambda: Bottleneck(WIDTH, N_LABELS, 4),
    "dft, fft": lambda: DFT(WIDTH, N_LABELS, 3, form="fft", slack=2, order=torch.from_numpy(ORDER)),
    "dft, matrix": lambda: DFT(WIDTH, N_LABELS, 3, form="matrix", **SINGLE, order=torch.from_numpy(ORDER)),
    "product": lambda: Product(WIDTH, N_LABELS, (6, 4), label_weights=WEIGHTS, order=ORDER),
    "product, single": lambda: Product(WIDTH, N_LABELS, (6, 4), label_weights=WEIGHTS, **SINGLE),
    "product of groups": lambda: Product(WIDTH, N_LABELS, (4, 3, 2), groups=2),
    "product of softmaxes": lambda: Product(WIDTH, N_LABELS, (6, 4), loss="softmax", **SINGLE),
    "kronecker": lambda: Kronecker(WIDTH, N_LABELS, (4, 3, 2), groups=2, label_weights=WEIGHTS),
    "kronecker, single": lambda: Kronecker(WIDTH, N_LABELS, (6, 4), groups=3, **SINGLE, order=ORDER),
    "cascade": lambda: Cascade(WIDTH, N_LABELS, (6, 4), width=5, survivors=2, order=ORDER),
    "cascade of three": lambda: Cascade(
        WIDTH, N_LABELS, (4, 3, 2), width=None, survivors=1, sparse_gradients=True, label_weights=WEIGHTS
    ),
    "cascade of stages": lambda: Cascade(WIDTH, N_LABELS, (4, 3, 2), width=5, survivors=2, loss="stages"),
    "cascade, single": lambda: Cascade(WIDTH, N_LABELS, (6, 4), width=5, survivors=2, **SINGLE),
    "sampling": lambda: Sampling(WIDTH, N_LABELS, 6, sampled=2, label_weights=WEIGHTS),
    "sampling, sparse": lambda: Sampling(WIDTH, N_LABELS, 6, sampled=2, sparse_gradients=True),
    "sampling, each its own": lambda: Sampling(WIDTH, N_LABELS, 6, sampled=2, fast=False, **SINGLE),
    "sampling, margin": lambda: Sampling(WIDTH, N_LABELS, 6, sampled=2, margin=0.3, scale=8.0, **SINGLE),
    "powerset product": lambda: PowersetProduct(WIDTH, N_LABELS, 3, label_weights=WEIGHTS),
    "powerset sampling": lambda: PowersetSampling(WIDTH, N_LABELS, 3),
    "powerset cascade": lambda: PowersetCascade(WIDTH, N_LABELS, 3, width=6),
    "bags": lambda: BagLabels(N_LABELS, label_weights=WEIGHTS),
    "bags, softmax": lambda: BagLabels(N_LABELS, "softmax"),
}


def make(name: str) -> Head:
    torch.manual_seed(0)
    return EVERY_HEAD[name]()


def lists(head: Head, n_rows: int = 6) -> list[list[int]]:
    """Lists of labels that the head can learn from; some multi-label rows are empty."""
    if head.task == "single-label":
        return [[5 * row % N_LABELS] for row in range(n_rows)]
    return [sorted({row, 5 * row % N_LABELS, 22}) if row % 4 else [] for row in range(n_rows)]
