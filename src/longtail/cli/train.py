"""`longtail train`: from a file of texts, or features, and labels to a model directory."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from longtail.cli.cards import metrics_section, now, source
from longtail.cli.check import warn_of_data
from longtail.cli.features import FeatureFlags
from longtail.cli.groups import TrainGroupOptions, describe_groups, holds_group_labels, read_grouped
from longtail.cli.inputs import STANDARD_INPUT, called, check_file, counted_rows, named_in_errors, read
from longtail.cli.learners import LearnerFlags
from longtail.cli.options import SEED, FiniteRange, SectionedCommand, flag_of, option, takes
from longtail.cli.outputs import check_target
from longtail.cli.pieces import PieceOptions, read_in_pieces
from longtail.cli.reading import ReaderOptions
from longtail.cli.terminal import Terminal
from longtail.errors import InvalidInput
from longtail.printable import counted

if TYPE_CHECKING:
    from longtail.data import Corpus, LabelTexts
    from longtail.tagger import Tagger


@dataclass(frozen=True)
class TargetOptions:
    """Where the model goes."""

    section = "Output"

    out: str = option("-o", "--out", required=True, metavar="MODEL", help="Directory or URL to write the model to.")
    force: bool = option(is_flag=True, default=False, help="Replace an existing model.")
    updatable: bool = option(
        is_flag=True,
        default=False,
        help="Keep the training rows in the model, so that `longtail update` can learn more.",
    )


@dataclass(frozen=True)
class LabelTextOptions:
    """What is known about the labels."""

    section = "Data"

    label_texts: str | None = option(
        metavar="FILE",
        help="Names, alternative names and descriptions of labels (.jsonl, .json, .tsv, .csv), also of labels without "
        "rows.",
    )

    def read(self) -> LabelTexts | None:
        """The texts in the file, if there is one."""
        from longtail.data import read_label_texts

        if self.label_texts is None:
            return None
        check_file(self.label_texts)
        return read_label_texts(self.label_texts)


@dataclass(frozen=True)
class HoldoutOptions:
    """Rows to evaluate on."""

    section = "Held-out evaluation"

    holdout: float | None = option(
        type=FiniteRange(0, 1, min_open=True, max_open=True), help="Share of rows to hold out and evaluate on."
    )
    no_refit: bool = option(
        is_flag=True, default=False, help="With --holdout: do not train again on all rows after the evaluation."
    )


@dataclass(frozen=True)
class AimOptions:
    """How many tags a row gets."""

    section = "Number of tags"

    aim: str = option(
        metavar="AIM",
        default="f1",
        show_default=True,
        help="What the tags of `predict -k auto` are good for: f1, precision=SHARE, recall=SHARE or count (as many as "
        "rows have); none leaves it to the learner.",
    )

    def checked(self) -> str | None:
        """The aim as `Tagger` takes it."""
        from longtail.tagger import Aim

        return None if self.aim == "none" else str(Aim.parse(self.aim))


@dataclass(frozen=True)
class RunningOptions:
    """How the work is done."""

    section = "Seed, threads and memory"

    seed: int = option(type=SEED, default=0, show_default=True, help="Random seed for held-out rows and samples.")
    jobs: int | None = option(type=int, help="Number of threads.  [default: one per core]")
    memory: str | None = option(
        metavar="SIZE", help="Memory that training may use, e.g. 4G.  [default: all free memory]"
    )


@click.command(cls=SectionedCommand)
@click.argument("data", nargs=-1, required=True)
@takes(
    target=TargetOptions,
    reader=ReaderOptions,
    described=LabelTextOptions,
    learner=LearnerFlags,
    features=FeatureFlags,
    groups=TrainGroupOptions,
    holding=HoldoutOptions,
    aiming=AimOptions,
    running=RunningOptions,
    pieces=PieceOptions,
)
@click.pass_obj
def command(
    terminal: Terminal,
    /,
    data: tuple[str, ...],
    target: TargetOptions,
    reader: ReaderOptions,
    described: LabelTextOptions,
    learner: LearnerFlags,
    features: FeatureFlags,
    groups: TrainGroupOptions,
    holding: HoldoutOptions,
    aiming: AimOptions,
    running: RunningOptions,
    pieces: PieceOptions,
) -> None:
    """Train a model on DATA, labelled texts or features.

    DATA is one or more files of texts (.jsonl, .csv, .tsv, .xlsx, .parquet, .arrow), or one file of features (.txt,
    .npz, .arff); a directory or URL that `longtail prepare` wrote; the name of a data set, which means its training
    part; or - for JSON lines on standard input.

    Unless you give --learner or an option of a learner, several learners are tried on held-out rows, and the best one
    is kept. A second stage ranks its labels and those of other sources again, if that is better on held-out rows. With
    fewer than 1,000 rows the learner is chosen by the size of the data.

    The labels can also belong to groups of texts. DATA is then a file of JSON lines with one group in each,
    {"texts": [...], "labels": [...]}; a .csv or .tsv file, with --group-column; or any file of rows, with --groups.
    The model still tags single texts.
    """
    from longtail.memory import limit
    from longtail.tagger import Tagger

    begun = time.perf_counter()
    terminal.outlive_reader()
    options = learner.options(running.seed, running.jobs)
    if options.fine_tune:
        features.check_unused("--fine-tune")
    check_target(target.out, target.force)
    tagger = Tagger(features.options(), options, aiming.checked(), updatable=target.updatable)

    def save() -> None:
        seconds = time.perf_counter() - begun
        tagger.save(target.out, _card(data, tagger, holding, seconds))
        terminal.summarize(_summary(target.out, tagger, seconds))

    with limit(running.memory), named_in_errors(data):
        if holds_group_labels(data, groups, reader):
            _check_no_holdout(holding)
            _check_no_label_texts(described)
            pieces.check_unused()
            options.check_groups(spell=partial(flag_of, LearnerFlags))
            placing = groups.placing(options.learner)
            grouped = read_grouped(data[0], groups.groups, reader, groups.group_column)
            features.check(grouped, data[0])
            terminal.say(describe_groups(data[0], grouped))
            tagger.fit_groups(grouped, **placing)
            save()
        else:
            if holding.no_refit and holding.holdout is None:
                raise InvalidInput("--no-refit needs --holdout")
            label_texts, folder = described.read(), pieces.folder(target.out)
            if reason := pieces.reason(data):
                terminal.say(reason)
            with pieces.opened(folder) if reason else nullcontext():
                corpus = _read(data, folder if reason else None, reader, features)
                if corpus.made_by is not None and Path(data[0]).is_file():
                    tagger.features = None  # the file was prepared with these features
                terminal.say(_describe(data, corpus))
                warn_of_data(terminal, data, corpus, reader)
                if label_texts is not None:
                    corpus = corpus.with_label_texts(label_texts)
                try:
                    tagger.fit_corpus(
                        corpus, holdout=holding.holdout, refit=not holding.no_refit, random_state=running.seed
                    )
                finally:  # the report is worth printing even if training on all rows fails
                    if (report := vars(tagger).get("holdout_report_")) is not None:
                        click.echo(report.to_text())
                save()


def _read(data: tuple[str, ...], folder: Path | None, reader: ReaderOptions, features: FeatureFlags) -> Corpus:
    if folder is not None:
        return read_in_pieces(data, folder, reader, features)
    # Unlike a file, standard input cannot be inspected beforehand.
    corpus = read(data, "train", reader, grouped="use --strategy auto" if STANDARD_INPUT in data else "")
    features.check(corpus, called(data))
    return corpus


def _check_no_holdout(holding: HoldoutOptions) -> None:
    if holding.holdout is not None or holding.no_refit:
        raise InvalidInput(
            "--holdout and --no-refit need labels of rows, but DATA has only labels of groups; label some rows by "
            "hand and evaluate on them with `longtail evaluate`"
        )


def _check_no_label_texts(described: LabelTextOptions) -> None:
    if described.label_texts is not None:
        raise InvalidInput(
            "--label-texts needs labels of rows, but DATA has only labels of groups; assign the labels to rows first "
            "with `longtail assign`"
        )


def _card(data: tuple[str, ...], tagger: Tagger, holding: HoldoutOptions, seconds: float) -> dict[str, dict[str, Any]]:
    sections: dict[str, dict[str, Any]] = {
        "data": {"source": source(data, "training"), "rows": tagger.n_rows_, "labels": len(tagger.label_names_)},
        "trained": {
            "at": now(),
            "seconds": round(seconds, 1),
            "learner": type(tagger.estimator_).__name__,
            "reason": "; ".join(tagger.reasons_),
        },
    }
    if tagger.decision_ is not None:
        sections["decision"] = tagger.decision_.to_dict()
    report = tagger.holdout_report_
    if report is not None:
        held = f"{counted(report.n_rows, 'row')} held out of {source(data, 'training')}"
        told = held if holding.no_refit else f"{held}, before training on all"
        sections["metrics"] = metrics_section(report, told)
    return sections


def _describe(data: tuple[str, ...], corpus: Corpus) -> str:
    mean = corpus.labels.nnz / max(1, corpus.n_rows)
    return f"{called(data)}: {counted_rows(corpus)}, {counted(corpus.n_labels, 'label')}, {mean:.1f} labels per row"


def _summary(out: str, tagger: Tagger, seconds: float) -> str:
    from longtail.memory import format_bytes
    from longtail.store import inspect_model

    estimator = tagger.estimator_
    sizes = f"{counted(len(tagger.label_names_), 'label')}, {counted(estimator.n_features_in_, 'feature')}"
    size = format_bytes(inspect_model(out)["bytes"])
    kept = f", {format_bytes(tagger.rows_.n_bytes)} of it for updates" if tagger.rows_ is not None else ""
    return f"{out}: {sizes}, {estimator.summary()}, {size}{kept}; took {seconds:.1f} s"
