"""`longtail update`: a model learns new, corrected and removed rows, feedback, and changes of labels."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
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
    found: dict[str, str] = {}
    for value in values:
        old, *new = value.split("=")
        if len(new) != 1 or not (old and new[0]):
            raise click.BadParameter(
                f'expected OLD=NEW, found {value!r}; a line {{"rename": {{OLD: NEW}}}} of NEW can hold any name'
            )
        if found.setdefault(old, new[0]) != new[0]:
            raise click.BadParameter(f"{old!r} is renamed to {found[old]!r} and to {new[0]!r}; choose one")
    return found


@click.command(cls=SectionedCommand)
@click.argument("model")
@click.argument("new", nargs=-1)
@click.option("-o", "--out", metavar="MODEL2", help="Write the updated model here.  [default: replace MODEL]")
@click.option("--force", is_flag=True, help="With --out: replace an existing model.")
@click.option("--rename", multiple=True, callback=_renames, metavar="OLD=NEW", help="Rename a label, before NEW.")
@click.option("--drop-label", multiple=True, metavar="LABEL", help="Drop a label, before NEW.")
@click.option(
    "--corrections-of",
    multiple=True,
    metavar="NAME",
    help="Of the corrections that `longtail serve` kept, learn those of the model that it calls NAME; can be repeated.",
)
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
    corrections_of: tuple[str, ...],
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

    The vocabulary stays that of the last full training. The command says when another one is due.
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
    from longtail.store import read_card, saved_at

    tagger = load_tagger(model)
    check_labels(tagger, rename, "--rename")
    check_labels(tagger, drop_label, "--drop-label")
    loaded = tagger.fingerprint_
    card = read_card(model, loaded) or {}
    before = saved_at(model)
    changes = _of_one_model(list(_changes(new, reader)), corrections_of)
    with use_jobs(jobs):
        tagger.update(changes, rename=rename, drop=drop_label)
    assert tagger.update_ is not None
    seconds = time.perf_counter() - begun
    until = _learnt_until(card, before, changes)
    tagger.save(target, _card(card, tagger, new, until), replaces=loaded if out is None else None)
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


def _of_one_model(changes: list[Change], names: tuple[str, ...]) -> list[Change]:
    """The changes without the corrections of models of other names; one name is chosen by itself."""
    from longtail.data import RowFeedback

    found = dict.fromkeys(each.model for each in changes if isinstance(each, RowFeedback) and each.model is not None)
    listed = ", ".join(map(repr, list(found)[:5]))
    if not names and len(found) > 1:
        raise InvalidInput(
            f"the corrections are of the models {listed}; choose with --corrections-of NAME", code="several_models"
        )
    if missing := [name for name in names if name not in found]:
        of = f"they are of {listed}" if found else "none names a model"
        raise InvalidInput(f"no correction is of the model {missing[0]!r}; {of}", code="no_corrections")
    others = found.keys() - {*names} if names else set()
    return [each for each in changes if not (isinstance(each, RowFeedback) and each.model in others)]


def _learnt_until(card: dict[str, Any], saved: datetime, changes: list[Change]) -> datetime:
    """The time of the newest correction that the model has learnt, or when the first model of the card was saved."""
    from longtail.data import RowFeedback
    from longtail.store import corrections_until

    times = [each.time for each in changes if isinstance(each, RowFeedback) and each.time is not None]
    return min(datetime.now(UTC), max([corrections_until(card) or saved, *times]))


def _card(card: dict[str, Any], tagger: Tagger, new: tuple[str, ...], until: datetime) -> dict[str, Any]:
    """The card of the old model, with this update; what was measured on the old model is left out."""
    assert tagger.update_ is not None
    data = {**card.get("data", {}), "rows": tagger.n_rows_, "labels": len(tagger.label_names_)}
    kept = {"trained": card["trained"]} if "trained" in card else {}
    names = ", ".join(source(path, "training") for path in new)
    updates = updates_section(tagger.update_.history, tagger.update_.due, names, now(), until)
    return {**kept, "data": data, "updates": updates}


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
