"""Appendix G: the time of a training step of both output layers, in turns, at the sizes of the paper's tasks."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from statistics import median

import numpy as np
import torch
from torch import Tensor

from longtail.neural import LabelRows
from longtail.neural.heads import DFT, Bottleneck, Head
from longtail_papers.common import Column, Context, Section, Table, tracked
from longtail_papers.sigmoid_bottleneck.sizes import SETUPS

_BATCH = 32
_WIDTHS = (100, 200)
_STEPS = 9


@dataclass(frozen=True)
class Steps:
    """Median milliseconds of a step: forward, backward and AdamW, for the output layer alone."""

    bottleneck: float
    dft: float
    faster: int

    @property
    def ratio(self) -> float:
        return self.dft / self.bottleneck


def steps(context: Context) -> Iterator[Section]:
    """Both layers with the same number of trained columns, side by side."""
    rows = []
    for name, width in tracked("steps", [(name, width) for name in SETUPS for width in _WIDTHS]):
        found = measured(context, name, width)
        n, k, e = SETUPS[name]
        rows.append((name, n, k, e, width, found.bottleneck, found.dft, found.ratio, found.faster))
    columns = (
        *(Column("sizes of"), Column("n", ",d"), Column("k", "d"), Column("e", ",d"), Column("width d", "d")),
        *(Column("bottleneck, ms", ".1f"), Column("DFT, ms", ".1f"), Column("DFT / bottleneck", ".2f")),
        Column(f"faster in so many of {_STEPS} turns", "d"),
    )
    yield Section(
        "Time of a training step",
        f"One step of the output layer with its projection, for {_BATCH} rows of random features and k random labels: "
        "forward, backward, AdamW. The DFT has 2k + 1 fixed columns more than the bottleneck. The layers take turns, "
        f"so both meet the same load; medians of {_STEPS} turns on one thread. The encoder, which takes most of the "
        "time of the paper's networks, costs the same for both. A fast transform is slower if n has a large prime "
        "factor: 8,921 is 11 times 811, and 8,933 is a prime. The paper's text gives no times of steps. It says that "
        "the DFT converges faster, because all probabilities start at k / n; the epochs below measure that.",
        [Table("Milliseconds of a step", columns, rows)],
    )


def measured(context: Context, name: str, width: int) -> Steps:
    """The record of one size, measured if it is not known."""
    n, k, e = SETUPS[name] if not context.quick else (500, 5, 32)
    settings = {"n": n, "k": k, "e": e, "width": width, "batch": _BATCH, "steps": _STEPS}
    found: Steps = context.records("steps").measured(settings, partial(_measure, n, k, e, width))
    return found


def _measure(n: int, k: int, e: int, width: int) -> Steps:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            heads = Bottleneck(e, n, width), DFT(e, n, k, slack=width)
            features = torch.randn(_BATCH, e)
        labels = np.random.default_rng(0).permuted(np.tile(np.arange(n), (_BATCH, 1)), axis=1)[:, :k]
        targets = LabelRows(
            torch.from_numpy(np.sort(labels, axis=1).ravel()), torch.arange(0, _BATCH * k + 1, k), n_labels=n
        )
        clocks = [_Clock(head, features, targets) for head in heads]
        for clock in clocks:
            clock.step()  # the first step also allocates
        times = [[clock.step() for clock in clocks] for _ in range(_STEPS)]
    finally:
        torch.set_num_threads(threads)
    narrow, fixed = (1000 * median(turn[place] for turn in times) for place in (0, 1))
    return Steps(narrow, fixed, sum(turn[1] < turn[0] for turn in times))


class _Clock:
    """Training steps of a head, each timed."""

    def __init__(self, head: Head, features: Tensor, targets: LabelRows) -> None:
        self._head, self._features, self._targets = head, features, targets
        self._optimiser = torch.optim.AdamW(head.parameters(), lr=1e-3)

    def step(self) -> float:
        begin = time.perf_counter()
        self._optimiser.zero_grad()
        self._head(self._features, self._targets).loss.backward()
        self._optimiser.step()
        return time.perf_counter() - begin
