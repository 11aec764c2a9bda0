"""`longtail evaluate`: the metrics of a model on rows whose labels are known."""

from __future__ import annotations

import click

from longtail.cli.cards import learnt_from, metrics_section, source
from longtail.cli.inputs import load_tagger, takes_columns
from longtail.cli.measuring import MeasuringOptions, read_measured
from longtail.cli.options import takes
from longtail.cli.outputs import check_picture
from longtail.cli.pieces import ClusterOptions
from longtail.cli.reading import ReaderOptions
from longtail.cli.terminal import Terminal


@click.command()
@click.argument("model")
@click.argument("data", nargs=-1, required=True)
@takes(measuring=MeasuringOptions)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--picture", metavar="FILE.png", help="Also draw the metrics.")
@click.option("--card", is_flag=True, help="Also write the metrics into the card of MODEL.")
@takes(reader=ReaderOptions, workers=ClusterOptions)
@click.pass_obj
def command(
    terminal: Terminal,
    /,
    model: str,
    data: tuple[str, ...],
    measuring: MeasuringOptions,
    as_json: bool,
    picture: str | None,
    card: bool,
    reader: ReaderOptions,
    workers: ClusterOptions,
) -> None:
    """Evaluate MODEL on DATA, rows with known labels.

    DATA is as for `longtail train`, also several files; the name of a data set means its test part.
    """
    from longtail.metrics import propensity_constants
    from longtail.store import read_card, update_card

    if picture is not None:
        check_picture(picture, *data)
    if card or picture is not None:
        terminal.outlive_reader()
    tagger = load_tagger(model)
    corpus = read_measured(data, reader)
    a, b = measuring.propensity or propensity_constants(data[0])
    with workers.opened(model):
        report = tagger.evaluate(corpus, ks=measuring.ks, a=a, b=b)
    if warning := learnt_from(read_card(model, tagger.fingerprint_), data):
        terminal.say(f"note: {warning}")
    if not any(group.n_true_labels for group in report.groups if group.name != "unseen"):
        advice = (
            "; if the labels are in another column, name it: --label-column"
            if takes_columns(data, reader.format)
            else ""
        )
        terminal.say(f"note: the model knows none of these labels{advice}")
    click.echo(report.to_json() if as_json else report.to_text())
    if picture is not None:
        report.save_picture(picture)
        terminal.say(f"drew {picture}")
    if card:
        update_card(model, of=tagger.fingerprint_, metrics=metrics_section(report, source(data, "test")))
        terminal.say(f"wrote the metrics into the card of {model}")
