"""`reproduce multi-head`: short heads in place of one output per label (Liang et al., TPAMI 2025)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from longtail.reproduce.benchmarks import load_benchmarks
from longtail.reproduce.claims import Claim, statements
from longtail.reproduce.multi_head_costs import costs
from longtail.reproduce.multi_head_images import image_sections
from longtail.reproduce.multi_head_powersets import powersets
from longtail.reproduce.multi_head_pretrained import pretrained_sections
from longtail.reproduce.multi_head_rank_one import rank_one
from longtail.reproduce.multi_head_texts import text_sections
from longtail.reproduce.records import Figures, Records
from longtail.reproduce.tables import Results, Section

_INTRODUCTION = (
    "Multi-head encoding writes a label as a number of a few digits and gives each digit a short layer of its own "
    "(Liang et al., TPAMI 2025): side by side, whose outputs multiply (MHP), one after the other, each among the "
    "labels that are left (MHC), or as blocks of labels of which a batch trains some (MHS). {40;25} are the lengths of "
    "two heads for 1,000 labels. Every figure was measured in this run, or an earlier one that it goes on from, except "
    "those in columns named paper. Settings are chosen on rows held out of the training part, never on test rows."
)


def run(out_directory: Path, *, quick: bool = False) -> list[Path]:
    """Write ``multi-head.md``, ``multi-head.json`` and pictures; see `longtail.reproduce.run`.

    ``multi-head-runs.json`` and the ``.npy`` files of encoded texts stay beside them for a run that goes on.
    """
    records: Records[Figures] = Records.of(out_directory, "multi-head", dict, quick=quick)
    introduction = f"{_INTRODUCTION} {records.about()}"
    results = Results(out_directory, "multi-head", "Short heads for many labels", introduction, quick=quick)
    claims: list[Claim] = []
    for section in _sections(out_directory, records, claims, quick):
        results.put(section)
    if claims:
        results.put(statements(claims))
    return results.finish()


def _sections(directory: Path, records: Records[Figures], claims: list[Claim], quick: bool) -> Iterator[Section]:
    texts, no_texts = load_benchmarks(("eurlex-4k",))
    sets, no_sets = load_benchmarks(("mediamill",))
    missing = [*no_texts, *no_sets]
    if missing:
        yield Section("Left out", f"Not found in `$LONGTAIL_DATA` or the cache: {', '.join(missing)}.")
    yield from chain(
        image_sections(records, claims, quick=quick),
        text_sections(texts, records, claims, quick=quick),
        pretrained_sections(records, claims, directory, quick=quick),
        powersets(sets, records, claims, quick=quick),
        rank_one(claims, quick=quick),
        costs(records, claims, quick=quick),
    )
