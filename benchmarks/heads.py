"""What the last layer costs: each head against `OneHot` in the same run, forward and backward, without an optimiser.

``python -m benchmarks.heads`` makes features of width 512 and batches of 128 rows for 10^4, 10^5 and 10^6 labels.
Labels are drawn evenly, the hardest case for heads that gain from labels in common. Every (head, size) is a process of
its own, so that its memory is its own; the heads take turns, round after round, and a ratio is the median over rounds
of one-hot's time by the head's time of the same round and task. At 10^6 labels the product has to be at least 17, the
sampling 8 and the cascade 4 times as fast.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.ridge import verdict
from longtail.parallel import count_cores
from longtail.reproduce.isolated import Peak, call_isolated

SIZES = (10_000, 100_000, 1_000_000)
WIDTH, BATCH = 512, 128
LABELS_PER_ROW = 5  # of multi-label rows
BAR_AT = 1_000_000
_GIB = 2**30


@dataclass(frozen=True)
class Contestant:
    """A head of the comparison.

    Parameters
    ----------
    head : str
        Module and class below `longtail.neural.heads`; left out of the comparison where that is not there.
    task : str
    options : callable
        From the number of labels to the further arguments of the head.
    at_least : float or None
        How many times as fast as one-hot it has to be with a million labels.
    """

    head: str
    task: str
    options: Callable[[int], dict[str, Any]] = lambda n_labels: {}
    at_least: float | None = None


def square(n_labels: int) -> list[int]:
    """Two lengths of nearly the same size whose product holds all labels: 1,000 and 1,000 for a million."""
    first = 1
    while first * first < n_labels:
        first += 1
    return [first, -(-n_labels // first)]


def short_blocks(n_labels: int) -> list[int]:
    """Many blocks of as many labels as the cube root: 10,000 blocks of 100 for a million.

    A batch of 128 rows then touches at most 12,800 rows of the table. The paper's own plans have blocks of 12 to 43.
    """
    length = max(1, round(n_labels ** (1 / 3)))
    return [-(-n_labels // length), length]


def _sampling(n_labels: int) -> dict[str, Any]:
    return {"n_heads": short_blocks(n_labels)[0], "sparse_gradients": True}


def _cascade(n_labels: int) -> dict[str, Any]:
    return {"radices": short_blocks(n_labels), "width": 300, "survivors": 10, "sparse_gradients": True}


CONTESTANTS = {
    "one-hot, single": Contestant("one_hot:OneHot", "single-label"),
    "product, single": Contestant("product:Product", "single-label", lambda n: {"radices": square(n)}, 17),
    "sampling, single": Contestant("sampling:Sampling", "single-label", _sampling, 8),
    "cascade, single": Contestant("cascade:Cascade", "single-label", _cascade),
    "one-hot, multi": Contestant("one_hot:OneHot", "multi-label"),
    "product, multi": Contestant("product:Product", "multi-label", lambda n: {"radices": square(n)}),
    "sampling, multi": Contestant("sampling:Sampling", "multi-label", _sampling),
    "cascade, multi": Contestant("cascade:Cascade", "multi-label", _cascade, 4),
    "bottleneck 200, multi": Contestant("bottleneck:Bottleneck", "multi-label", lambda n: {"width": 200}),
    "DFT k = 50, multi": Contestant("dft:DFT", "multi-label", lambda n: {"k": 50}),
}


def find_head(contestant: Contestant) -> Any:
    """The class of the head, or None where it is not part of the package."""
    module, _, name = contestant.head.partition(":")
    try:
        return getattr(importlib.import_module(f"longtail.neural.heads.{module}"), name)
    except ModuleNotFoundError:
        return None


def measure(name: str, n_labels: int, passes: int, threads: int, seed: int = 0) -> dict[str, float]:
    """Median seconds of a pass forward and backward, bytes of the parameters, and what the first pass takes besides."""
    import torch

    from longtail.neural.heads.sampling import draw_distinct
    from longtail.neural.targets import LabelRows

    torch.set_num_threads(threads)
    torch.manual_seed(seed)
    contestant = CONTESTANTS[name]
    head = find_head(contestant)(WIDTH, n_labels, task=contestant.task, **contestant.options(n_labels))
    features = torch.randn(BATCH, WIDTH, requires_grad=True)
    per_row = 1 if contestant.task == "single-label" else LABELS_PER_ROW
    seconds = []
    growth = 0
    for turn in range(passes + 1):
        drawn = draw_distinct(BATCH, per_row, n_labels).sort(dim=1).values
        targets = LabelRows(drawn.flatten(), torch.arange(BATCH + 1) * per_row, n_labels)
        head.zero_grad()
        features.grad = None
        if turn == 0:
            with Peak() as peak:
                head.loss(features, targets).backward()
            growth = peak.growth
            continue
        start = time.perf_counter()
        head.loss(features, targets).backward()
        seconds.append(time.perf_counter() - start)
    return {
        "seconds": statistics.median(seconds),
        "parameters": float(sum(p.numel() * p.element_size() for p in head.parameters())),
        "growth": float(growth),
        "multiply_adds": float(head.multiply_adds(BATCH)),
    }


def compare(n_labels: int, names: Sequence[str], rounds: int, passes: int, threads: int) -> dict[str, dict[str, Any]]:
    """Medians over rounds of what `measure` finds, with the ratio to the one-hot head of the same task."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            found[name].append(
                call_isolated("benchmarks.heads:measure", name=name, n_labels=n_labels, passes=passes, threads=threads)
            )
    result = {}
    for name in names:
        baseline = found["one-hot, " + name.rpartition(", ")[2]]
        result[name] = {key: statistics.median(each[key] for each in found[name]) for key in found[name][0]}
        ratios = [base["seconds"] / each["seconds"] for base, each in zip(baseline, found[name], strict=True)]
        result[name] |= {"ratio": statistics.median(ratios), "least": min(ratios), "most": max(ratios)}
    return result


def show(n_labels: int, measured: dict[str, dict[str, Any]]) -> bool:
    """Print a table; whether every bar at this size is reached."""
    print(f"{n_labels:,} labels")
    print(
        f"  {'head':22} {'seconds':>9} {'faster':>8} {'(rounds)':>16} {'weights':>9} {'pass':>9} {'10^9 mul-add':>13}"
    )
    holds = True
    for name, row in measured.items():
        spread = f"({row['least']:.1f} to {row['most']:.1f})"
        line = (
            f"  {name:22} {row['seconds']:9.4f} {row['ratio']:8.1f} {spread:>16} {row['parameters'] / _GIB:5.2f} GiB "
            f"{row['growth'] / _GIB:5.2f} GiB {row['multiply_adds'] / 1e9:13.2f}"
        )
        bar = CONTESTANTS[name].at_least
        if bar is not None and n_labels >= BAR_AT:
            line += f"   at least {bar:g}: {verdict(row['ratio'] >= bar)}"
            holds &= row["ratio"] >= bar
        print(line, flush=True)
    return holds


def main(arguments: Sequence[str] | None = None) -> bool:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of labels")
    parser.add_argument("--rounds", type=int, default=3, help="processes of each head and size")
    parser.add_argument("--passes", type=int, default=3, help="timed passes in each process, after one that is not")
    parser.add_argument("--threads", type=int, default=count_cores(), help="threads of torch")
    parser.add_argument("--only", nargs="+", metavar="HEAD", help="heads by the first word of their names")
    options = parser.parse_args(arguments)
    names = [name for name, contestant in CONTESTANTS.items() if find_head(contestant) is not None]
    if options.only:
        wanted = {"one-hot", *options.only}
        names = [name for name in names if name.replace(",", " ").split()[0] in wanted]
    absent = sorted({name for name, contestant in CONTESTANTS.items() if find_head(contestant) is None})
    if absent:
        print(f"not part of this package, left out: {'; '.join(absent)}")
    print(f"width {WIDTH}, {BATCH} rows, {options.threads} threads; {options.rounds} rounds of {options.passes} passes")
    holds = True
    for n_labels in options.sizes:
        holds &= show(n_labels, compare(n_labels, names, options.rounds, options.passes, options.threads))
    return holds


if __name__ == "__main__":
    main()
