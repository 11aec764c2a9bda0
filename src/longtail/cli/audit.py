"""`longtail audit`: the label sets that a model can never give, whatever the input, and the labels that conflict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from longtail.cli.audit_report import Unknown, draw, show_layer, show_tree
from longtail.cli.cards import audit_section, source
from longtail.cli.inputs import SEED, FiniteRange, ReaderOptions, called, is_number, load_tagger, read, reader_options
from longtail.cli.outputs import check_picture, print_json
from longtail.cli.terminal import Terminal, counted
from longtail.errors import DataFormatError, InvalidInput
from longtail.printable import printable

if TYPE_CHECKING:
    from longtail.audit import Findings, LabelSets, OutputLayer
    from longtail.data import Corpus


_NPY = b"\x93NUMPY"
_NPZ = b"PK"
_LABELS_TOLD = 5


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
@click.option("--weights", metavar="W.npy", help="A matrix of labels x features, instead of MODEL.")
@click.option("--bias", metavar="B.npy", help="With --weights: what is added to the score of each label.")
@click.option(
    "--threshold", type=FiniteRange(), default=0.0, show_default=True, help="With --weights: the score to exceed."
)
@click.option("--labels", "labels_file", metavar="FILE", help="With --weights: the file of the label sets.")
@click.option("--label-names", metavar="FILE", help="With --weights: the name of each row, one per line.")
@click.option(
    "--rule",
    type=click.Choice(["predict", "topk"]),
    default="predict",
    show_default=True,
    help="Sets as labels over their thresholds, or as the labels in the first places.",
)
@click.option("--limit", type=click.IntRange(min=1), default=1000, show_default=True, help="Label sets to look at.")
@click.option("--ranks", callback=_read_ranks, metavar="D,D,...", help="Also audit the layer cut down to these ranks.")
@click.option("--exact-radii", is_flag=True, help="Find the largest radius of every set; takes longer.")
@click.option("--examples", type=click.IntRange(min=0), default=3, show_default=True, help="Examples to show.")
@click.option("--seed", type=SEED, default=0, show_default=True, help="For the sets to look at.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with every set that no input gets.")
@click.option("--picture", metavar="FILE.png", help="Also draw radii and, with --ranks, the share that no input gets.")
@click.option("--card", "keep", is_flag=True, help="Also write what was found into the card of MODEL.")
@reader_options
@click.pass_obj
def command(
    terminal: Terminal,
    /,
    model: str | None,
    data: str | None,
    weights: str | None,
    bias: str | None,
    threshold: float,
    labels_file: str | None,
    label_names: str | None,
    rule: Any,
    limit: int,
    ranks: tuple[int, ...],
    exact_radii: bool,
    examples: int,
    seed: int,
    as_json: bool,
    picture: str | None,
    keep: bool,
    **given: Any,
) -> None:
    """Find the label sets of DATA that MODEL can never give, whatever its input.

    A linear model with fewer dimensions than labels has such sets. Every one found comes with labels that conflict: no
    input can have some of them without one of the others. DATA is as for `longtail evaluate`.
    """
    from longtail.audit import audit_layer, audit_tree, output_layer

    asked = _asked("threshold", "rule")
    if (weights is None) == (model is None) or (weights is None) != (labels_file is None):
        raise click.UsageError("give MODEL and DATA, or --weights and --labels")
    if weights is None and data is None:
        raise click.UsageError("give the DATA whose label sets to look at")
    if weights is not None and keep:
        raise click.UsageError("--card writes into the card of MODEL; bare weights have none")
    if picture is not None:
        check_picture(picture, data if weights is None else labels_file)
    options = ReaderOptions(**given)
    layer: OutputLayer | None
    if weights is not None:
        if "threshold" in asked and rule == "topk":
            raise click.UsageError("--threshold goes with --rule predict; a ranking has no threshold")
        corpus = _rows(str(labels_file), options)
        layer = _layer(weights, bias, threshold, rule)
        names = _names(label_names, corpus, layer.weights.shape)
        terminal.say(_told_order(names, label_names or str(labels_file)))
        estimator: Any = None
    else:
        if bias is not None or "threshold" in asked or label_names is not None:
            raise click.UsageError("--bias, --threshold and --label-names go with --weights")
        tagger = load_tagger(str(model))
        estimator, names = tagger.estimator_, list(tagger.label_names_)
        layer = None if _is_tree(estimator) else output_layer(estimator, rule)
        if layer is None:
            _check_tree(ranks, exact_radii, "rule" in asked)
        corpus = _rows(str(data), options)
    if layer is not None and ranks:
        _check_ranks(layer, ranks)
    sets, unknown = _label_sets(corpus, names, limit, seed)
    if layer is None:
        found = audit_tree(estimator, sets)
    else:
        found = audit_layer(layer, sets, exact_radii=exact_radii, random_state=seed)
    sweep = [] if layer is None else _sweep(layer, sets, ranks, exact_radii, seed)
    if as_json:
        facts = {**found.to_dict(names), "rows_with_unknown_labels": unknown.rows}
        facts["label_sets_with_unknown_labels"] = unknown.sets
        facts["ranks"] = [{"rank": rank, **cut.to_dict(names, 0)} for rank, cut in sweep]
        print_json(facts, indent=2)
    elif layer is None:
        show_tree(found, names, unknown, examples)
    else:
        show_layer(found, names, unknown, examples, layer.description, sweep)
    if exact_radii and found.smallest_radius() is None:
        terminal.say("--exact-radii found no set with a radius: none was proved to have an input by a linear program")
    if picture is not None:
        drew = draw(picture, found, sweep)
        terminal.say(
            f"drew {picture}"
            if drew
            else "there are no radii to draw: no set was proved to have an input by a linear program"
        )
    if keep:
        from longtail.store import update_card

        section = audit_section(found, names, source(str(data), "test"), unknown.rows)
        update_card(str(model), of=tagger.fingerprint_, audit=section)
        terminal.say(f"wrote what was found into the card of {model}")


def _asked(*names: str) -> set[str]:
    """The options that were given, whatever their values."""
    ctx = click.get_current_context()
    return {name for name in names if ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE}


def _check_tree(ranks: Sequence[int], exact_radii: bool, rule: bool) -> None:
    """Refuse what means nothing for a label tree."""
    for given, what in (
        (ranks, "--ranks cuts down a linear layer"),
        (exact_radii, "--exact-radii measures sets of a linear layer"),
        (rule, "--rule says how a linear layer is read"),
    ):
        if given:
            raise click.UsageError(f"{what}; a label tree has none")


def _check_ranks(layer: OutputLayer, ranks: Sequence[int]) -> None:
    largest = min(layer.n_labels, layer.n_features)
    if ranks[-1] > largest:
        raise click.UsageError(
            f"--ranks has {ranks[-1]}, but {layer.n_labels:,} labels over {layer.n_features:,} features have a rank of "
            f"at most {largest:,}"
        )


def _rows(data: str, options: ReaderOptions) -> Corpus:
    """The rows of an argument DATA, whose labels are their own."""
    from longtail.data import format_of, holds_groups

    if (options.format or format_of(data)) == "jsonl" and Path(data).is_file() and holds_groups(data):
        raise InvalidInput(
            f"{data} has labels of groups of texts; an audit looks at the label sets of rows, so give a file with the "
            f"labels of each text (`longtail assign` writes one)"
        )
    corpus = read(data, "test", options, grouped="an audit looks at the label sets of rows, so give a file of these")
    if not corpus.n_rows:
        raise InvalidInput(f"{called(data)} has no rows; an audit looks at the label sets of rows")
    return corpus


def _is_tree(estimator: Any) -> bool:
    from longtail.trees import LabelTree

    return isinstance(estimator, LabelTree)


def _layer(weights: str, bias: str | None, threshold: float, rule: Any) -> OutputLayer:
    import numpy as np

    from longtail.audit import OutputLayer

    W = _array(weights)
    if W.ndim != 2 or 0 in W.shape:
        raise DataFormatError(weights, None, f"an array of shape {W.shape}; expected a matrix of labels x features")
    offsets = np.zeros(len(W)) if bias is None else _array(bias)
    if offsets.shape != (len(W),):
        turned = offsets.shape == (W.shape[1],)
        hint = f"; are the weights, of shape {W.shape}, the wrong way round? Then save W.T" if turned else ""
        raise DataFormatError(str(bias), None, f"an array of shape {offsets.shape}; expected {len(W)} numbers{hint}")
    description = f"its score is above {threshold:g}" if rule == "predict" else "its score is among the highest"
    return OutputLayer(W, offsets - threshold if rule == "predict" else offsets, rule, description)


def _array(path: str) -> Any:
    import numpy as np

    from longtail.data.formats.npy_headers import read_header
    from longtail.memory import MemoryPlan

    expected = "expected an array of numbers as numpy.save writes it"
    try:
        with open(path, "rb") as file:
            start = file.read(len(_NPY))
            if start != _NPY:
                found = (
                    "an empty file" if not start else "an .npz archive" if start.startswith(_NPZ) else "no .npy file"
                )
                raise DataFormatError(path, None, f"{found}; {expected}")
            file.seek(0)
            read_header(file, path, expected)
    except OSError as error:
        raise DataFormatError(path, None, f"cannot be opened: {error.strerror or error}") from None
    try:
        # Mapped, so that a header that promises more than there is cannot make anything be allocated.
        stored = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OverflowError) as error:
        raise DataFormatError(path, None, f"{expected}: {str(error).partition(chr(10))[0]}") from None
    if stored.dtype.kind not in "iuf":
        raise DataFormatError(path, None, f"an array of dtype {stored.dtype}; expected real numbers")
    MemoryPlan("reading an array", {str(path): 16 * stored.size}, "Give a smaller matrix.").check()
    with np.errstate(over="ignore"):
        array = np.array(stored, dtype=np.float64, order="C")
    if not np.isfinite(array).all():
        raise DataFormatError(path, None, "the array contains NaN or infinity")
    return array


def _names(path: str | None, corpus: Corpus, shape: tuple[int, int]) -> list[str]:
    """What to call each row of bare weights."""
    from longtail.data.streams import read_names

    names = list(corpus.label_names) if path is None else read_names(path)
    if len(names) != shape[0]:
        where, advice = ("the file of label sets", "; name the rows with --label-names") if path is None else (path, "")
        if len(names) == shape[1]:
            advice = f"; they have {counted(shape[1], 'column')}: are they the wrong way round? Then save W.T"
        rows, labels = counted(shape[0], "row"), counted(len(names), "label")
        raise InvalidInput(f"the weights have {rows}, {where} has {labels}{advice}")
    return names


def _told_order(names: Sequence[str], source: str) -> str:
    """Which label each row of bare weights is taken for."""
    first = [printable(name) for name in names[:_LABELS_TOLD]]
    last = [] if len(names) <= _LABELS_TOLD else ["..."] * (len(names) > _LABELS_TOLD + 1) + [printable(names[-1])]
    return f"the rows of the weights are, in the order of {source}: {', '.join([*first, *last])}"


def _label_sets(corpus: Corpus, names: Sequence[str], limit: int, seed: int) -> tuple[LabelSets, Unknown]:
    """Different label sets of the rows whose labels are all known, and what has other labels too."""
    import numpy as np

    from longtail.audit import LabelSets

    labels = corpus.with_label_names(names).labels
    known = np.flatnonzero(np.diff(labels.indptr) == np.diff(corpus.labels.indptr))
    if not len(known):
        raise InvalidInput("no row has only labels that the model knows; there is no label set to look at")
    sets = LabelSets.of(labels[known], limit, seed)
    others = np.setdiff1d(np.arange(corpus.n_rows), known, assume_unique=True)
    unknown = Unknown(len(LabelSets.of(corpus.labels[others])), len(others))
    return replace(sets, first_row=known[sets.first_row]), unknown


def _sweep(
    layer: OutputLayer, sets: LabelSets, ranks: Sequence[int], exact_radii: bool, seed: int
) -> list[tuple[int, Findings]]:
    from longtail.audit import audit_layer
    from longtail.progress import stage

    if not ranks:
        return []
    truncate = layer.truncations(ranks[-1])
    found = []
    for rank in ranks:
        cut = replace(layer, weights=truncate(rank))
        with stage(f"rank {rank}"):
            found.append((rank, audit_layer(cut, sets, exact_radii=exact_radii, random_state=seed)))
    return found
