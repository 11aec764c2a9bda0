"""`longtail evaluate`: the metrics of a model on rows whose labels are known."""

from __future__ import annotations

from typing import Any

import click

from longtail.cli.cards import metrics_section, source
from longtail.cli.inputs import ReaderOptions, is_number, load_tagger, read, reader_options
from longtail.cli.terminal import Terminal
from longtail.errors import InvalidInput

GROUPED = (
    "a model is measured on rows whose own labels are known, also one that learnt from groups; label some texts by "
    'hand, {"text": "...", "labels": [...]} in each line, and give that file (`longtail assign` only guesses)'
)


def read_cutoffs(ctx: click.Context, parameter: click.Parameter, value: str) -> tuple[int, ...]:
    """Numbers of places, as an option gives them."""
    cutoffs = value.split(",")
    if not all(is_number(k.strip()) and int(k) > 0 for k in cutoffs):
        raise click.BadParameter("expected numbers of places such as 1,3,5")
    return tuple(sorted({int(k) for k in cutoffs}))


def read_constants(ctx: click.Context, parameter: click.Parameter, value: str | None) -> tuple[float, float] | None:
    """The constants of the propensity model, as an option gives them."""
    if value is None:
        return None
    try:
        a, b = map(float, value.split(","))
    except ValueError:
        raise click.BadParameter("expected two numbers such as 0.55,1.5") from None
    return a, b


@click.command()
@click.argument("model")
@click.argument("data")
@click.option("-k", "ks", default="1,3,5", show_default=True, callback=read_cutoffs, help="Numbers of places.")
@click.option(
    "--propensity",
    callback=read_constants,
    metavar="A,B",
    help="Constants of the propensity model.  [default: the published ones of the data set, else 0.55,1.5]",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--picture", metavar="FILE.png", help="Also draw the report.")
@click.option("--keep", is_flag=True, help="Also write what was measured into the card of MODEL.")
@reader_options
@click.pass_obj
def command(
    terminal: Terminal,
    /,
    model: str,
    data: str,
    ks: tuple[int, ...],
    propensity: tuple[float, float] | None,
    as_json: bool,
    picture: str | None,
    keep: bool,
    **given: Any,
) -> None:
    """Measure MODEL on DATA.

    DATA is as for `longtail train`; the name of a data set means its test part.
    """
    from longtail.metrics import propensity_constants

    tagger = load_tagger(model)
    corpus = read(data, "test", ReaderOptions(**given), grouped=GROUPED)
    if corpus.n_rows == 0:
        raise InvalidInput(f"{data} has no rows; there is nothing to measure on")
    a, b = propensity or propensity_constants(data)
    report = tagger.evaluate(corpus, ks=ks, a=a, b=b)
    click.echo(report.to_json() if as_json else report.to_text())
    if picture is not None:
        report.save_picture(picture)
        terminal.say(f"drew {picture}")
    if keep:
        from longtail.store import update_card

        update_card(model, metrics=metrics_section(report, source(data, "test")))
        terminal.say(f"wrote what was measured into the card of {model}")
