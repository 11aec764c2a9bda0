"""`longtail labels`: the labels of a model with their training rows, most frequent first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from longtail.cli.inputs import load_tagger
from longtail.cli.options import option, takes
from longtail.cli.outputs import check_out, out_field, print_json
from longtail.cli.terminal import Terminal
from longtail.printable import counted, printable

if TYPE_CHECKING:
    from longtail.tagger import LabelCount, Tagger

_SHOWN = 20


@dataclass(frozen=True)
class LabelsOptions:
    """Which labels to list, and where."""

    contains: str = option(default="", metavar="TEXT", help="Only labels that contain TEXT, in upper or lower case.")
    prefix: str = option(default="", metavar="TEXT", help="Only labels that begin with TEXT, in upper or lower case.")
    limit: int | None = option(
        type=click.IntRange(min=1), metavar="N", help="Maximum number of labels.  [default: 20; with --out all]"
    )
    as_json: bool = option("--json", is_flag=True, default=False, help="Print JSON.")
    out: str | None = out_field("Write to FILE (.csv, .tsv, .jsonl or .parquet) instead of standard output.")


@click.command()
@click.argument("model")
@takes(options=LabelsOptions)
@click.pass_obj
def command(terminal: Terminal, /, model: str, options: LabelsOptions) -> None:
    """List the labels of MODEL with their training rows, most frequent first."""
    if options.out is not None:
        from longtail.data import check_table_file

        check_table_file(options.out, "labels are written")
        if options.as_json:
            raise click.UsageError("--json prints, and --out writes a file; give one of them")
    wrote = check_out(options.out)
    tagger = load_tagger(model)
    limit = options.limit or (_SHOWN if options.out is None else len(tagger.label_names_))
    found = tagger.find_labels(options.prefix, options.contains, limit)
    if options.out is not None:
        _write(options.out, found)
        terminal.say(f"{wrote} {options.out}: {counted(len(found), 'label')}")
    elif options.as_json:
        print_json([{"label": each.label, "rows": each.count} for each in found], indent=2)
    else:
        _show(terminal, found, tagger, options)


def _write(out: str, found: Sequence[LabelCount]) -> None:
    from longtail.data import Column, writing_table

    with writing_table(out, [Column("label"), Column("rows", "whole")]) as write:
        for each in found:
            write([each.label, each.count])


def _show(terminal: Terminal, found: Sequence[LabelCount], tagger: Tagger, options: LabelsOptions) -> None:
    from longtail.cli.tables import show, simple_table

    if found:
        show(simple_table(["rows", "label"], ([f"{each.count:,}", printable(each.label)] for each in found), ["rows"]))
        if len(found) == (options.limit or _SHOWN) < len(tagger.label_names_):
            terminal.say(
                f"the model has {len(tagger.label_names_):,} labels; to see more of them, use --limit or --out"
            )
        return
    similar = tagger.similar_labels(options.contains or options.prefix)
    meant = f"; did you mean {' or '.join(map(repr, similar))}?" if similar else ""
    terminal.say(f"none of the {counted(len(tagger.label_names_), 'label')} matches{meant}")
