"""`longtail report`: write a one-page HTML report on a model."""

from __future__ import annotations

from pathlib import Path

import click

from longtail.cli.cards import learnt_from, now, source
from longtail.cli.inputs import ReaderOptions, load_tagger
from longtail.cli.measuring import MeasuringOptions, read_measured
from longtail.cli.options import takes
from longtail.cli.outputs import check_out, out_option, output
from longtail.cli.terminal import Terminal
from longtail.errors import InvalidInput


@click.command()
@click.argument("model")
@click.argument("data")
@out_option("The file to write, or - for standard output.", default="report.html", show_default=True)
@click.option("--force", is_flag=True, help="Replace FILE even if it is not a report.")
@takes(measuring=MeasuringOptions)
@click.option(
    "--worst", type=click.IntRange(0, 1000), default=20, show_default=True, help="Maximum number of worst labels."
)
@click.option(
    "--pairs", type=click.IntRange(0, 1000), default=20, show_default=True, help="Maximum number of confused pairs."
)
@click.option(
    "--examples", type=click.IntRange(0, 200), default=10, show_default=True, help="Maximum number of documents."
)
@takes(reader=ReaderOptions)
@click.pass_obj
def command(
    terminal: Terminal,
    /,
    model: str,
    data: str,
    out: str | None,
    force: bool,
    measuring: MeasuringOptions,
    worst: int,
    pairs: int,
    examples: int,
    reader: ReaderOptions,
) -> None:
    """Write a one-page HTML report on MODEL, measured on DATA.

    The file runs no script and needs no other file, so you can send it to a colleague. DATA is as for `longtail
    evaluate`. The report shows excerpts of some texts of DATA.
    """
    from longtail.metrics import propensity_constants
    from longtail.report import Heading, ReportOptions, make_report
    from longtail.store import read_card

    wrote = check_out(out, data)
    if out is not None and not force:
        _check_is_report(out)
    tagger = load_tagger(model)
    corpus = read_measured(data, reader)
    card = read_card(model, tagger.fingerprint_)
    warning = learnt_from(card, data)
    if warning:
        terminal.say(f"note: {warning}")
    page = make_report(
        tagger,
        corpus,
        Heading(Path(model).absolute().name, source(data, "test"), now(), card, warning),
        ReportOptions(measuring.ks, measuring.propensity or propensity_constants(data), worst, pairs, examples),
    )
    with output(out) as write:
        write(page.encode("utf-8"))
    if out is not None:
        terminal.say(f"{wrote} {out}; open it in a browser")


def _check_is_report(out: str) -> None:
    from longtail.report import is_report

    if not Path(out).exists():
        return
    try:
        replaceable = is_report(out)
    except OSError as error:
        raise InvalidInput(f"cannot read {out}: {error.strerror or error}") from None
    if not replaceable:
        raise InvalidInput(f"{out} exists and is not a report; choose another name, or replace it with --force")
