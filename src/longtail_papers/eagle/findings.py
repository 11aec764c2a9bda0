"""Runs on groups summed up: mean and spread over seeds of each way on each grouping."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from longtail_papers.common.claims import Spread
from longtail_papers.eagle.runs import ORACLE, PRECISIONS, WAYS, Grouping, Run


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
        spreads = {name: Spread.of(run.precision[name] for run in runs) for name in PRECISIONS}
        counts = Counter(run.chosen for run in runs)
        return cls(
            len(runs),
            {name: each.mean for name, each in spreads.items()},
            {name: each.deviation for name, each in spreads.items()},
            Spread.of(run.placed for run in runs).mean,
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
