"""`reproduce label-subset`: a few labels that represent all (Barezi et al., NAACL 2019) on the benchmarks."""

from __future__ import annotations

from collections.abc import Iterator

from longtail_papers.common import Context, Experiment, Section, statements
from longtail_papers.label_subset.curves import cost, quality_by_size
from longtail_papers.label_subset.tables import Prepared, Tables

_SIZED = ("bibtex", "delicious")
_COSTED = "eurlex-4k"


def measurements(context: Context) -> Iterator[Section]:
    """The tables of all data sets, then the curves and the cost of some."""
    tables = Tables(context)
    prepared = []
    for benchmark in context.benchmarks:
        prepared.append(Prepared.of(benchmark, quick=context.quick))
        yield from tables.measure(prepared[-1])
        yield statements(context.claims)
    sized = [data for data in prepared if data.benchmark.name in _SIZED]
    yield from quality_by_size(sized, tables.choices, quick=context.quick)
    for data in prepared:
        if data.benchmark.name == _COSTED or context.quick:
            yield from cost(data, quick=context.quick)


EXPERIMENT = Experiment(
    name="label-subset",
    module=__name__,
    title="A few labels that represent all",
    introduction=(
        "The method selects a subset of the labels that explains the others and can be predicted, learns only these, "
        "and decodes the others from them; labels that do not fit are learned separately (Barezi et al., NAACL 2019, "
        "of which only the supplement is available). Every figure was measured in this run, except in the columns "
        "named *paper*. Settings were chosen on a part of the training rows."
    ),
    data_sets=("bibtex", "delicious", "mediamill", "eurlex-4k"),
    quick_data_sets=("bibtex",),
    sections=(measurements,),
)
