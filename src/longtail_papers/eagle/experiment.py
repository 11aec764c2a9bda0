"""`reproduce eagle`: labels known only for groups of rows (Shen et al., ICML 2020), on EURLex-4K and simulated."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

from longtail_papers.common.benchmarks import Benchmark, left_out, load_benchmarks
from longtail_papers.common.records import Records, about
from longtail_papers.common.tables import Results, Section
from longtail_papers.eagle.cost import cost
from longtail_papers.eagle.features import features_matter
from longtail_papers.eagle.groups import N_TREES, labels_of_groups
from longtail_papers.eagle.runs import Run
from longtail_papers.eagle.simulation import simulations

_INTRODUCTION = (
    "EAGLE finds out which member of a group each of the group's labels belongs to, then any learner is trained on "
    "the rows (Shen et al., ICML 2020). Figures in columns named paper are published, those in columns named "
    "earlier run are from our own earlier runs of another implementation; all others were measured here."
)


def data_sets(*, quick: bool) -> tuple[str, ...]:
    """The data sets that are measured on, where they are here."""
    return ("bibtex",) if quick else ("eurlex-4k", "bibtex")


def run(out_directory: Path, *, quick: bool = False) -> list[Path]:
    """Write ``eagle.md``, ``eagle.json``, ``eagle-runs.json`` and pictures; see `longtail_papers.run`."""
    names = data_sets(quick=quick)
    runs = Records.of(out_directory, "eagle", Run, quick=quick)
    introduction = f"{_INTRODUCTION} {about([runs])}{left_out(names)}"
    results = Results(out_directory, "eagle", "Labels of groups", introduction, quick=quick)
    with _without_plans():
        for section in _sections(load_benchmarks(names), runs, quick):
            results.put(section)
    paths = results.finish()
    return [*paths, runs.path] if runs.path.is_file() else paths


@contextmanager
def _without_plans() -> Iterator[None]:
    """Keep to itself what each of some hundred trainings plans to take."""
    logger = logging.getLogger("longtail.choice")
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


def _sections(benchmarks: list[Benchmark], runs: Records[Run], quick: bool) -> Iterator[Section]:
    main = [benchmark for benchmark in benchmarks if quick or benchmark.name == "eurlex-4k"]
    return chain(
        simulations(quick=quick),
        *(labels_of_groups(benchmark, runs, quick=quick) for benchmark in main),
        *(cost(benchmark, quick=quick) for benchmark in main),
        features_matter(benchmarks, runs, n_trees=1 if quick else N_TREES),
    )
