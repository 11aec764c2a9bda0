"""`longtail evaluate`: the metrics of a model on rows whose labels are known."""

from __future__ import annotations

import click

from longtail.cli.cards import learnt_from, metrics_section, source
from longtail.cli.inputs import load_tagger, takes_columns
from longtail.cli.measuring import MeasuringOptions, read_measured
from longtail.cli.options import takes
from longtail.cli.outputs import check_picture, print_json
from longtail.cli.pieces import ClusterOptions
from longtail.cli.reading import ReaderOptions
from longtail.cli.terminal import Terminal


@click.command()
@click.argument("model")
@click.argument("data", nargs=-1, required=True)
@takes(measuring=MeasuringOptions)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--picture", metavar="FILE.png", help="Also draw the metrics.")
@click.option(
    "--heads", is_flag=True, help="Also judge each digit of a network's codes (heads cascade, product, kronecker)."
)
@click.option("--heads-picture", metavar="FILE.png", help="Also judge the digits, and draw how often each is right.")
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
    heads: bool,
    heads_picture: str | None,
    card: bool,
    reader: ReaderOptions,
    workers: ClusterOptions,
) -> None:
    """Evaluate MODEL on DATA, rows with known labels.

    DATA is as for `longtail train`, also several files; the name of a data set means its test part.
    """
    from longtail.files import whole_file
    from longtail.metrics import propensity_constants
    from longtail.pictures import draw
    from longtail.store import read_card, update_card

    pictures = [path for path in (picture, heads_picture) if path is not None]
    for path in pictures:
        check_picture(path, *data)
    if card or pictures:
        terminal.outlive_reader()
    tagger = load_tagger(model)
    corpus = read_measured(data, reader)
    judged = tagger.diagnose(corpus) if heads or heads_picture is not None else None
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
    if as_json:
        print_json(report.to_dict() if judged is None else {**report.to_dict(), "heads": judged.to_dict()}, indent=2)
    else:
        click.echo(report.to_text() if judged is None else f"{report.to_text()}\n\n{judged.to_text()}")
    if picture is not None:
        report.save_picture(picture)
        terminal.say(f"drew {picture}")
    if heads_picture is not None and judged is not None:
        with whole_file(heads_picture) as file:
            draw(judged.picture(), file)
        terminal.say(f"drew {heads_picture}")
    if card:
        update_card(model, of=tagger.fingerprint_, metrics=metrics_section(report, source(data, "test")))
        terminal.say(f"wrote the metrics into the card of {model}")
