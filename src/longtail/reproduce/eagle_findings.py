"""Runs on groups summed up: mean and spread over seeds of each way on each grouping."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from longtail.reproduce.eagle_runs import ORACLE, PRECISIONS, WAYS, Grouping, Run


@dataclass(frozen=True)
class Summary:
    """Mean and spread over seeds of what was measured in one way on one grouping."""

    seeds: int
    means: dict[str, float]
    spreads: dict[str, float | None]
    placed: float
    chosen: str

    @classmethod
    def of(cls, runs: Sequence[Run]) -> Summary:
        values = {name: np.array([run.precision[name] for run in runs]) for name in PRECISIONS}
        several = len(runs) > 1
        counts = Counter(run.chosen for run in runs)
        return cls(
            len(runs),
            {name: float(each.mean()) for name, each in values.items()},
            {name: float(each.std(ddof=1)) if several else None for name, each in values.items()},
            float(np.mean([run.placed for run in runs])),
            ", ".join(f"{name} ({count})" if len(counts) > 1 else name for name, count in counts.most_common()),
        )


@dataclass(frozen=True)
class Findings:
    """Summaries by grouping and way, and of the oracle."""

    oracle: Summary
    ways: dict[Grouping, dict[str, Summary]] = field(default_factory=dict)

    @classmethod
    def of(cls, runs: Sequence[Run], groupings: Sequence[Grouping]) -> Findings:
        found: dict[tuple[str, str], list[Run]] = {}
        for run in runs:
            found.setdefault((run.grouping, run.way), []).append(run)
        ways = {
            grouping: {
                way.name: Summary.of(found[grouping.name, way.name])
                for way in WAYS
                if (grouping.name, way.name) in found
            }
            for grouping in groupings
        }
        return cls(Summary.of(found["", ORACLE]), {grouping: each for grouping, each in ways.items() if each})

    def of_kind(self, kind: str) -> dict[Grouping, dict[str, Summary]]:
        return {grouping: each for grouping, each in self.ways.items() if grouping.kind == kind}
