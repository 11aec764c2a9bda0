"""`longtail audit`: find the label sets that a model can never give, and the labels that conflict."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from longtail.cli.cards import audit_section, source
from longtail.cli.inputs import ReaderOptions, called, is_number, load_tagger, read
from longtail.cli.options import SEED, FiniteRange, takes
from longtail.cli.outputs import check_picture, print_json
from longtail.cli.terminal import Terminal, counted
from longtail.errors import InvalidInput
from longtail.printable import printable

if TYPE_CHECKING:
    from longtail.audit import Audit, CorpusAudit
    from longtail.data import Corpus
    from longtail.estimator import Rule

_LABELS_SHOWN = 5


def _read_ranks(ctx: click.Context, parameter: click.Parameter, value: str | None) -> tuple[int, ...]:
    if value is None:
        return ()
    ranks = [rank.strip() for rank in value.split(",")]
    if not all(is_number(rank) and int(rank) > 0 for rank in ranks):
        raise click.BadParameter("expected ranks such as 5,10,20")
    return tuple(sorted({int(rank) for rank in ranks}))


@click.command()
@click.argument("model", required=False)
@click.argument("data", required=False)
@click.option("--weights", metavar="W.npy", help="Audit this matrix of labels x features instead of MODEL.")
@click.option("--bias", metavar="B.npy", help="With --weights: a bias for each label.")
@click.option("--threshold", type=FiniteRange(), help="With --weights: the score to exceed.  [default: 0]")
@click.option("--labels", "labels_file", metavar="FILE", help="With --weights: the file with the label sets.")
@click.option("--label-names", metavar="FILE", help="With --weights: the name of each row, one per line.")
@click.option(
    "--rule",
    type=click.Choice(["predict", "topk"]),
    help="Audit the labels over their thresholds, or the first places of the ranking.  [default: predict]",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    help="Maximum number of label sets.",
)
@click.option("--ranks", callback=_read_ranks, metavar="D,D,...", help="Also audit the layer cut down to these ranks.")
@click.option("--exact-radii", is_flag=True, help="Find the largest radius of every set; takes longer.")
@click.option("--examples", type=click.IntRange(min=0), default=3, show_default=True, help="Examples to show.")
@click.option("--seed", type=SEED, default=0, show_default=True, help="Random seed for the sample of label sets.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with every set that no input gets.")
@click.option("--picture", metavar="FILE.png", help="Also draw the radii and, with --ranks, the shares by rank.")
@click.option("--card", is_flag=True, help="Also write the result into the card of MODEL.")
@takes(reader=ReaderOptions)
@click.pass_obj
def command(
    terminal: Terminal,
    /,
    model: str | None,
    data: str | None,
    weights: str | None,
    bias: str | None,
    threshold: float | None,
    labels_file: str | None,
    label_names: str | None,
    rule: Rule | None,
    limit: int,
    ranks: tuple[int, ...],
    exact_radii: bool,
    examples: int,
    seed: int,
    as_json: bool,
    picture: str | None,
    card: bool,
    reader: ReaderOptions,
) -> None:
    """Find the label sets of DATA that MODEL can never give, whatever its input.

    A linear model with fewer dimensions than labels has such sets. For every set found, the output names labels that
    conflict: no input gets some of them without one of the others. DATA is as for `longtail evaluate`.
    """
    from longtail.audit import audit_corpus, read_layer

    if (weights is None) == (model is None) or (weights is None) != (labels_file is None):
        raise click.UsageError("give MODEL and DATA, or --weights and --labels")
    if weights is None and data is None:
        raise click.UsageError("give DATA, the file with the label sets to audit")
    if weights is not None and card:
        raise click.UsageError("--card writes into the card of MODEL; bare weights have none")
    if weights is None and (bias is not None or threshold is not None or label_names is not None):
        raise click.UsageError("--bias, --threshold and --label-names go with --weights")
    if weights is not None and threshold is not None and rule == "topk":
        raise click.UsageError("--threshold goes with --rule predict; a ranking has no threshold")
    rows = str(data if weights is None else labels_file)
    if picture is not None:
        check_picture(picture, rows)
    tagger = None
    if weights is None:
        tagger = load_tagger(str(model))
        audited, names = tagger.estimator_, list(tagger.label_names_)
        corpus = _rows(rows, reader)
    else:
        corpus = _rows(rows, reader)
        audited = read_layer(weights, bias, threshold or 0.0, rule or "predict")
        names = _names(label_names, corpus, audited.weights.shape)
        terminal.say(_order_of_rows(names, label_names or rows))
    try:
        found = audit_corpus(
            audited, corpus, names, rule=rule, limit=limit, ranks=ranks, exact_radii=exact_radii, random_state=seed
        )
    except InvalidInput as error:
        if error.code != "needs_linear_layer" or error.name is None:
            raise
        option = f"--{error.name.replace('_', '-')}"
        raise click.UsageError(f"{option} needs a linear layer; a label tree has none") from None
    if as_json:
        print_json(found.to_dict(), indent=2)
    else:
        _show(found, examples)
    if exact_radii and found.found.smallest_radius() is None:
        terminal.say("--exact-radii found no radius: no linear program was needed to prove that a set has an input")
    if picture is not None:
        _draw(terminal, picture, found)
    if tagger is not None and card:
        from longtail.store import update_card

        update_card(str(model), of=tagger.fingerprint_, audit=audit_section(found, source(rows, "test")))
        terminal.say(f"wrote the result into the card of {model}")


def _rows(data: str, options: ReaderOptions) -> Corpus:
    """The corpus of an argument DATA, which must have labels for each row."""
    assigned = "an audit needs a file with the labels of each row, as `longtail assign` writes it"
    corpus = read(data, "test", options, grouped=assigned)
    if not corpus.n_rows:
        raise InvalidInput(f"{called(data)} has no rows, so there are no label sets to audit")
    return corpus


def _names(path: str | None, corpus: Corpus, shape: tuple[int, int]) -> list[str]:
    """The label of each row of bare weights."""
    from longtail.data import read_names

    names = list(corpus.label_names) if path is None else read_names(path)
    if len(names) != shape[0]:
        where, advice = ("the file of label sets", "; name the rows with --label-names") if path is None else (path, "")
        if len(names) == shape[1]:
            advice = f"; the weights have {counted(shape[1], 'column')}: if they are the wrong way round, save W.T"
        rows, labels = counted(shape[0], "row"), counted(len(names), "label")
        raise InvalidInput(f"the weights have {rows}, {where} has {labels}{advice}")
    return names


def _order_of_rows(names: Sequence[str], source: str) -> str:
    """Say which label each row of bare weights is taken for."""
    first = [printable(name) for name in names[:_LABELS_SHOWN]]
    last = [] if len(names) <= _LABELS_SHOWN else ["..."] * (len(names) > _LABELS_SHOWN + 1) + [printable(names[-1])]
    return f"the rows of the weights are, in the order of {source}: {', '.join([*first, *last])}"


def _show(audited: CorpusAudit, examples: int) -> None:
    from longtail.audit import UNARGMAXABLE
    from longtail.cli.tables import show, simple_table

    found, names = audited.found, audited.label_names
    n_rows = int(found.sets.rows.sum())
    of = f"{counted(len(found), 'different label set')} of {counted(n_rows, 'row')}"
    click.echo(f"{of}; {counted(found.n_labels, 'label')}")
    if found.layer is not None:
        click.echo(f"A label is given where {found.layer.description}.")
    for reason in found.reasons:
        click.echo(reason)
    if audited.unknown_rows:
        have = f"{counted(audited.unknown_rows, 'row')} {'has' if audited.unknown_rows == 1 else 'have'}"
        click.echo(f"{have} labels that the model does not know; it never gives these sets.")
    click.echo()
    if found.layer is None:
        never = found.count(UNARGMAXABLE)
        rows = counted(found.count_rows(UNARGMAXABLE), "row")
        click.echo(
            f"{never:,} of these sets, of {rows}, {'is' if never == 1 else 'are'} never given."
            if never
            else "There is no known reason why the tree should never give one of these sets."
        )
        _show_examples(found, names, examples)
        return
    columns = ["label sets", "sets", "share", "rows"]
    show(simple_table(columns, audited.verdict_rows(), right=columns[1:]))
    smallest = found.smallest_radius()
    if smallest is not None:
        bound = "" if found.radii_are_exact else "at least "
        click.echo(f"smallest radius of a set that some input gets: {bound}{smallest:.2g}")
    _show_examples(found, names, examples)
    if audited.ranks:
        click.echo()
        columns = ["rank", "no input gets", "not known", "smallest radius"]
        show(simple_table(columns, audited.rank_rows(), right=columns))
        lacking = [(rank, cut) for rank, cut in audited.ranks if cut.count(UNARGMAXABLE)]
        if lacking and not found.count(UNARGMAXABLE):
            rank, cut = lacking[-1]
            click.echo()
            click.echo(f"at rank {rank}:", nl=False)
            _show_examples(cut, names, examples)


def _show_examples(found: Audit, names: Sequence[str], most: int) -> None:
    for example in found.examples(names, most):
        click.echo()
        labels = ", ".join(printable(name) for name in example["labels"]) or "(no label)"
        click.echo(f"row {example['row']}: {labels}")
        click.echo(f"  {printable(example['says'])}")


def _draw(terminal: Terminal, path: str, found: CorpusAudit) -> None:
    from longtail.files import whole_file
    from longtail.pictures import Picture, draw

    panels = found.panels()
    if not panels:
        terminal.say("there are no radii to draw: no linear program was needed to prove that a set has an input")
        return
    with whole_file(Path(path), parents=True) as file:
        draw(Picture(path, "", [panels]), file)
    terminal.say(f"drew {path}")
