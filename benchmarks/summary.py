"""Summarises the rounds: medians and ranges, ratios to the best peer, and the bars of comparison."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.learners import LEARNERS, Learner
from benchmarks.measure import Measurement

EQUAL_POINTS = 0.2
"""Two values of P@k that differ by fewer percentage points count as equal."""
RIVAL_POINTS = 0.5
"""A peer is a rival in throughput if its P@1 is at most this many percentage points below ours."""


@dataclass(frozen=True)
class Figure:
    """The median, minimum and maximum of the rounds."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Figure:
        return cls(statistics.median(values), min(values), max(values))


@dataclass(frozen=True)
class Row:
    """The rounds of one learner on one data set; there are no figures if no round finished."""

    learner: Learner
    status: str
    reason: str = ""
    version: str = ""
    rounds: int = 0
    figures: Mapping[str, Figure] = field(default_factory=dict)

    def value(self, name: str) -> float | None:
        return self.figures[name].median if name in self.figures else None


def summarise(
    measurements: Iterable[Measurement], data_set: str, learners: Sequence[Learner] = LEARNERS
) -> dict[str, Row]:
    """One row per learner measured on a data set, by key, in the order of the table of learners."""
    found: dict[str, list[Measurement]] = {}
    for measurement in measurements:
        if measurement.data_set == data_set:
            found.setdefault(measurement.learner, []).append(measurement)
    rows = {}
    for learner in learners:
        of_learner = found.get(learner.key, [])
        finished = [measurement for measurement in of_learner if measurement.status == "ok"]
        failed = next((measurement for measurement in of_learner if measurement.status != "ok"), None)
        if finished:
            figures = {
                name: Figure.of([measurement.figures[name] for measurement in finished])
                for name in finished[0].figures
                if all(name in measurement.figures for measurement in finished)
            }
            told = f"{failed.status} in round {failed.round}: {failed.reason}" if failed else ""
            rows[learner.key] = Row(learner, "ok", told, finished[0].version, len(finished), figures)
        elif failed:
            rows[learner.key] = Row(learner, failed.status, failed.reason)
    return rows


def best_peer(rows: Mapping[str, Row], name: str, *, high: bool) -> Row | None:
    """The peer with the largest or the smallest median of a figure."""
    peers = [row for row in rows.values() if row.learner.is_peer and row.value(name) is not None]
    if not peers:
        return None
    return (max if high else min)(peers, key=lambda row: row.figures[name].median)


def ratio(rows: Mapping[str, Row], ours: str, theirs: str, name: str) -> float | None:
    """Our median divided by theirs; None if either is missing."""
    mine, other = (rows[key].value(name) if key in rows else None for key in (ours, theirs))
    return mine / other if mine is not None and other else None


def fastest_rival(rows: Mapping[str, Row], ours: str) -> Row | None:
    """The peer with the most rows per second among those whose P@1 is at most `RIVAL_POINTS` below ours."""
    mine = rows[ours].value("P@1") if ours in rows else None
    if mine is None:
        return None
    rivals = {
        key: row
        for key, row in rows.items()
        if row.learner.is_peer and (precision := row.value("P@1")) is not None and precision >= mine - RIVAL_POINTS
    }
    return best_peer(rivals, "rows_per_second", high=True)


@dataclass(frozen=True)
class Bar:
    """A comparison with a target value; `measured` is None if a figure is missing."""

    text: str
    measured: float | None
    wanted: float
    at_least: bool

    @property
    def holds(self) -> bool | None:
        if self.measured is None:
            return None
        return self.measured >= self.wanted if self.at_least else self.measured <= self.wanted

    @property
    def verdict(self) -> str:
        return {True: "holds", False: "DOES NOT HOLD", None: "not measured"}[self.holds]


def bars(rows: Mapping[str, Row]) -> list[Bar]:
    """The bars of one data set."""
    found = []
    for k in (1, 3, 5):
        mine, other = (rows[key].value(f"P@{k}") if key in rows else None for key in ("tree", "pecos"))
        apart = mine - other if mine is not None and other is not None else None
        found.append(Bar(f"one tree: P@{k} minus that of PECOS, in points", apart, -EQUAL_POINTS, at_least=True))

    def at_most(text: str, measured: float | None, wanted: float) -> None:
        found.append(Bar(text, measured, wanted, at_least=False))

    at_most("one tree: training time / PECOS", ratio(rows, "tree", "pecos", "train_seconds"), 1 / 3)
    at_most("three trees: training time / PECOS with one", ratio(rows, "tree-3", "pecos", "train_seconds"), 1)
    for key, title in (("tree-beam", 'negatives="beam"'), ("one-vs-rest", "one-vs-rest")):
        at_most(f"{title}: training time / omikuji Bonsai", ratio(rows, key, "bonsai", "train_seconds"), 1)
    rival = fastest_rival(rows, "tree")
    faster = ratio(rows, "tree", rival.learner.key, "rows_per_second") if rival else None
    named = f" ({rival.learner.title})" if rival else ""
    found.append(Bar(f"one tree: rows per second / fastest peer of equal P@1{named}", faster, 5, at_least=True))
    quickest = best_peer(rows, "latency_p99", high=False)
    slower = ratio(rows, "tree", quickest.learner.key, "latency_p99") if quickest else None
    named = f" ({quickest.learner.title})" if quickest else ""
    at_most(f"one tree: p99 of a single row / best peer{named}", slower, 1 / 3)
    at_most("one tree: model size / PECOS", ratio(rows, "tree", "pecos", "model_bytes"), 1)
    at_most("one tree: peak memory of training / PECOS", ratio(rows, "tree", "pecos", "memory_peak"), 1)
    return found
