"""`reproduce argmaxable`: label sets that a linear output layer cannot predict (Grivas et al., AAAI 2024)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from longtail.audit import require_highspy
from longtail_papers.common.benchmarks import Benchmark, left_out, load_benchmarks
from longtail_papers.common.tables import Results, Section
from longtail_papers.sigmoid_bottleneck.checks import Proofs
from longtail_papers.sigmoid_bottleneck.counts import counts
from longtail_papers.sigmoid_bottleneck.layers import fourier_layers, truncated_ridge
from longtail_papers.sigmoid_bottleneck.radii import radii

_INTRODUCTION = (
    "A label set is argmaxable if some input gets exactly these labels from the output layer (Grivas et al., AAAI "
    "2024). Every figure was measured in this run, except those in columns named earlier run: our own earlier runs "
    "of another implementation on the same stand-ins. The paper's own networks and data are not here. Radii are in "
    "the paper's units: inputs between -10,000 and 10,000."
)


def data_sets(*, quick: bool) -> tuple[str, ...]:
    """The data sets that are measured on, where they are here."""
    return ("bibtex",) if quick else ("bibtex", "delicious")


def run(out_directory: Path, *, quick: bool = False) -> list[Path]:
    """Write ``argmaxable.md``, ``argmaxable.json`` and pictures; see `longtail_papers.run`."""
    require_highspy()  # now, and not after minutes: exact radii cannot do without
    names = data_sets(quick=quick)
    introduction = _INTRODUCTION + left_out(names)
    results = Results(out_directory, "argmaxable", "Label sets out of reach", introduction, quick=quick)
    for section in _sections(load_benchmarks(names), quick):
        results.put(section)
    return results.finish()


def _sections(benchmarks: list[Benchmark], quick: bool) -> Iterator[Section]:
    proofs = Proofs()
    return chain(
        counts(),
        truncated_ridge(benchmarks, proofs, quick=quick),
        fourier_layers(benchmarks, proofs, quick=quick),
        radii(proofs, quick=quick),
        proofs.section(),
    )
