"""`reproduce ridge`: closed-form ridge (Onishi & Hayashi, ECIR 2025) on the benchmarks, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from longtail_papers.common.benchmarks import Benchmark, left_out, load_benchmarks
from longtail_papers.common.tables import Results, Section
from longtail_papers.ridge.curves import alpha_sweep, sparsification, tolerance
from longtail_papers.ridge.scaling import scaling
from longtail_papers.ridge.table import chosen_alpha, earlier_and_measured

_INTRODUCTION = (
    "Ridge regression on 0/1 labels, solved in closed form for all labels at once (Onishi & Hayashi, ECIR 2025). "
    "Every figure was measured in this run, except those in columns named earlier run: the "
    "paper's own tables are not available, so these are from our own earlier runs of another implementation."
)


def data_sets(*, quick: bool) -> tuple[str, ...]:
    """The data sets that are measured on, where they are here."""
    return ("bibtex",) if quick else ("bibtex", "delicious", "eurlex-4k")


def run(out_directory: Path, *, quick: bool = False) -> list[Path]:
    """Write ``ridge.md``, ``ridge.json`` and pictures; see `longtail_papers.run`."""
    names = data_sets(quick=quick)
    results = Results(out_directory, "ridge", "Closed-form ridge", _INTRODUCTION + left_out(names), quick=quick)
    for section in _sections(load_benchmarks(names), quick):
        results.put(section)
    return results.finish()


def _sections(benchmarks: list[Benchmark], quick: bool) -> Iterator[Section]:
    return chain(
        earlier_and_measured(benchmarks),
        chosen_alpha(benchmarks, quick=quick),
        alpha_sweep(benchmarks, quick=quick),
        sparsification(benchmarks, quick=quick),
        scaling(quick=quick),
        tolerance(benchmarks, quick=quick),
    )
