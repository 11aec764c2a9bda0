"""`reproduce eagle`: labels known only for groups of rows (Shen et al., ICML 2020), on EURLex-4K and simulated."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain

from longtail_papers.common import Context, Experiment, Section
from longtail_papers.eagle.cost import cost
from longtail_papers.eagle.features import features_matter
from longtail_papers.eagle.groups import N_TREES, labels_of_groups
from longtail_papers.eagle.runs import Run
from longtail_papers.eagle.simulation import simulations


def measurements(context: Context) -> Iterator[Section]:
    """The sections that train on data sets."""
    runs, quick = context.records(), context.quick
    main = [benchmark for benchmark in context.benchmarks if quick or benchmark.name == "eurlex-4k"]
    with _without_plans():
        yield from chain(
            *(labels_of_groups(benchmark, runs, quick=quick) for benchmark in main),
            *(cost(benchmark, quick=quick) for benchmark in main),
            features_matter(context.benchmarks, runs, n_trees=1 if quick else N_TREES),
        )


@contextmanager
def _without_plans() -> Iterator[None]:
    """Do not log the memory plan of each of some hundred trainings."""
    loggers = [logging.getLogger(name) for name in ("longtail.trees", "longtail.ridge")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


EXPERIMENT = Experiment(
    name="eagle",
    module=__name__,
    title="Labels of groups",
    introduction=(
        "EAGLE finds out which member of a group each of the group's labels belongs to; then any learner is trained "
        "on the rows (Shen et al., ICML 2020). Columns named *paper* are published figures, columns named *earlier "
        "run* come from our own earlier runs of another implementation; everything else was measured here."
    ),
    data_sets=("eurlex-4k", "bibtex"),
    quick_data_sets=("bibtex",),
    sections=(simulations, measurements),
    parts={"": None},
    record=Run,
)
