"""`longtail predict`: labels with scores for new rows, batch by batch."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from longtail.cli.inputs import (
    STANDARD_INPUT,
    Batch,
    FiniteRange,
    ReaderOptions,
    batches,
    check_file,
    check_labels,
    load_tagger,
    reader_options,
)
from longtail.cli.outputs import check_out, out_option, output
from longtail.cli.terminal import Terminal, counted, on_terminal
from longtail.errors import InvalidInput
from longtail.printable import json_text, printable

if TYPE_CHECKING:
    from longtail.tagger import Tag, Tagger

_DECIMALS = 6


@click.command()
@click.argument("model")
@click.argument("data", required=False)
@click.option("--text", multiple=True, help="A text to tag, instead of DATA; may be given several times.")
@click.option("--plain", is_flag=True, help="DATA is plain text, one text per line.")
@click.option("-k", type=click.IntRange(min=1), default=5, show_default=True, help="Labels for each row.")
@click.option("--min-score", type=FiniteRange(), metavar="S", help="Leave out labels with a lower score.")
@click.option("--allow", metavar="FILE", help="Give only the labels named in FILE, one per line.")
@click.option("--deny", metavar="FILE", help="Never give the labels named in FILE, one per line.")
@click.option("--weighting", type=click.Choice(["none", "target"]), help="Ridge: favour rare labels, or not.")
@out_option()
@click.option(
    "--output", type=click.Choice(["table", "jsonl"]), help="[default: a table on a terminal, else JSON lines]"
)
@reader_options
@click.pass_obj
def command(terminal: Terminal, /, model: str, data: str | None, **given: Any) -> None:
    """Tag the rows of DATA with MODEL.

    DATA is a file of texts or of features, as for `longtail train` but without need of labels; the name of a data
    set, which means its test part; or - for JSON lines on standard input. Labels that nothing speaks for, with a
    score of exactly 0, are left out. A score of ridge is an estimate of 1 for a label that applies and 0 for one that
    does not, and may lie outside; scores of label trees and one-vs-rest lie between 0 and 1.
    """
    if bool(given["text"]) == (data is not None):
        raise click.UsageError("give either DATA or --text")
    if given["plain"] and given["format"]:
        raise click.UsageError("--plain and --format exclude each other")
    as_table = given["output"] == "table" or (given["output"] is None and given["out"] is None and on_terminal())
    if as_table and given["out"]:
        raise click.UsageError("a table goes to the terminal; --out takes JSON lines")
    wrote = check_out(given["out"], data, given["allow"], given["deny"])
    terminal.hide_progress("predicting")
    if given["out"] is None and on_terminal():
        terminal.hide_progress()

    tagger = load_tagger(model)
    options: dict[str, Any] = {option: _names(given[option], tagger) for option in ("allow", "deny")}
    if options["allow"] == []:
        raise InvalidInput(f"{given['allow']} names no label; write one on each line")
    if given["weighting"] is not None:
        if "weighting" not in tagger.estimator_.prediction_options:
            learner = type(tagger.estimator_).__name__
            raise InvalidInput(
                f"{model} holds a {learner}, whose weighting is set when it is trained (train --weighting); only ridge "
                f"models take --weighting here"
            )
        options["weighting"] = None if given["weighting"] == "none" else given["weighting"]
    reader = ReaderOptions(*(given[name] for name in ReaderOptions.__dataclass_fields__))
    if given["text"]:
        if not tagger.takes_texts:
            raise InvalidInput(f"{model} takes features, not texts; give a file of features")
        rows = iter([Batch(list(range(1, len(given["text"]) + 1)), list(given["text"]))])
    else:
        assert data is not None
        if not tagger.takes_texts and (given["plain"] or data == STANDARD_INPUT):
            raise InvalidInput(f"{model} takes features, not texts; give a file of features")
        rows = batches(data, reader, given["plain"], tagger.takes_texts)

    lowest, tagged = given["min_score"], 0
    with output(given["out"]) as write:
        for batch in rows:
            tagged += len(batch.names)
            found = tagger.predict(batch.rows, given["k"], **options)
            for number, (name, tags) in enumerate(zip(batch.names, found, strict=True)):
                tags = [tag for tag in tags if tag.score and (lowest is None or tag.score >= lowest)]
                if as_table:
                    _show(name, batch.rows[number] if tagger.takes_texts else None, tags)
                else:
                    write(_line(name, tags))
            sys.stdout.flush()
        if not tagged and data != STANDARD_INPUT:
            raise InvalidInput(f"{data} has no rows; there is nothing to tag")
    if not tagged:
        terminal.say("standard input has no rows; there is nothing to tag")
    if given["out"] is not None:
        terminal.say(f"{wrote} {given['out']}: {counted(tagged, 'row')}")


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
