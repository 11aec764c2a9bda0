"""`longtail report`: write a one-page HTML report on a model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from longtail.cli.cards import learnt_from, now, source
from longtail.cli.inputs import called, load_tagger
from longtail.cli.measuring import MeasuringOptions, read_measured
from longtail.cli.options import option, takes
from longtail.cli.outputs import check_out, out_field, output
from longtail.cli.reading import ReaderOptions
from longtail.cli.terminal import Terminal
from longtail.errors import InvalidInput
from longtail.files import check_ending

PAGE_ENDINGS = (".html", ".htm")
_PRINT = "write an .html file, open it in a browser and print it to PDF"
REASONS = {".pdf": _PRINT, ".docx": f"for paper, {_PRINT}"}


@dataclass(frozen=True)
class TargetOptions:
    """Where the report goes."""

    out: str | None = out_field("File to write, or - for standard output.", default="report.html", show_default=True)
    force: bool = option(is_flag=True, default=False, help="Replace FILE even if it is not a report.")


@dataclass(frozen=True)
class LengthOptions:
    """How much the report shows."""

    worst: int = option(
        type=click.IntRange(0, 1000), default=20, show_default=True, help="Maximum number of worst labels to list."
    )
    pairs: int = option(
        type=click.IntRange(0, 1000), default=20, show_default=True, help="Maximum number of confused pairs to list."
    )
    examples: int = option(
        type=click.IntRange(0, 200), default=10, show_default=True, help="Maximum number of example documents."
    )


@click.command()
@click.argument("model")
@click.argument("data", nargs=-1, required=True)
@takes(target=TargetOptions, measuring=MeasuringOptions, length=LengthOptions, reader=ReaderOptions)
@click.pass_obj
def command(
    terminal: Terminal,
    /,
    model: str,
    data: tuple[str, ...],
    target: TargetOptions,
    measuring: MeasuringOptions,
    length: LengthOptions,
    reader: ReaderOptions,
) -> None:
    """Write a one-page HTML report on MODEL, measured on DATA.

    The file contains no scripts and needs no other files, so you can send it to a colleague. DATA is as for `longtail
    evaluate`. The report shows excerpts of some texts of DATA.
    """
    from longtail.metrics import propensity_constants
    from longtail.report import Heading, ReportOptions, make_report
    from longtail.store import read_card

    out = target.out
    if out is not None:
        check_ending(out, PAGE_ENDINGS, "reports are written", reasons=REASONS)
    wrote = check_out(out, *data)
    if out is not None and not target.force:
        check_is_report(out)
    tagger = load_tagger(model)
    corpus = read_measured(data, reader)
    if tagger.takes_texts and corpus.made_by is not None:
        raise InvalidInput(f"a report on {model} shows texts, and {called(data)} holds none; give a file of texts")
    card = read_card(model, tagger.fingerprint_)
    warning = learnt_from(card, data)
    if warning:
        terminal.say(f"note: {warning}")
    page = make_report(
        tagger,
        corpus,
        Heading(Path(model).absolute().name, source(data, "test"), now(), card, warning),
        ReportOptions(
            measuring.ks,
            measuring.propensity or propensity_constants(data[0]),
            length.worst,
            length.pairs,
            length.examples,
        ),
    )
    with output(out) as write:
        write(page.encode("utf-8"))
    if out is not None:
        terminal.say(f"{wrote} {out}; open it in a browser")


def check_is_report(out: str) -> None:
    """Refuse to replace a file that is not a report."""
    from longtail.report import is_report

    if not Path(out).exists():
        return
    try:
        replaceable = is_report(out)
    except OSError as error:
        raise InvalidInput(f"cannot read {out}: {error.strerror or error}") from None
    if not replaceable:
        raise InvalidInput(f"{out} exists and is not a report; choose another name, or replace it with --force")
