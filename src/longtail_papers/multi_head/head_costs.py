"""The cost of the last layer: each head against `OneHot` in the same run, forward and backward, without an optimiser.

Features have width 512, batches 128 rows. Labels are drawn uniformly, the hardest case for heads that gain from labels
that rows share. Every head and size runs in its own process, so its memory is its own. The heads take turns in each
round; a ratio is the median over rounds of one-hot's time divided by the head's time in the same round and task.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from longtail.neural import LabelRows
from longtail.neural.heads import DFT, Bottleneck, Cascade, Head, OneHot, Product, Sampling, draw_distinct
from longtail_papers.common import Figures, Peak, call_isolated, tracked

SIZES = (10_000, 100_000, 1_000_000)
WIDTH, BATCH = 512, 128
BAR_AT = 1_000_000
_LABELS_PER_ROW = 5  # of multi-label rows
_WEIGHT = 0.01
_LONG_ENOUGH = 3.0  # seconds after which no further pass is timed


@dataclass(frozen=True)
class Contestant:
    """A head of the comparison.

    Parameters
    ----------
    head : type of Head
    task : str
    options : callable
        Maps the number of labels to further arguments of the head.
    at_least : float or None
        The required speed-up over one-hot with a million labels: the paper's factor, measured on a GPU.
    """

    head: type[Head]
    task: str
    options: Callable[[int], dict[str, Any]] = lambda n_labels: {}
    at_least: float | None = None


def square(n_labels: int) -> list[int]:
    """Two nearly equal lengths whose product covers all labels.

    Examples
    --------
    >>> square(1_000_000)
    [1000, 1000]
    """
    first = 1
    while first * first < n_labels:
        first += 1
    return [first, -(-n_labels // first)]


def short_blocks(n_labels: int) -> list[int]:
    """Many blocks, each as long as the cube root of the number of labels.

    With a million labels, a batch of 128 rows then touches at most 12,800 rows of the table. The paper's own plans
    have blocks of 12 to 43.

    Examples
    --------
    >>> short_blocks(1_000_000)
    [10000, 100]
    """
    length = max(1, round(n_labels ** (1 / 3)))
    return [-(-n_labels // length), length]


def _product(n_labels: int) -> dict[str, Any]:
    return {"radices": square(n_labels)}


def _sampling(n_labels: int) -> dict[str, Any]:
    return {"n_heads": short_blocks(n_labels)[0]}


def _cascade(n_labels: int) -> dict[str, Any]:
    return {"radices": short_blocks(n_labels), "width": 300, "survivors": 10}


def _sparse(options: Callable[[int], dict[str, Any]]) -> Callable[[int], dict[str, Any]]:
    return lambda n_labels: options(n_labels) | {"sparse_gradients": True}


CONTESTANTS = {
    "one-hot, single": Contestant(OneHot, "single-label"),
    "product, single": Contestant(Product, "single-label", _product, 17),
    "sampling, single": Contestant(Sampling, "single-label", _sparse(_sampling), 8),
    "sampling, dense gradients, single": Contestant(Sampling, "single-label", _sampling),
    "cascade, single": Contestant(Cascade, "single-label", _sparse(_cascade)),
    "cascade, dense gradients, single": Contestant(Cascade, "single-label", _cascade),
    "one-hot, multi": Contestant(OneHot, "multi-label"),
    "product, multi": Contestant(Product, "multi-label", _product),
    "sampling, multi": Contestant(Sampling, "multi-label", _sparse(_sampling)),
    "cascade, multi": Contestant(Cascade, "multi-label", _sparse(_cascade), 4),
    "cascade, dense gradients, multi": Contestant(Cascade, "multi-label", _cascade),
    "bottleneck 200, multi": Contestant(Bottleneck, "multi-label", lambda n_labels: {"width": 200}),
    "DFT k = 50, multi": Contestant(DFT, "multi-label", lambda n_labels: {"k": 50, "slack": 0}),
}


class _NothingDrawn(TorchFunctionMode):
    """Fill all initial weights with one number: drawing them would take longer than the passes that are timed."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (nn.init.normal_, nn.init.uniform_, nn.init.kaiming_uniform_):
            with torch.no_grad():
                return (args or tuple((kwargs or {}).values()))[0].fill_(_WEIGHT)
        return func(*args, **(kwargs or {}))


def measure(name: str, n_labels: int, passes: int, threads: int, seed: int = 0) -> Figures:
    """Median seconds of a forward and backward pass, bytes of the parameters, and memory growth of the first pass.

    At most `passes` are timed after the first, and fewer if they take long.
    """
    torch.set_num_threads(threads)
    torch.manual_seed(seed)
    contestant = CONTESTANTS[name]
    with _NothingDrawn():
        head = contestant.head(WIDTH, n_labels, task=contestant.task, **contestant.options(n_labels))  # type: ignore[arg-type]
    features = torch.randn(BATCH, WIDTH, requires_grad=True)
    per_row = 1 if contestant.task == "single-label" else _LABELS_PER_ROW
    seconds = []
    growth = 0
    for turn in range(passes + 1):
        drawn = draw_distinct(BATCH, per_row, n_labels).sort(dim=1).values
        targets = LabelRows(drawn.flatten(), torch.arange(BATCH + 1) * per_row, n_labels)
        head.zero_grad()
        features.grad = None
        if turn == 0:
            with Peak() as peak:
                head.loss(features, targets).backward()  # type: ignore[no-untyped-call]
            growth = peak.growth
            continue
        start = time.perf_counter()
        head.loss(features, targets).backward()  # type: ignore[no-untyped-call]
        seconds.append(time.perf_counter() - start)
        if sum(seconds) > _LONG_ENOUGH:
            break
    return {
        "seconds": statistics.median(seconds),
        "parameters": float(sum(p.numel() * p.element_size() for p in head.parameters())),
        "growth": float(growth),
        "multiply_adds": float(head.multiply_adds(BATCH)),
    }


def compare(n_labels: int, names: Sequence[str], rounds: int, passes: int, threads: int) -> dict[str, Figures]:
    """Medians over rounds of the figures of `measure`, with the ratio to the one-hot head of the same task."""
    found: dict[str, list[Figures]] = {name: [] for name in names}
    arguments: dict[str, Any] = {"n_labels": n_labels, "passes": passes, "threads": threads}
    for name in tracked(f"heads of {n_labels:,} labels", rounds * list(names)):
        found[name].append(call_isolated(f"{__name__}:measure", name=name, **arguments))
    result = {}
    for name in names:
        baseline = found["one-hot, " + name.rpartition(", ")[2]]
        result[name] = {key: statistics.median(each[key] for each in found[name]) for key in found[name][0]}
        ratios = [base["seconds"] / each["seconds"] for base, each in zip(baseline, found[name], strict=True)]
        result[name] |= {"ratio": statistics.median(ratios), "least": min(ratios), "most": max(ratios)}
    return result
