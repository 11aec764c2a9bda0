"""What the papers' experiments share: the runner, benchmarks, records, claims, tables and isolated calls."""

from longtail_papers.common.benchmarks import (
    KS,
    METRICS,
    PRECISIONS,
    SCALINGS,
    Benchmark,
    load_benchmarks,
    precisions,
    why_missing,
)
from longtail_papers.common.claims import Claim, Spread, means, spread_columns, spreads, statements
from longtail_papers.common.experiment import Context, Experiment, tracked
from longtail_papers.common.isolated import Peak, call_isolated
from longtail_papers.common.records import Figures, Records
from longtail_papers.common.tables import Cell, Column, Results, Section, Table

__all__ = [
    "KS",
    "METRICS",
    "PRECISIONS",
    "SCALINGS",
    "Benchmark",
    "Cell",
    "Claim",
    "Column",
    "Context",
    "Experiment",
    "Figures",
    "Peak",
    "Records",
    "Results",
    "Section",
    "Spread",
    "Table",
    "call_isolated",
    "load_benchmarks",
    "means",
    "precisions",
    "spread_columns",
    "spreads",
    "statements",
    "tracked",
    "why_missing",
]
