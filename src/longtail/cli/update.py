"""`longtail update`: a model learns new, corrected and removed rows, feedback, and changes of labels."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from longtail.cli.advice import reading
from longtail.cli.cards import now, source, updates_section
from longtail.cli.inputs import STANDARD_INPUT, check_file, check_labels, check_stdin, load_tagger
from longtail.cli.options import SectionedCommand, takes
from longtail.cli.outputs import check_target
from longtail.cli.reading import ReaderOptions
from longtail.cli.terminal import Terminal
from longtail.errors import InvalidInput
from longtail.parallel import use_jobs
from longtail.printable import counted

if TYPE_CHECKING:
    from longtail.data import Change
    from longtail.tagger import Tagger, UpdateSummary


def _renames(_ctx: Any, _parameter: Any, values: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for value in values:
        old, sign, new = value.partition("=")
        if not (old and sign and new):
            raise click.BadParameter(f"expected OLD=NEW, found {value!r}")
        found[old] = new
    return found


@click.command(cls=SectionedCommand)
@click.argument("model")
@click.argument("new", nargs=-1)
@click.option("-o", "--out", metavar="MODEL2", help="Write the updated model here.  [default: replace MODEL]")
@click.option("--force", is_flag=True, help="With --out: replace an existing model.")
@click.option("--rename", multiple=True, callback=_renames, metavar="OLD=NEW", help="Rename a label, before NEW.")
@click.option("--drop-label", multiple=True, metavar="LABEL", help="Drop a label, before NEW.")
@click.option("--jobs", type=int, help="Number of threads.  [default: one per core]")
@takes(reader=ReaderOptions)
@click.pass_obj
def command(
    terminal: Terminal,
    /,
    model: str,
    new: tuple[str, ...],
    out: str | None,
    force: bool,
    rename: dict[str, str],
    drop_label: tuple[str, ...],
    jobs: int | None,
    reader: ReaderOptions,
) -> None:
    """Let MODEL learn NEW, without training everything again.

    MODEL must have been trained with `longtail train --updatable`. NEW are files of labelled texts, as for `longtail
    train`, or - for JSON lines on standard input. A row with the id of an earlier row replaces it; without an id, the
    same text does. JSON lines can also hold

    \b
      {"id": "7", "remove": true}                             a row to forget
      {"text": "...", "accepted": [...], "rejected": [...],
       "added": [...]}                                        feedback, as `longtail serve --feedback` writes it
      {"rename": {"old": "new"}}                              another name of a label
      {"drop_label": "name"}                                  a label to forget

    The vocabulary and the second stage stay those of the last full training. The command says when another one is due.
    """
    begun = time.perf_counter()
    terminal.outlive_reader()
    if not (new or rename or drop_label):
        raise InvalidInput("there is nothing to learn; give files of new rows, --rename or --drop-label")
    if reader.merge_by is not None:
        raise InvalidInput("--merge-by does not apply to changes: a later row with the same id replaces an earlier one")
    for path in new:
        check_stdin(reader) if path == STANDARD_INPUT else check_file(path)
    target = out or model
    if out is not None:
        check_target(out, force)
    from longtail.store import read_card

    tagger = load_tagger(model)
    check_labels(tagger, rename, "--rename")
    check_labels(tagger, drop_label, "--drop-label")
    card = read_card(model, tagger.fingerprint_) or {}
    with use_jobs(jobs):
        tagger.update(_changes(new, reader), rename=rename, drop=drop_label)
    assert tagger.update_ is not None
    seconds = time.perf_counter() - begun
    tagger.save(target, _card(card, tagger, new))
    terminal.summarize(_summary(target, tagger, tagger.update_, seconds))


def _changes(new: tuple[str, ...], reader: ReaderOptions) -> Iterator[Change]:
    from longtail.data import format_of, read_changes

    for path in new:
        is_stream = path == STANDARD_INPUT
        format = "jsonl" if is_stream else reader.format or format_of(path)
        with reading():
            yield from read_changes(
                sys.stdin.buffer if is_stream else Path(path), format, **reader.for_format(format, True)
            )


def _card(card: dict[str, Any], tagger: Tagger, new: tuple[str, ...]) -> dict[str, Any]:
    """The card of the old model, with this update; what was measured on the old model is left out."""
    assert tagger.update_ is not None
    data = {**card.get("data", {}), "rows": tagger.n_rows_, "labels": len(tagger.label_names_)}
    kept = {"trained": card["trained"]} if "trained" in card else {}
    names = ", ".join(source(path, "training") for path in new)
    return {**kept, "data": data, "updates": updates_section(tagger.update_.history, tagger.update_.due, names, now())}


def _summary(target: str, tagger: Tagger, found: UpdateSummary, seconds: float) -> str:
    rows = [f"{counted(found.added, 'new row')}", f"{found.changed:,} changed", f"{found.removed:,} removed"]
    labels = ", ".join(f"{count:,} {what}" for what, count in _label_changes(found) if count)
    told = f"{', '.join(rows)}; {counted(len(tagger.label_names_), 'label')}{f' ({labels})' if labels else ''}"
    return f"{target}: {told}; took {seconds:.1f} s"


def _label_changes(found: UpdateSummary) -> list[tuple[str, int]]:
    return [
        ("new", len(found.labels_added)),
        ("renamed", found.labels_renamed),
        ("dropped", len(found.labels_dropped)),
    ]
