"""`longtail predict`: labels with scores for new rows, batch by batch."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from longtail.cli.inputs import (
    STANDARD_INPUT,
    Batch,
    ReaderOptions,
    batches,
    called,
    check_file,
    check_labels,
    load_tagger,
    read_prepared,
)
from longtail.cli.options import FiniteRange, option, takes
from longtail.cli.outputs import check_out, out_field, output
from longtail.cli.pieces import ClusterOptions
from longtail.cli.terminal import Terminal, on_terminal
from longtail.errors import InvalidInput
from longtail.printable import counted, json_text, printable

if TYPE_CHECKING:
    from longtail.tagger import Tag, Tagger

_DECIMALS = 6


@dataclass(frozen=True)
class PredictOptions:
    """What to tag, and which labels to give."""

    text: tuple[str, ...] = option(multiple=True, help="Text to tag, instead of DATA; can be repeated.")
    plain: bool = option(is_flag=True, default=False, help="DATA is plain text with one text per line.")
    k: int = option(
        "-k", type=click.IntRange(min=1), default=5, show_default=True, help="Maximum number of labels per row."
    )
    threshold: float | None = option(type=FiniteRange(), metavar="S", help="Leave out labels with scores below S.")
    allow: str | None = option(metavar="FILE", help="Predict only the labels listed in FILE, one per line.")
    deny: str | None = option(metavar="FILE", help="Never predict the labels listed in FILE, one per line.")
    weighting: str | None = option(
        type=click.Choice(["none", "target"]),
        help="Ridge: target gives rare labels more weight.  [default: as trained]",
    )
    out: str | None = out_field()
    output: str | None = option(
        type=click.Choice(["table", "jsonl"]), help="Output format.  [default: table on a terminal, else jsonl]"
    )

    def as_table(self) -> bool:
        return self.output == "table" or (self.output is None and self.out is None and on_terminal())


@click.command()
@click.argument("model")
@click.argument("data", nargs=-1)
@takes(options=PredictOptions, reader=ReaderOptions, workers=ClusterOptions)
@click.pass_obj
def command(
    terminal: Terminal,
    /,
    model: str,
    data: tuple[str, ...],
    options: PredictOptions,
    reader: ReaderOptions,
    workers: ClusterOptions,
) -> None:
    """Tag the texts or rows of features in DATA with MODEL.

    DATA is files of texts or a file of features, as for `longtail train` but without labels; a directory or URL that
    `longtail prepare` wrote; the name of a data set, which means its test part; or - for JSON lines on standard input.
    Labels with a score of exactly 0 are left out. Scores of label trees and one-vs-rest lie between 0 and 1. Ridge
    scores are near 1 for labels that apply and near 0 for others, but can be below 0 or above 1.
    """
    if bool(options.text) == bool(data):
        raise click.UsageError("give either DATA or --text")
    if options.plain and reader.format:
        raise click.UsageError("--plain and --format exclude each other")
    if options.as_table() and options.out:
        raise click.UsageError("--out writes JSON lines; a table can only be printed")
    wrote = check_out(options.out, *data, options.allow, options.deny)
    terminal.hide_progress("predicting")
    if options.out is None and on_terminal():
        terminal.hide_progress()

    tagger = load_tagger(model)
    restrictions = _restrictions(options, tagger, model)
    tagged = 0
    restrictions["threshold"] = options.threshold
    with output(options.out) as write, workers.opened(model):
        for batch, found in _tagged(tagger, model, data, options, reader, workers, restrictions):
            tagged += len(batch.names)
            for number, (name, tags) in enumerate(zip(batch.names, found, strict=True)):
                if options.as_table():
                    _show(name, batch.rows[number] if isinstance(batch.rows, list) else None, tags)
                else:
                    write(_line(name, tags))
            sys.stdout.flush()
        if not tagged and STANDARD_INPUT not in data:
            raise InvalidInput(f"{called(data)} has no rows; there is nothing to tag")
    if not tagged:
        terminal.say("standard input has no rows; there is nothing to tag")
    if options.out is not None:
        terminal.say(f"{wrote} {options.out}: {counted(tagged, 'row')}")


def _restrictions(options: PredictOptions, tagger: Tagger, model: str) -> dict[str, Any]:
    """The labels that may be given, and the weighting if one is asked for."""
    allow, deny = _names(options.allow, tagger), _names(options.deny, tagger)
    if allow == []:
        raise InvalidInput(f"{options.allow} lists no label; write one on each line")
    if options.weighting is None:
        return {"allow": allow, "deny": deny}
    if "weighting" not in tagger.estimator_.prediction_options:
        learner = type(tagger.estimator_).__name__
        raise InvalidInput(
            f"{model} holds a {learner}, whose weighting is set in training (train --weighting); only ridge models "
            f"accept --weighting here"
        )
    return {"allow": allow, "deny": deny, "weighting": None if options.weighting == "none" else options.weighting}


def _tagged(
    tagger: Tagger,
    model: str,
    data: tuple[str, ...],
    options: PredictOptions,
    reader: ReaderOptions,
    workers: ClusterOptions,
    restrictions: dict[str, Any],
) -> Iterator[tuple[Batch, Iterable[list[Tag]]]]:
    """Batches of rows with their labels."""
    corpus = read_prepared(data[0], reader) if len(data) == 1 and not options.plain else None
    if corpus is not None:
        names: Iterable[str | int] = corpus.row_names or range(1, corpus.n_rows + 1)
        yield Batch(list(names), corpus.features), tagger.tag_corpus(corpus, options.k, **restrictions)
        return
    if workers.cluster is not None:
        raise InvalidInput("--cluster needs DATA that all workers can read: prepare it first with `longtail prepare`")
    for batch in _rows(tagger, model, data, options, reader):
        yield batch, tagger.tag(batch.rows, options.k, **restrictions)


def _rows(
    tagger: Tagger, model: str, data: tuple[str, ...], options: PredictOptions, reader: ReaderOptions
) -> Iterable[Batch]:
    """The rows to tag, in batches."""
    if not tagger.takes_texts and (options.text or options.plain or STANDARD_INPUT in data):
        raise InvalidInput(f"{model} takes features, not texts; give a file of features")
    if options.text:
        return [Batch(list(range(1, len(options.text) + 1)), list(options.text))]
    return batches(data, reader, options.plain, tagger.takes_texts)


def _line(name: str | int, tags: list[Tag]) -> bytes:
    labels = [{"label": tag.label, "score": round(tag.score, _DECIMALS)} for tag in tags]
    return json_text({"id": name, "labels": labels}).encode() + b"\n"


def _show(name: str | int, text: str | None, tags: list[Tag]) -> None:
    from rich.text import Text

    from longtail.cli.tables import show, tag_lines

    heading = Text(printable(str(name)), style="bold")
    if text is not None:
        heading.append("  " + " ".join(text.split()), style="dim")
        heading.truncate(100, overflow="ellipsis")
    show(heading, tag_lines(tags) if tags else Text("no label"), "")


def _names(path: str | None, tagger: Tagger) -> list[str] | None:
    if path is None:
        return None
    from longtail.data import read_text_lines

    check_file(path)
    lines = (line.rstrip("\r\n") for _, line in read_text_lines(path))
    names = list(dict.fromkeys(line for line in lines if line))
    check_labels(tagger, names, path)
    return names
