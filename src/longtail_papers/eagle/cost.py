"""The time that EAGLE adds to training, by group size: label vectors and assignment."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail.aggregated import GroupRobustLabelVectors, aggregate_labels, assign_labels, random_groups
from longtail.pictures import Line, Panel, Picture
from longtail.trees import LabelTree
from longtail_papers.common import Benchmark, Cell, Column, Section, Table, tracked

_SIZES = (2, 4, 6, 8, 10, 12, 16, 20)
_QUICK_SIZES = (2, 6, 10)
_COMPARED = 10
_TIMES = 3
_SEED = 0


@dataclass(frozen=True)
class _Point:
    size: int
    group_labels: int
    search: float
    placing: float

    @property
    def total(self) -> float:
        return self.search + self.placing


def cost(benchmark: Benchmark, *, quick: bool) -> Iterator[Section]:
    """Time of EAGLE against group size, and at size 10 against training one tree on the labels it assigned."""
    X, _ = benchmark.features("rows normalised")
    sizes = _QUICK_SIZES if quick else _SIZES
    points: list[_Point] = []
    tree = 0.0
    for size in tracked(f"cost on {benchmark.title}", sizes):
        groups = random_groups(X.shape[0], size, random_state=_SEED)
        labels = aggregate_labels(benchmark.train.labels, groups)
        search, vectors = _fastest(GroupRobustLabelVectors().fit, X, groups, labels)
        placing, found = _fastest(assign_labels, X, groups, labels, vectors.label_vectors_)
        points.append(_Point(size, int(labels.nnz), search, placing))
        if size == _COMPARED:
            kept = np.flatnonzero(np.diff(found.row_labels.indptr))
            tree, _ = _fastest(LabelTree(random_state=_SEED).fit, X[kept], found.row_labels[kept])
    yield _section(benchmark, points, tree)


def _section(benchmark: Benchmark, points: list[_Point], tree: float) -> Section:
    totals = np.array([point.total for point in points])
    x = [point.size for point in points]
    slope, start = np.polyfit(x, totals, 1)
    line = start + slope * np.array(x)
    explained = 1 - np.var(totals - line) / np.var(totals)
    compared = next(point.total for point in points if point.size == _COMPARED)
    columns = (
        *(Column("group size", "d"), Column("labels of groups", ",d"), Column("vectors, s", ".2f")),
        *(Column("assignment, s", ".2f"), Column("EAGLE, s", ".2f"), Column("EAGLE / one tree", ".2f")),
    )
    rows: list[tuple[Cell, ...]] = [
        (point.size, point.group_labels, point.search, point.placing, point.total, point.total / tree)
        for point in points
    ]
    lines = [
        Line("EAGLE", x, totals.tolist(), style=0),
        Line("straight line", x, line.tolist(), style=0, dash="dashed", marked=False),
        Line("assignment alone", x, [point.placing for point in points], style=2),
        Line("training one tree", x, [tree] * len(x), style=1, marked=False),
    ]
    return Section(
        "Cost",
        f"Random groups on {benchmark.title}, rows of length 1: the processor time over all threads of "
        f"`GroupRobustLabelVectors` (20 sweeps) and of `assign_labels`, the minimum of {_TIMES} runs each. "
        f"At size {_COMPARED} EAGLE takes {compared:.2f} s, and training one tree (`LabelTree()`) on the labels that "
        f"it assigned takes {tree:.2f} s: a ratio of {compared / tree:.2f}. By the paper's analysis the time is "
        f"proportional to the group size; a straight line of {start:.2f} s plus {slope:.3f} s per member explains "
        f"{100 * explained:.1f} % of the variance.",
        [Table(f"{benchmark.title}, {benchmark.train.n_rows:,} rows", columns, rows)],
        [
            Picture(
                "eagle-cost.png",
                "Time of EAGLE against group size; dashed: a straight line",
                [[Panel(benchmark.title, "group size", "processor seconds", lines, x_ticks=x)]],
            )
        ],
    )


def _fastest(call: Callable[..., Any], *arguments: Any) -> tuple[float, Any]:
    """The minimum processor time of a few calls, and the last result.

    Other work on the machine distorts processor time less than wall-clock time, and can only add to it.
    """
    seconds, result = [], None
    for _ in range(_TIMES):
        start = time.process_time()
        result = call(*arguments)
        seconds.append(time.process_time() - start)
    return min(seconds), result
