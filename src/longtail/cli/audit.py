"""`longtail audit`: find the label sets that a model can never predict, and the labels that conflict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from longtail.cli.cards import audit_section, now, source
from longtail.cli.inputs import STANDARD_INPUT, called, is_number, load_tagger, read
from longtail.cli.options import SEED, FiniteRange, flag_of, option, takes
from longtail.cli.outputs import check_out, check_picture, output, print_json
from longtail.cli.reading import ReaderOptions
from longtail.cli.report import PAGE_ENDINGS, REASONS, check_is_report
from longtail.cli.terminal import Terminal
from longtail.errors import InvalidInput
from longtail.files import check_ending
from longtail.printable import counted, printable

if TYPE_CHECKING:
    from longtail.audit import Audit, CorpusAudit
    from longtail.data import Corpus
    from longtail.estimator import Estimator, OutputLayer

_MODEL_ENDINGS = (".safetensors", ".onnx", ".npz", ".npy")  # of other programs
_LABELS_SHOWN = 5
_UP_TO = 2  # labels in a set, if nothing says which sets to audit


def _ranks(text: str) -> tuple[int, ...]:
    ranks = [rank.strip() for rank in text.split(",")]
    if not all(is_number(rank) and int(rank) > 0 for rank in ranks):
        raise click.BadParameter("expected ranks such as 5,10,20")
    return tuple(sorted({int(rank) for rank in ranks}))


@dataclass(frozen=True)
class LayerOptions:
    """Bare weights in place of a model of longtail, or where they are in the model of another program."""

    weights: str | None = option(metavar="W.npy", help="Audit this matrix of labels x features instead of MODEL.")
    bias: str | None = option(metavar="B.npy", help="With --weights: vector with the bias of each label.")
    threshold: float | None = option(
        type=FiniteRange(),
        help="With --weights or the model of another program: score above which a label is predicted.  [default: 0]",
    )
    labels_file: str | None = option("--labels", metavar="FILE", help="With --weights: file with the label sets.")
    label_names: str | None = option(
        metavar="FILE",
        help="With --weights or the model of another program: file with the label of each row, one per line.",
    )
    layer: str | None = option(
        metavar="NAME", help="With the model of another program: name of its last layer.  [default: found]"
    )


@dataclass(frozen=True)
class AuditOptions:
    """What to audit and how to show it."""

    rule: Literal["predict", "topk"] | None = option(
        type=click.Choice(["predict", "topk"]),
        help="Predict all labels above their thresholds, or the top k labels.  [default: predict]",
    )
    limit: int = option(
        type=click.IntRange(min=1), default=1000, show_default=True, help="Maximum number of label sets to audit."
    )
    up_to: int | None = option(
        type=click.IntRange(min=1), metavar="K", help="Without DATA: audit all sets of 1 to K labels, or a sample."
    )
    safe_size: bool = option(
        is_flag=True,
        default=False,
        help="Without DATA: find the largest K such that every set of 1 to K labels has an input.",
    )
    ranks: tuple[int, ...] | None = option(
        parse=_ranks, metavar="D,D,...", help="Also audit the layer truncated to these ranks."
    )
    widths: bool = option(
        is_flag=True,
        default=False,
        help="Also search for the width that the label sets need, with proofs: of this layer and of any layer.",
    )
    exact_radii: bool = option(is_flag=True, default=False, help="Compute the exact radius of every set; slower.")
    box: float = option(
        type=FiniteRange(min=0, min_open=True),
        default=1.0,
        show_default=True,
        metavar="B",
        help="Measure radii around inputs whose features are between -B and B.",
    )
    seen: str | None = option(
        metavar="FILE",
        help="Also measure radii around inputs in the range of these: rows like DATA for a ridge model, else a matrix "
        "X.npy of inputs of the layer.",
    )
    examples: int = option(type=click.IntRange(min=0), default=3, show_default=True, help="Number of examples to show.")
    seed: int = option(type=SEED, default=0, show_default=True, help="Random seed for the sample of label sets.")
    resume: str | None = option(
        metavar="FOLDER",
        help="Keep verdicts and their proofs in this folder as they are found. After an interruption, the same command "
        "continues from there.",
    )
    as_json: bool = option(
        "--json", is_flag=True, default=False, help="Print JSON, with every set that can never be predicted."
    )
    picture: str | None = option(metavar="FILE.png", help="Also draw the radii and, with --ranks, the shares by rank.")
    report: str | None = option(metavar="FILE.html", help="Also write a page with examples and pictures.")
    card: bool = option(is_flag=True, default=False, help="Also write the result into the card of MODEL.")


@click.command()
@click.argument("model", required=False)
@click.argument("data", required=False)
@takes(layer=LayerOptions, options=AuditOptions, reader=ReaderOptions)
@click.pass_obj
def command(
    terminal: Terminal,
    /,
    model: str | None,
    data: str | None,
    layer: LayerOptions,
    options: AuditOptions,
    reader: ReaderOptions,
) -> None:
    """Find label sets of DATA that MODEL can never predict, whatever its input.

    A linear model with fewer dimensions than labels has such sets. For each of them, the output names labels that
    conflict: the model cannot predict some of them without one of the others. DATA is as for `longtail evaluate`.

    Without DATA, the label sets are those of the training rows that an updatable model keeps, or else all of up to 2
    labels.

    MODEL may also be a model of another program: a folder of Hugging Face, or a .safetensors, .onnx, .npz or .npy file.
    """
    from longtail.audit import audit_corpus, read_inputs, read_layer, read_model
    from longtail.cli.label_set_sizes import audit_by_size, training_corpus
    from longtail.data import read_names
    from longtail.estimator import OutputLayer

    foreign = model is not None and _is_foreign(model)
    _check(model, data, layer, options, foreign)
    rows = data if layer.weights is None else layer.labels_file
    if options.picture is not None:
        check_picture(options.picture, str(rows))
    if options.report is not None:
        check_ending(options.report, PAGE_ENDINGS, "pages are written", reasons=REASONS)
        check_out(options.report, str(model or layer.weights), rows)
        check_is_report(options.report)
    if options.card or options.picture is not None or options.report is not None:
        terminal.outlive_reader()
    tagger = None
    audited: Estimator | OutputLayer
    if foreign:
        n_labels = None if layer.label_names is None else len(read_names(layer.label_names))
        audited = read_model(
            str(model), layer=layer.layer, n_labels=n_labels, rule=options.rule, threshold=layer.threshold
        )
    elif layer.weights is None:
        tagger = load_tagger(str(model))
        audited = tagger.estimator_
    else:
        audited = read_layer(layer.weights, layer.bias, layer.threshold or 0.0, options.rule or "predict")
    corpus = None if rows is None else _rows(rows, reader)
    if isinstance(audited, OutputLayer):
        names = _names(layer.label_names, corpus, audited)
        if (audited.label_names is None or layer.label_names is not None) and (rows or layer.label_names):
            terminal.say(_order_of_rows(names, str(layer.label_names or rows)))
    else:
        names = list(tagger.label_names_) if tagger is not None else []
    seen = None
    if options.seen is not None and options.seen.endswith(".npy"):
        seen = read_inputs(options.seen)
    elif options.seen is not None:
        if tagger is None or not tagger.estimator_.is_linear:
            raise click.UsageError("--seen needs a matrix X.npy, because only ridge models have features as inputs")
        seen = tagger.align(_rows(options.seen, reader)).features
    if corpus is None and tagger is not None and options.up_to is None and not options.safe_size:
        corpus = training_corpus(tagger)
        if corpus is not None:
            terminal.say(f"auditing the label sets of the {counted(corpus.n_rows, 'row')} that the model keeps")
    if corpus is None:
        if options.widths:
            raise click.UsageError("--widths needs DATA, the file with the label sets to audit")
        found_layer = audited if isinstance(audited, OutputLayer) else audited.output_layer(options.rule or "predict")
        settings = {
            "limit": options.limit,
            "exact_radii": options.exact_radii,
            "box": options.box,
            "seen": seen,
            "random_state": options.seed,
            "resume": options.resume,
        }
        size = None if options.safe_size else options.up_to or _UP_TO
        audit_by_size(found_layer, names, size, options.as_json, options.examples, settings)
        return
    try:
        found = audit_corpus(
            audited,
            corpus,
            names,
            rule=options.rule,
            limit=options.limit,
            ranks=options.ranks or (),
            widths=options.widths,
            exact_radii=options.exact_radii,
            box=options.box,
            seen=seen,
            random_state=options.seed,
            resume=options.resume,
        )
    except InvalidInput as error:
        if error.code != "needs_linear_layer" or error.name is None:
            raise
        flag = flag_of(AuditOptions, error.name)
        raise click.UsageError(f"{flag} needs a linear layer; a label tree has none") from None
    if options.as_json:
        print_json(found.to_dict(), indent=2)
    else:
        _show(found, options.examples)
    if options.picture is not None:
        _draw(terminal, options.picture, found)
    if options.report is not None:
        _write_report(terminal, options.report, found, str(model or layer.weights), str(rows))
    if tagger is not None and options.card:
        from longtail.store import update_card

        update_card(str(model), of=tagger.fingerprint_, audit=audit_section(found, source(str(rows), "test")))
        terminal.say(f"wrote the result into the card of {model}")


def _is_foreign(model: str) -> bool:
    """Whether a path is the model of another program: a file, or a folder without the manifest of longtail."""
    path = Path(model)
    is_file = path.is_file() or (not path.exists() and path.suffix in _MODEL_ENDINGS)
    return is_file or (path.is_dir() and not (path / "manifest.json").exists() and any(path.iterdir()))


def _check(model: str | None, data: str | None, layer: LayerOptions, options: AuditOptions, foreign: bool) -> None:
    """Refuse options that contradict each other."""
    if (layer.weights is None) == (model is None) or (layer.weights is None and layer.labels_file is not None):
        raise click.UsageError("give MODEL and DATA, or --weights and --labels")
    by_size = options.up_to is not None or options.safe_size
    if by_size and (data is not None or layer.labels_file is not None):
        raise click.UsageError("--up-to and --safe-size audit label sets by their size, so leave out DATA and --labels")
    if options.up_to is not None and options.safe_size:
        raise click.UsageError("give --up-to or --safe-size")
    if (
        data is None
        and layer.labels_file is None
        and (options.card or options.picture or options.report or options.ranks)
    ):
        raise click.UsageError(
            "--card, --picture, --report and --ranks need DATA, the file with the label sets to audit"
        )
    if layer.weights is None:
        if foreign and layer.bias is not None:
            raise click.UsageError("--bias goes with --weights")
        if not foreign and layer != LayerOptions():
            raise click.UsageError(
                "--bias, --threshold, --label-names and --layer go with --weights or the model of another program"
            )
    if foreign and options.card:
        raise click.UsageError("--card writes into the card of a model of longtail")
    if layer.weights is not None and layer.layer is not None:
        raise click.UsageError("--layer goes with the model of another program")
    if layer.weights is not None and options.card:
        raise click.UsageError("--card writes into the card of MODEL, but --weights has no card")
    if layer.threshold is not None and options.rule == "topk":
        raise click.UsageError("--threshold goes with --rule predict; a ranking has no threshold")


def _rows(data: str, options: ReaderOptions) -> Corpus:
    """The corpus of an argument DATA, which must have labels for each row."""
    assigned = "an audit needs a file with the labels of each row, as `longtail assign` writes it"
    corpus = read(data, "test", options, grouped=assigned)
    if not corpus.n_rows:
        raise InvalidInput(f"{called(data)} has no rows, so there are no label sets to audit")
    return corpus


def _names(path: str | None, corpus: Corpus | None, layer: OutputLayer) -> list[str]:
    """The label of each row of the weights: by a file, by the model, or in the order of the label sets."""
    from longtail.data import read_names

    shape = layer.weights.shape
    if path is None and layer.label_names is not None:
        return list(layer.label_names)
    if path is None and corpus is None:
        return [f"label {label}" for label in range(shape[0])]
    names = list(corpus.label_names) if corpus is not None and path is None else read_names(str(path))
    if len(names) != shape[0]:
        where, advice = ("the file of label sets", "; name the rows with --label-names") if path is None else (path, "")
        if len(names) == shape[1]:
            advice = f"; the weights have {counted(shape[1], 'column')}: if the matrix is transposed, save W.T"
        rows, labels = counted(shape[0], "row"), counted(len(names), "label")
        raise InvalidInput(f"the weights have {rows}, {where} has {labels}{advice}")
    return names


def _order_of_rows(names: Sequence[str], source: str) -> str:
    """Say which label each row of bare weights is taken for."""
    first = [printable(name) for name in names[:_LABELS_SHOWN]]
    last = [] if len(names) <= _LABELS_SHOWN else ["..."] * (len(names) > _LABELS_SHOWN + 1) + [printable(names[-1])]
    return f"the rows of the weights belong to these labels, in the order of {source}: {', '.join([*first, *last])}"


def _show(audited: CorpusAudit, examples: int) -> None:
    from longtail.audit import UNARGMAXABLE
    from longtail.cli.tables import show, simple_table

    found, names = audited.found, audited.label_names
    n_rows = int(found.sets.rows.sum())
    of = f"{counted(len(found), 'different label set')} of {counted(n_rows, 'row')}"
    click.echo(f"{of}; {counted(found.n_labels, 'label')}")
    if found.layer is not None:
        click.echo(f"A label is predicted if {found.layer.description}.")
    for reason in found.reasons:
        click.echo(reason)
    if audited.unknown_rows:
        have = f"{counted(audited.unknown_rows, 'row')} {'has' if audited.unknown_rows == 1 else 'have'}"
        click.echo(f"{have} labels that the model does not know; it can never predict their label sets.")
    click.echo()
    if found.layer is None:
        never = found.count(UNARGMAXABLE)
        rows = counted(found.count_rows(UNARGMAXABLE), "row")
        click.echo(
            f"The tree can never predict {never:,} of these sets, found in {rows}."
            if never
            else "As far as we know, the tree can predict all of these sets."
        )
        _show_examples(found, names, examples)
        return
    columns = ["label sets", "sets", "share", "rows"]
    show(simple_table(columns, audited.verdict_rows(), right=columns[1:]))
    _show_radii(found)
    _show_examples(found, names, examples)
    needed = [each.to_text() for each in (audited.truncation, audited.width) if each is not None]
    if needed:
        click.echo("\n" + "\n".join(needed))
    _show_remedies(found)
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


def _show_radii(found: Audit) -> None:
    """The smallest radius for inputs of the fixed box, and for those in the range seen in data."""
    assert found.room is not None
    half_width = found.room.box.half_widths.max(initial=0)
    for seen, where in ((False, f"between {-half_width:g} and {half_width:g}"), (True, "in the range of the data")):
        smallest = found.smallest_radius(seen=seen)
        if smallest is not None:
            bound = "" if found.are_exact(seen=seen) else "at least "
            click.echo(f"smallest radius of a set that some input gets: {bound}{smallest:.2g} (inputs {where})")


def _show_examples(found: Audit, names: Sequence[str], most: int) -> None:
    for example in found.examples(names, most):
        click.echo()
        labels = ", ".join(printable(name) for name in example["labels"]) or "(no label)"
        click.echo(f"row {example['row']}: {labels}")
        click.echo(f"  {printable(example['says'])}")


def _write_report(terminal: Terminal, path: str, found: CorpusAudit, model: str, rows: str) -> None:
    from longtail.report import DataHeading, render_audit

    names = [each if each == STANDARD_INPUT else Path(each).absolute().name for each in (model, rows)]
    page = render_audit(found, DataHeading(names[1], now()), names[0])
    with output(path) as write:
        write(page.encode("utf-8"))
    terminal.say(f"wrote {path}; open it in a browser")


def _show_remedies(found: Audit) -> None:
    from longtail.audit import lines_of

    lines = lines_of(found.remedies())
    if lines:
        click.echo("\nWhat would help:")
    for line in lines:
        click.echo(f"- {line}")


def _draw(terminal: Terminal, path: str, found: CorpusAudit) -> None:
    from longtail.files import whole_file
    from longtail.pictures import Picture, draw

    panels = found.panels()
    if not panels:
        terminal.say("there are no radii to draw: no set that can be predicted has a positive one")
        return
    with whole_file(Path(path), parents=True) as file:
        draw(Picture(path, "", [panels]), file)
    terminal.say(f"drew {path}")
