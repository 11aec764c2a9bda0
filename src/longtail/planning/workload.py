"""`Workload`: the size of a training, checked, and how its labels are spread over rows and over the nodes of a tree."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from longtail.arrays import Array
from longtail.errors import InvalidInput
from longtail.estimator import column_counts

LEARNERS = ("tree", "one-vs-rest")
NEGATIVES = ("siblings", "beam")

_MOST = 10**15
# Labels of a row meet below a node a little more often than by chance: 0.8 to 0.95 on real and synthetic data.
_SPREAD = 0.9
_EXACT_RANKS, _BINS = 1000, 4000


@dataclass(frozen=True)
class Workload:
    """The size of a training.

    Parameters
    ----------
    rows, labels, features : int
    per_row : float
        Mean number of features of a row.
    labels_per_row : float
    learner : {"tree", "one-vs-rest"}
    negatives : {"siblings", "beam"}
        As in `LabelTree`.
    leaf_size, branching, beam : int
        As in `LabelTree`.
    skew : float
        The label of rank r has rows in proportion to ``r ** -skew``.
    counts : array or None
        The number of rows of each label; None follows the power law.
    """

    rows: int
    labels: int
    features: int
    per_row: float
    labels_per_row: float
    learner: str = "tree"
    negatives: str = "siblings"
    leaf_size: int = 100
    branching: int = 64
    beam: int = 10
    skew: float = 0.8
    counts: Array | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("rows", "labels", "features", "per_row", "labels_per_row", "leaf_size", "beam"):
            if not 0 < getattr(self, name) <= _MOST:
                raise InvalidInput(f"{_told(name)}: {getattr(self, name)}; expected a number above 0 and up to 1e15")
        for part, whole in (("per_row", "features"), ("labels_per_row", "labels")):
            if getattr(self, part) > getattr(self, whole):
                raise InvalidInput(
                    f"{_told(part)}: {getattr(self, part):,}; there are only {getattr(self, whole):,} {whole}"
                )
        if self.features >= 2**31:
            raise InvalidInput(f"there are {self.features:,} features; expected fewer than 2^31")
        if self.branching < 2:
            raise InvalidInput(f"branching: {self.branching}; expected at least 2")
        if not 0 <= self.skew <= 3:
            raise InvalidInput(f"skew: {self.skew}; expected a number from 0 to 3")
        for name, known in (("learner", LEARNERS), ("negatives", NEGATIVES)):
            if getattr(self, name) not in known:
                raise InvalidInput(f"{name} is {getattr(self, name)!r}; expected one of {', '.join(known)}")

    @classmethod
    def of(cls, X: Any, Y: Any, **settings: Any) -> Workload:
        """The size of data: features X and labels Y as sparse matrices. Labels without rows are not counted."""
        if not (X.nnz and Y.nnz):
            raise InvalidInput("the data have no features or no labels; there is nothing to plan")
        counts = column_counts(Y)
        counts = counts[counts > 0]
        n_rows = X.shape[0]
        sizes = n_rows, len(counts), X.shape[1], X.nnz / n_rows, Y.nnz / n_rows
        return cls(*sizes, counts=counts, **settings)

    @property
    def uses_beam(self) -> bool:
        """Whether the classifiers are trained a second time."""
        return self.learner == "tree" and self.negatives == "beam" and len(self.widths) > 1

    @cached_property
    def frequencies(self) -> Frequencies:
        if self.counts is not None:
            return Frequencies(np.sort(self.counts)[::-1].astype(np.float64), np.ones(len(self.counts)))
        return power_law(self.rows, self.labels, self.rows * self.labels_per_row, self.skew)

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """The number of children of the nodes of each level; the children of the last level are labels."""
        labels = max(1, round(self.frequencies.total()))
        return (labels,) if self.learner == "one-vs-rest" else tree_widths(labels, self.leaf_size, self.branching)

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """The nodes of each level of the tree, from the root down."""
        found, nodes = [], 1
        for width in self.widths:
            found.append(self.frequencies.level(nodes, width, self.rows))
            nodes *= width
        return tuple(found)

    def distinct_features(self, entries: Any) -> Any:
        """About how many different features occur among entries of rows."""
        return self.features * -np.expm1(-np.asarray(entries, dtype=np.float64) / self.features)


class Level(NamedTuple):
    """The nodes of one level of a tree: the number of children of each, and by node rows and pairs of row and label."""

    children: int
    rows: Array
    pairs: Array


class Frequencies(NamedTuple):
    """Numbers of rows of labels, the most frequent first: ``labels[i]`` labels have ``counts[i]`` rows each.

    >>> power_law(rows=100, labels=3, pairs=110, skew=1.0).counts.round().tolist()
    [60.0, 30.0, 20.0]
    """

    counts: Array
    labels: Array

    def total(self, values: Array | float = 1.0) -> float:
        """The sum over labels of a value by bin."""
        return float((self.labels * values).sum())

    def level(self, nodes: int, children: int, n_rows: int) -> Level:
        """The rows of nodes with equal numbers of labels, if frequent labels are together and others independent."""
        if nodes == 1:
            return Level(children, np.array([float(n_rows)]), np.array([self.total(self.counts)]))
        ends = np.concatenate([[0], np.cumsum(self.labels)])
        bounds = np.linspace(0, ends[-1], nodes + 1)
        missed = np.log1p(-np.minimum(self.counts / n_rows, 1 - 1e-9))

        def by_node(values: Array) -> Array:
            sums = np.concatenate([[0], np.cumsum(self.labels * values)])
            return np.diff(np.interp(bounds, ends, sums))

        return Level(children, n_rows * -np.expm1(_SPREAD * by_node(missed)), by_node(self.counts))


def power_law(rows: int, labels: int, pairs: float, skew: float) -> Frequencies:
    """Labels whose numbers of rows follow a power law and add up to `pairs`; each has from 1 to all rows."""
    labels = min(labels, math.ceil(pairs))
    first = np.arange(1, min(labels, _EXACT_RANKS) + 1, dtype=np.float64)
    more = np.unique(np.geomspace(_EXACT_RANKS, labels, _BINS).round()) if labels > _EXACT_RANKS else first[:0]
    sizes = np.concatenate([np.ones(len(first)), np.diff(more)])
    middles = np.concatenate([first, (more[1:] + more[:-1] + 1) / 2])
    low, high = 0.0, rows * float(labels) ** skew
    for _ in range(100):
        factor = (low + high) / 2
        counts = np.clip(factor * middles**-skew, 1, rows)
        low, high = (factor, high) if (sizes * counts).sum() < pairs else (low, factor)
    return Frequencies(counts, sizes)


def tree_widths(labels: int, leaf_size: int, branching: int) -> tuple[int, ...]:
    """The number of children on each level of a balanced tree, whose parts have equal sizes up to one label.

    >>> tree_widths(2_800_000, 100, 64)
    (31, 31, 30, 98)
    """
    levels = 0
    while branching**levels < -(-labels // leaf_size):
        levels += 1
    widths = []
    for left in range(levels, 0, -1):
        needed = -(-labels // leaf_size)
        parts = max(1, math.floor(needed ** (1 / left)) - 1)
        while parts**left < needed:
            parts += 1
        widths.append(parts)
        labels = -(-labels // parts)
    return (*widths, labels)


def _told(name: str) -> str:
    return name.replace("_", " ")
