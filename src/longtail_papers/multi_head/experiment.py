"""`reproduce multi-head`: short heads in place of one output per label (Liang et al., TPAMI 2025)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from longtail_papers.common.benchmarks import left_out, load_benchmarks
from longtail_papers.common.claims import Claim, statements
from longtail_papers.common.records import Figures, Records, about
from longtail_papers.common.side_by_side import measure_parts
from longtail_papers.common.tables import Results, Section
from longtail_papers.multi_head.costs import costs
from longtail_papers.multi_head.images import image_sections
from longtail_papers.multi_head.powersets import powersets
from longtail_papers.multi_head.pretrained import pretrained_sections
from longtail_papers.multi_head.rank_one import rank_one
from longtail_papers.multi_head.texts import text_sections

_INTRODUCTION = (
    "Multi-head encoding writes a label as a number of a few digits and gives each digit a short layer of its own "
    "(Liang et al., TPAMI 2025): side by side, whose outputs multiply (MHP), one after the other, each among the "
    "labels that are left (MHC), or as blocks of labels of which a batch trains some (MHS). {40;25} are the lengths of "
    "two heads for 1,000 labels. Every figure was measured in this run, or an earlier one that it goes on from, except "
    "those in columns named paper. Settings are chosen on rows held out of the training part, never on test rows."
)


_PARTS = ("mnist", "fashion-mnist", "mosaics", "texts", "pretrained", "powersets")
_LONGEST_FIRST = ("mosaics", "texts", "pretrained", "powersets", "mnist", "fashion-mnist")
_BENCHMARKS = {"texts": ("eurlex-4k", text_sections), "powersets": ("mediamill", powersets)}


def data_sets(*, quick: bool) -> tuple[str, ...]:
    """The data sets that are measured on, where they are here."""
    return ("mnist", "fashion-mnist", "eurlex-4k", "eurlex57k", "mediamill")


def run(out_directory: Path, *, quick: bool = False) -> list[Path]:
    """Write ``multi-head.md``, ``multi-head.json`` and pictures; see `longtail_papers.run`.

    Records of trainings and the ``.npy`` files of encoded texts stay beside them for a run that goes on.
    """
    introduction = f"{_INTRODUCTION} {about([_records(out_directory, part, quick) for part in (*_PARTS, 'costs')])}"
    introduction += left_out(data_sets(quick=quick))
    results = Results(out_directory, "multi-head", "Short heads for many labels", introduction, quick=quick)
    if not quick:
        measure_parts("longtail_papers.multi_head.experiment:measure", _LONGEST_FIRST, out_directory)
    claims: list[Claim] = []
    sections = chain(
        *(_sections(part, out_directory, claims, quick) for part in _PARTS),
        rank_one(claims, quick=quick),
        costs(_records(out_directory, "costs", quick), claims, quick=quick),
    )
    for section in sections:
        results.put(section)
    if claims:
        results.put(statements(claims))
    return results.finish()


def measure(part: str, directory: str) -> None:
    """Train the networks of one part."""
    for _ in _sections(part, Path(directory), [], quick=False):
        pass


def _sections(part: str, directory: Path, claims: list[Claim], quick: bool) -> Iterator[Section]:
    records = _records(directory, part, quick)
    if part == "pretrained":
        yield from pretrained_sections(records, claims, directory, quick=quick)
    elif part in _BENCHMARKS:
        name, sections = _BENCHMARKS[part]
        yield from sections(load_benchmarks((name,)), records, claims, quick=quick)
    else:
        yield from image_sections(part, records, claims, quick=quick)


def _records(directory: Path, part: str, quick: bool) -> Records[Figures]:
    return Records.of(directory, f"multi-head-{part}", dict, quick=quick)
