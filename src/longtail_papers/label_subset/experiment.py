"""`reproduce label-subset`: a few labels that stand for all (Barezi et al., NAACL 2019) on the benchmarks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from longtail_papers.common.benchmarks import Benchmark, left_out, load_benchmarks
from longtail_papers.common.claims import statements
from longtail_papers.common.tables import Results, Section
from longtail_papers.label_subset.curves import cost, quality_by_size
from longtail_papers.label_subset.tables import Prepared, Tables

_INTRODUCTION = (
    "A subset of the labels is chosen that explains the others and can be predicted, only these are learned, and the "
    "others are decoded from them; labels that do not fit are learned apart (Barezi et al., NAACL 2019, of which only "
    "the supplement is to be had). Every figure was measured in this run, except those in columns named paper. "
    "Settings were chosen on a part of the training rows."
)
_SIZED = ("bibtex", "delicious")
_COSTED = "eurlex-4k"


def data_sets(*, quick: bool) -> tuple[str, ...]:
    """The data sets that are measured on, where they are here."""
    return ("bibtex",) if quick else ("bibtex", "delicious", "mediamill", "eurlex-4k")


def run(out_directory: Path, *, quick: bool = False) -> list[Path]:
    """Write ``label-subset.md``, ``label-subset.json`` and a picture; see `longtail_papers.run`."""
    names = data_sets(quick=quick)
    introduction = _INTRODUCTION + left_out(names)
    results = Results(out_directory, "label-subset", "A few labels that stand for all", introduction, quick=quick)
    for section in _sections(load_benchmarks(names), quick):
        results.put(section)
    return results.finish()


def _sections(benchmarks: list[Benchmark], quick: bool) -> Iterator[Section]:
    tables = Tables(quick=quick)
    prepared = []
    for benchmark in benchmarks:
        prepared.append(Prepared.of(benchmark, quick=quick))
        yield from tables.measure(prepared[-1])
        yield statements(tables.claims)
    sized = [data for data in prepared if data.benchmark.name in _SIZED]
    yield from quality_by_size(sized, tables.choices, quick=quick)
    for data in prepared:
        if data.benchmark.name == _COSTED or quick:
            yield from cost(data, quick=quick)
