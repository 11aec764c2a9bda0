"""`longtail report`: one HTML file that says how good a model is, where it errs, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from longtail.cli.cards import learnt_from, now, source
from longtail.cli.inputs import load_tagger, reader_options
from longtail.cli.measuring import measuring_options, read_measured
from longtail.cli.outputs import check_out, out_option, output
from longtail.cli.terminal import Terminal
from longtail.errors import InvalidInput


@click.command()
@click.argument("model")
@click.argument("data")
@out_option("The file to write, or - for standard output.", default="report.html", show_default=True)
@click.option("--force", is_flag=True, help="Replace FILE even if it is not a report.")
@measuring_options
@click.option("--worst", type=click.IntRange(0, 1000), default=20, show_default=True, help="Labels that fare worst.")
@click.option("--pairs", type=click.IntRange(0, 1000), default=20, show_default=True, help="Pairs of confused labels.")
@click.option("--examples", type=click.IntRange(0, 200), default=10, show_default=True, help="Documents to show.")
@reader_options
@click.pass_obj
def command(
    terminal: Terminal,
    /,
    model: str,
    data: str,
    out: str | None,
    force: bool,
    ks: tuple[int, ...],
    propensity: tuple[float, float] | None,
    worst: int,
    pairs: int,
    examples: int,
    **given: Any,
) -> None:
    """Write a report on MODEL, measured on DATA, as one HTML file.

    The file needs nothing else, runs no script and asks no other host: send it to a colleague. DATA is as for `longtail
    evaluate`. Note that the report shows parts of some texts of DATA.
    """
    from longtail.metrics import propensity_constants
    from longtail.report import Heading, gather, render
    from longtail.store import read_card

    wrote = check_out(out, data)
    if out is not None and not force:
        _check_is_report(out)
    tagger = load_tagger(model)
    card = read_card(model, tagger.fingerprint_)
    corpus = read_measured(data, given)
    warning = learnt_from(card, data)
    if warning:
        terminal.say(f"note: {warning}")
    constants = propensity or propensity_constants(data)
    facts = gather(tagger, corpus, ks=ks, propensity=constants, worst=worst, pairs=pairs, examples=examples)
    options = {
        "k": ", ".join(map(str, ks)),
        "worst labels": str(worst),
        "pairs": str(pairs),
        "documents": str(examples),
    }
    heading = Heading(Path(model).absolute().name, source(data, "test"), now(), card, options, warning)
    page = render(facts, heading).encode("utf-8")
    with output(out) as write:
        write(page)
    if out is not None:
        terminal.say(f"{wrote} {out}; open it in a browser")


def _check_is_report(out: str) -> None:
    from longtail.report.page import BEGINNING

    path = Path(out)
    if not path.exists():
        return
    try:
        with path.open("rb") as file:
            beginning = file.read(len(BEGINNING))
    except OSError as error:
        raise InvalidInput(f"{out} cannot be read: {error.strerror or error}") from None
    if beginning != BEGINNING.encode():
        raise InvalidInput(f"{out} is there and is not a report; choose another name, or say --force to replace it")
