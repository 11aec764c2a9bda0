"""`longtail check`: look at labelled data before training."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from longtail.cli.advice import reading
from longtail.cli.cards import now
from longtail.cli.inputs import (
    STANDARD_INPUT,
    called,
    check_exists,
    check_stdin,
    named_in_errors,
    read,
    read_prepared,
    several,
)
from longtail.cli.options import option, takes
from longtail.cli.outputs import check_out, output, print_json
from longtail.cli.reading import ReaderOptions
from longtail.cli.report import PAGE_ENDINGS, REASONS, check_is_report
from longtail.cli.terminal import Terminal
from longtail.files import check_ending
from longtail.printable import counted

if TYPE_CHECKING:
    from longtail.checking import Rows
    from longtail.data import Corpus

_ASSIGN = "check the rows that `longtail assign` writes"
_WARNINGS = 3


@dataclass(frozen=True)
class CheckOptions:
    """What to look at, and how to show it."""

    test: str | None = option(metavar="FILE", help="Test rows: look for rows of DATA among them.")
    examples: int = option(
        type=click.IntRange(0, 1000), default=5, show_default=True, help="Maximum number of examples of each finding."
    )
    as_json: bool = option("--json", is_flag=True, default=False, help="Print JSON.")
    out: str | None = option("-o", "--out", metavar="FILE.html", help="Also write a page with pictures.")
    force: bool = option(is_flag=True, default=False, help="Replace FILE.html even if it is not a report.")


@click.command()
@click.argument("data", nargs=-1, required=True)
@takes(options=CheckOptions, reader=ReaderOptions)
@click.pass_obj
def command(terminal: Terminal, /, data: tuple[str, ...], options: CheckOptions, reader: ReaderOptions) -> None:
    """Look at DATA, labelled texts or features, before training.

    Finds rows without labels, empty and duplicate texts, two spellings of a label, damaged characters, training rows
    among test rows, and more. Every finding has examples and says what to do. DATA is as for `longtail train`; files of
    any size are read in bounded memory.
    """
    from longtail.checking import check

    if options.out is not None:
        terminal.outlive_reader()
        check_ending(options.out, PAGE_ENDINGS, "pages are written", reasons=REASONS)
        wrote = check_out(options.out, *data, options.test)
        if not options.force:
            check_is_report(options.out)
    with named_in_errors(data), reading(grouped=_ASSIGN, several=len(data) > 1):
        test = None if options.test is None else _rows((options.test,), "test", reader)
        found = check(_rows(data, "train", reader), test, examples=options.examples)
    if options.as_json:
        print_json(found.to_dict(), indent=2)
    else:
        click.echo(found.to_text())
    if options.out is not None:
        from longtail.report import DataHeading, render_check

        name = ", ".join(called(each) if each == STANDARD_INPUT else Path(each).absolute().name for each in data)
        page = render_check(found, DataHeading(name, now(), options.test and Path(options.test).absolute().name))
        with output(options.out) as write:
            write(page.encode("utf-8"))
        terminal.say(f"{wrote} {options.out}; open it in a browser")


def warn_of_data(terminal: Terminal, data: Sequence[str], corpus: Corpus, reader: ReaderOptions) -> None:
    """Say what matters most before a training, in a few lines; nothing if all is well."""
    from longtail.checking import check_briefly

    if terminal.quiet:
        return
    found = check_briefly(corpus)
    for finding in found[:_WARNINGS]:
        terminal.say(f"note: {finding.says}")
    if found and STANDARD_INPUT not in data:
        more = f"{counted(len(found) - _WARNINGS, 'more finding')}: " if len(found) > _WARNINGS else ""
        command = shlex.join(["longtail", "check", *data, *reader.arguments()])
        terminal.say(f"note: {more}`{command}` shows examples and says what to do")


def _rows(data: tuple[str, ...], split: Literal["train", "test"], reader: ReaderOptions) -> Rows:
    """The rows of DATA; those of files are read one after another."""
    from longtail.checking import Rows, rows_of_corpus, rows_of_file
    from longtail.data import CATALOGUE, iter_jsonl

    if len(data) > 1:
        return rows_of_file(several(data, reader, labelled=True), merge_by=reader.merge_by)
    [name] = data
    if name == STANDARD_INPUT:
        check_stdin(reader)
        return Rows(texts=iter_jsonl(sys.stdin.buffer, **reader.for_format("jsonl", labelled=True)), unit="line")
    if (prepared := read_prepared(name, reader)) is not None:
        return rows_of_corpus(prepared)
    if not Path(name).is_file() and name.lower() in CATALOGUE:
        return rows_of_corpus(read(name, split, reader))
    check_exists(name)
    [source] = reader.sources(data)
    return rows_of_file(source, merge_by=reader.merge_by)
