"""`longtail select`: labels in, a few that stand for all out, with what each explains and how much they cover."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from longtail.cli.features import check_feature_options, feature_options, make_features
from longtail.cli.inputs import SEED, FiniteRange, ReaderOptions, called, read, reader_options
from longtail.cli.outputs import check_out, check_picture, out_option, output
from longtail.cli.terminal import Terminal, counted
from longtail.errors import InvalidInput
from longtail.printable import json_text, printable

if TYPE_CHECKING:
    from longtail.data import Corpus
    from longtail.subset import LabelSubset

_AFFINITIES = ("co-occurrence", "conditional", "self-representation")
_CRITERIA = ("predictable cut", "penalised cut", "cut", "score", "frequency", "random", "leverage")
_NEED_FEATURES = ("predictable cut", "score")
_COUNT = 100
_WEIGHT = FiniteRange(min=0, max=1_000_000_000)
_DECIMALS = 6


class Chosen(NamedTuple):
    """A chosen label as it is told; `predictability` is None where the features were not looked at."""

    label: str
    rows: int
    predictability: float | None
    gain: float
    coverage: float
    explains: list[tuple[str, float]]


@click.command()
@click.argument("data")
@click.option("-n", "--n-labels", type=click.IntRange(min=1), help=f"Labels to choose.  [default: {_COUNT}, or all]")
@click.option(
    "--criterion",
    type=click.Choice(_CRITERIA),
    help="What to choose by.  [default: predictable-cut; penalised-cut with --labels-only]",
)
@click.option(
    "--affinity",
    type=click.Choice(_AFFINITIES),
    default=_AFFINITIES[0],
    show_default=True,
    help="How to tell how much labels explain each other.",
)
@click.option("--penalty", type=_WEIGHT, default=0.1, show_default=True, help="On labels that explain each other.")
@click.option("--score-weight", type=_WEIGHT, help="Of predictability.  [default: equal say]")
@click.option("--labels-only", is_flag=True, help="Do not look at texts or features.")
@click.option(
    "--explained", type=click.IntRange(min=0), default=3, show_default=True, help="Labels to name that each explains."
)
@out_option("Write to FILE, .json or .tsv, which appears when it is complete.")
@click.option("--picture", metavar="FILE.png", help="Also draw how much is covered after each choice.")
@reader_options
@feature_options
@click.option("--seed", type=SEED, default=0, show_default=True, help="Of random and leverage.")
@click.option("--jobs", type=int, help="Threads.  [default: every core]")
@click.pass_obj
def command(terminal: Terminal, /, **given: Any) -> None:
    """Choose a few labels of DATA that stand for all of them.

    DATA is as for `longtail train`. Labels come out in the order of choice, with their number of rows, how well they
    can be predicted (leave-one-out R2 of ridge), how much of all labels is covered so far, and the labels that each
    explains best.

    \b
    Criteria:
      predictable-cut  explain many others, not each other, and can be predicted
      penalised-cut    the same without a look at the features
      cut              explain many others
      score            can be predicted
      frequency        have the most rows
      random           any
      leverage         drawn by their leverage scores
    """
    criterion = given["criterion"] or ("penalised cut" if given["labels_only"] else "predictable cut")
    asked = f"--criterion {criterion.replace(' ', '-')}"
    if given["labels_only"] and criterion in _NEED_FEATURES:
        raise click.UsageError(f"{asked} looks at the features, which --labels-only forbids")
    if given["score_weight"] is not None and criterion != "predictable cut":
        raise click.UsageError("--score-weight goes with --criterion predictable-cut")
    wrote = _check_files(given)
    options = ReaderOptions(*(given[name] for name in ReaderOptions.__dataclass_fields__))
    corpus = read(given["data"], "train", options)
    check_feature_options(given, corpus)
    count = _count(given, corpus)
    sizes = f"{counted(corpus.n_rows, 'row')}, {counted(corpus.n_labels, 'label')}"
    terminal.say(f"{called(given['data'])}: {sizes}")
    if criterion in _NEED_FEATURES and not _has_features(corpus):
        if given["criterion"] is not None:
            raise InvalidInput(f"{asked} needs texts or features, and {called(given['data'])} has none")
        terminal.say("there are no texts or features to predict labels from: choosing by penalised cut")
        criterion = "penalised cut"
    scores = _scores(given, corpus, terminal) if criterion in _NEED_FEATURES else None
    found, usual, weights = _select(given, corpus, criterion, count, scores)
    chosen = _described(corpus, found, scores, weights, given["explained"])
    if given["out"] is None:
        _show(chosen)
    else:
        _write(given["out"], chosen, found, criterion, given["affinity"], corpus)
        terminal.say(f"{wrote} {given['out']}: {counted(len(chosen), 'label')}")
    if given["picture"] is not None:
        _draw(given["picture"], found, usual, criterion)
        terminal.say(f"drew {given['picture']}")
    terminal.say(_summary(found, corpus, criterion))


def _check_files(given: dict[str, Any]) -> str:
    """Refuse before the work what could not be written after it, and say whether a file is going to be replaced."""
    out = given["out"]
    wrote = check_out(out, given["data"])
    if out is not None and Path(out).suffix.lower() not in (".json", ".tsv"):
        raise InvalidInput(f"chosen labels are written as .json or .tsv; {out} is neither")
    if given["picture"] is not None:
        check_picture(given["picture"], given["data"])
    return wrote


def _count(given: dict[str, Any], corpus: Corpus) -> int:
    if not corpus.n_labels:
        raise InvalidInput(f"{called(given['data'])} has {counted(corpus.n_rows, 'row')} and no labels to choose from")
    if given["n_labels"] is None:
        return min(_COUNT, corpus.n_labels)
    if given["n_labels"] > corpus.n_labels:
        raise InvalidInput(
            f"--n-labels is {given['n_labels']}, but {given['data']} has only {corpus.n_labels} labels; choose at most "
            f"as many"
        )
    return int(given["n_labels"])


def _has_features(corpus: Corpus) -> bool:
    if corpus.texts is not None:
        return any(text.strip() for text in corpus.texts)
    return bool(corpus.features.nnz)


def _scores(given: dict[str, Any], corpus: Corpus, terminal: Terminal) -> Any:
    from longtail.ridge import label_predictability

    _, X = make_features(given, corpus, terminal)
    return label_predictability(X, corpus.labels, n_jobs=given["jobs"], random_state=given["seed"])


def _select(
    given: dict[str, Any], corpus: Corpus, criterion: str, count: int, scores: Any
) -> tuple[LabelSubset, LabelSubset, Any]:
    """The choice, that of the most frequent labels to compare with, and how much labels explain each other."""
    from longtail.subset import select_labels
    from longtail.subset.affinity import label_affinity

    affinity = label_affinity(corpus.labels, given["affinity"], n_jobs=given["jobs"])
    found = select_labels(
        corpus.labels,
        count,
        criterion=criterion,
        affinity=affinity,
        penalty=given["penalty"],
        scores=scores,
        score_weight=given["score_weight"],
        random_state=given["seed"],
    )
    usual = select_labels(corpus.labels, count, criterion="frequency", affinity=affinity)
    return found, usual, affinity.weights


def _described(corpus: Corpus, found: LabelSubset, scores: Any, weights: Any, explained: int) -> list[Chosen]:
    import numpy as np
    from scipy import sparse

    columns = sparse.csc_array(weights)
    counts = corpus.label_counts
    chosen = []
    for place, label in enumerate(found.labels.tolist()):
        part = slice(columns.indptr[label], columns.indptr[label + 1])
        best = np.lexsort((columns.indices[part], -columns.data[part]))[:explained]
        others, shares = columns.indices[part][best].tolist(), columns.data[part][best].tolist()
        chosen.append(
            Chosen(
                corpus.label_names[label],
                int(counts[label]),
                None if scores is None else float(scores[label]),
                float(found.gains[place]),
                float(found.coverage[place]),
                [(corpus.label_names[other], share) for other, share in zip(others, shares, strict=True)],
            )
        )
    return chosen


def _show(chosen: list[Chosen]) -> None:
    from longtail.cli.tables import show, simple_table

    scored = chosen[0].predictability is not None
    columns = ["", "label", "rows", *(["R2"] if scored else []), "covered", "explains"]
    rows = []
    for place, each in enumerate(chosen, start=1):
        explains = ", ".join(f"{printable(name)} {weight:.2f}" for name, weight in each.explains)
        cells = [str(place), printable(each.label), f"{each.rows:,}"]
        cells += [f"{each.predictability:.2f}"] if scored else []
        rows.append([*cells, f"{100 * each.coverage:.1f}%", explains or "-"])
    show(simple_table(columns, rows, right=["", "rows", "R2", "covered"]))


def _write(out: str, chosen: list[Chosen], found: LabelSubset, criterion: str, affinity: str, corpus: Corpus) -> None:
    with output(out) as write:
        if Path(out).suffix.lower() == ".json":
            facts = {
                "criterion": criterion,
                "affinity": affinity,
                "rows": corpus.n_rows,
                "all_labels": corpus.n_labels,
                "value": round(found.value, _DECIMALS),
                "guarantee": round(found.guarantee, _DECIMALS),
                "labels": [_record(each) for each in chosen],
            }
            write(json_text(facts, indent=2).encode() + b"\n")
            return
        write(b"label\trows\tpredictability\tgain\tcoverage\texplains\n")
        for each in chosen:
            score = "" if each.predictability is None else f"{each.predictability:g}"
            names = json_text([name for name, _ in each.explains])
            numbers = f"{each.rows}\t{score}\t{each.gain:.{_DECIMALS}g}\t{each.coverage:.{_DECIMALS}f}"
            write(f"{printable(each.label)}\t{numbers}\t{names}\n".encode())


def _record(each: Chosen) -> dict[str, Any]:
    return {
        **each._asdict(),
        "gain": round(each.gain, _DECIMALS),
        "coverage": round(each.coverage, _DECIMALS),
        "explains": [{"label": name, "weight": round(weight, _DECIMALS)} for name, weight in each.explains],
    }


def _draw(path: str, found: LabelSubset, usual: LabelSubset, criterion: str) -> None:
    from longtail.files import whole_file
    from longtail.pictures import Line, Panel, Picture, draw

    lines = [Line(criterion, range(1, len(found) + 1), (100 * found.coverage).tolist(), marked=len(found) == 1)]
    if criterion != "frequency":
        compared = (100 * usual.coverage).tolist()
        lines.append(Line("frequency", range(1, len(usual) + 1), compared, 6, "dashed", len(usual) == 1))
    panel = Panel("Labels that stand for all", "labels chosen", "percent of all labels covered", lines)
    with whole_file(Path(path), parents=True) as file:
        draw(Picture(path, "", [[panel]]), file)


def _summary(found: LabelSubset, corpus: Corpus, criterion: str) -> str:
    covered = f"they cover {100 * found.coverage[-1]:.1f} %"
    told = f"chose {len(found):,} of {corpus.n_labels:,} labels by {criterion}; {covered}"
    if not found.guarantee:
        return f"{told} of all, and are not proved to be near the best choice of as many"
    measure = "penalised cut" if criterion in ("frequency", "random", "leverage") else criterion
    # Rounded down: what is told is proved.
    share = math.floor(1000 * found.guarantee) / 10
    return f"{told} of all, and {share:g} % of the best {measure} of as many labels are proved to be reached"
