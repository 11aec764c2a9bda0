"""`longtail select`: reads rows with labels, writes a few labels that represent all."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from longtail.cli.features import FeatureFlags
from longtail.cli.inputs import called, read
from longtail.cli.options import SEED, FiniteRange, option, takes
from longtail.cli.outputs import check_out, check_picture, out_field, output
from longtail.cli.reading import ReaderOptions
from longtail.cli.terminal import Terminal
from longtail.files import check_ending
from longtail.printable import counted, json_text, printable

if TYPE_CHECKING:
    from longtail.subset import CorpusSelection, SelectedLabel

_AFFINITIES = ("co-occurrence", "conditional", "self-representation")
_CRITERIA = ("predictable cut", "penalised cut", "cut", "score", "frequency", "random", "leverage")
_NEED_FEATURES = ("predictable cut", "score")
_WEIGHT = FiniteRange(min=0, max=1_000_000_000)
_DECIMALS = 6


@dataclass(frozen=True)
class SelectOptions:
    """Which labels to select."""

    out: str | None = out_field("Write to FILE (.json or .tsv) instead of standard output.")
    n_labels: int | None = option(
        "-n", "--n-labels", type=click.IntRange(min=1), help="Number of labels to select.  [default: 100, or all]"
    )
    criterion: str | None = option(
        type=click.Choice(_CRITERIA),
        help="Selection criterion.  [default: predictable-cut; penalised-cut with --labels-only]",
    )
    affinity: str = option(
        type=click.Choice(_AFFINITIES),
        default=_AFFINITIES[0],
        show_default=True,
        help="How to measure how much labels explain each other.",
    )
    penalty: float = option(
        type=_WEIGHT, default=0.1, show_default=True, help="Penalty for labels that explain each other."
    )
    score_weight: float | None = option(
        type=_WEIGHT, help="Weight of predictability.  [default: balanced with the affinity]"
    )
    labels_only: bool = option(is_flag=True, default=False, help="Ignore texts and features.")
    explained: int = option(
        type=click.IntRange(min=0),
        default=3,
        show_default=True,
        help="Number of explained labels to list per selected label.",
    )
    picture: str | None = option(metavar="FILE.png", help="Also plot the coverage after each selection.")
    seed: int = option(type=SEED, default=0, show_default=True, help="Random seed for --criterion random and leverage.")
    jobs: int | None = option(type=int, help="Number of threads.  [default: one per core]")

    def checked_criterion(self) -> str | None:
        """The criterion, or a usage error where options contradict each other."""
        criterion = "penalised cut" if self.criterion is None and self.labels_only else self.criterion
        if self.labels_only and criterion in _NEED_FEATURES:
            raise click.UsageError(f"--criterion {criterion.replace(' ', '-')} cannot be used with --labels-only")
        if self.score_weight is not None and criterion not in (None, "predictable cut"):
            raise click.UsageError("--score-weight can only be used with --criterion predictable-cut")
        return criterion


@click.command()
@click.argument("data")
@takes(options=SelectOptions, reader=ReaderOptions, feature=FeatureFlags)
@click.pass_obj
def command(
    terminal: Terminal,
    data: str,
    options: SelectOptions,
    reader: ReaderOptions,
    feature: FeatureFlags,
) -> None:
    """Select a few labels of DATA that represent all of them.

    DATA is as for `longtail train`. The output lists the labels in order of selection, each with its number of rows,
    how well it can be predicted (leave-one-out R2 of ridge), the share of all labels covered so far, and the labels
    that it explains best.

    \b
    Criteria:
      predictable-cut  labels that explain many others, not each other, and can be predicted
      penalised-cut    labels that explain many others, not each other
      cut              labels that explain many others
      score            labels that can be predicted
      frequency        labels with the most rows
      random           random labels
      leverage         random labels, drawn by leverage score
    """
    from longtail.subset import select_from_corpus

    criterion = options.checked_criterion()
    out = options.out
    wrote = _check_files(data, out, options.picture)
    if options.picture is not None:
        terminal.outlive_reader()
    corpus = read(data, "train", reader)
    terminal.say(f"{called(data)}: {counted(corpus.n_rows, 'row')}, {counted(corpus.n_labels, 'label')}")
    found = select_from_corpus(
        corpus,
        options.n_labels,
        feature.checked(corpus, data),
        criterion=criterion,
        affinity=options.affinity,
        penalty=options.penalty,
        score_weight=options.score_weight,
        random_state=options.seed,
        n_jobs=options.jobs,
    )
    selected = found.labels(options.explained)
    if out is None:
        _show(selected)
    else:
        _write(out, selected, found, options.affinity)
        terminal.say(f"{wrote} {out}: {counted(len(selected), 'label')}")
    if options.picture is not None:
        _draw(options.picture, found)
        terminal.say(f"drew {options.picture}")
    terminal.say(_summary(found))


def _check_files(data: str, out: str | None, picture: str | None) -> str:
    """Refuse, before the work, files that cannot be written; return whether `out` is written or replaced."""
    if out is not None:
        check_ending(out, [".json", ".tsv"], "selected labels are written")
    wrote = check_out(out, data)
    if picture is not None:
        check_picture(picture, data)
    return wrote


def _show(selected: list[SelectedLabel]) -> None:
    from longtail.cli.tables import show, simple_table

    scored = selected[0].predictability is not None
    columns = ["", "label", "rows", *(["R2"] if scored else []), "covered", "explains"]
    rows = []
    for place, each in enumerate(selected, start=1):
        explains = ", ".join(f"{printable(name)} {weight:.2f}" for name, weight in each.explains)
        cells = [str(place), printable(each.label), f"{each.rows:,}"]
        cells += [f"{each.predictability:.2f}"] if scored else []
        rows.append([*cells, f"{100 * each.coverage:.1f}%", explains or "-"])
    show(simple_table(columns, rows, right=["", "rows", "R2", "covered"]))


def _write(out: str, selected: list[SelectedLabel], found: CorpusSelection, affinity: str) -> None:
    with output(out) as write:
        if Path(out).suffix.lower() == ".json":
            facts = {
                "criterion": found.subset.criterion,
                "affinity": affinity,
                "rows": found.corpus.n_rows,
                "all_labels": found.corpus.n_labels,
                "value": round(found.subset.value, _DECIMALS),
                "guarantee": round(found.subset.guarantee, _DECIMALS),
                "labels": [_record(each) for each in selected],
            }
            write(json_text(facts, indent=2).encode() + b"\n")
            return
        write(b"label\trows\tpredictability\tgain\tcoverage\texplains\n")
        for each in selected:
            score = "" if each.predictability is None else f"{each.predictability:g}"
            names = json_text([name for name, _ in each.explains])
            numbers = f"{each.rows}\t{score}\t{each.gain:.{_DECIMALS}g}\t{each.coverage:.{_DECIMALS}f}"
            write(f"{printable(each.label)}\t{numbers}\t{names}\n".encode())


def _record(each: SelectedLabel) -> dict[str, Any]:
    return {
        **each._asdict(),
        "gain": round(each.gain, _DECIMALS),
        "coverage": round(each.coverage, _DECIMALS),
        "explains": [{"label": name, "weight": round(weight, _DECIMALS)} for name, weight in each.explains],
    }


def _draw(path: str, found: CorpusSelection) -> None:
    from longtail.files import whole_file
    from longtail.pictures import Line, Panel, Picture, draw

    subset, usual = found.subset, found.most_frequent
    places, alone = range(1, len(subset) + 1), len(subset) == 1
    lines = [Line(subset.criterion, places, (100 * subset.coverage).tolist(), marked=alone)]
    if subset.criterion != "frequency":
        lines.append(Line("frequency", places, (100 * usual.coverage).tolist(), 6, "dashed", alone))
    panel = Panel("Labels that represent all", "labels selected", "percent of all labels covered", lines)
    with whole_file(Path(path), parents=True) as file:
        draw(Picture(path, "", [[panel]]), file)


def _summary(found: CorpusSelection) -> str:
    subset = found.subset
    told = (
        f"selected {len(subset):,} of {found.corpus.n_labels:,} labels by {subset.criterion}; they cover "
        f"{100 * subset.coverage[-1]:.1f} % of all"
    )
    if not subset.guarantee:
        return f"{told}; how close this is to the best possible selection is not known"
    # Rounded down, so that the printed share is proved.
    share = math.floor(1000 * subset.guarantee) / 10
    return f"{told} and reach at least {share:g} % of the best possible {subset.measure}"
