"""`longtail train`: from a file of texts, or features, and labels to a model directory."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from longtail.cli.cards import metrics_section, now, source
from longtail.cli.features import check_feature_options, feature_options, make_features
from longtail.cli.groups import (
    RULES,
    STRATEGIES,
    counted_rows,
    describe_groups,
    fit_groups,
    group_options,
    holds_group_labels,
    read_grouped,
)
from longtail.cli.inputs import SEED, STANDARD_INPUT, FiniteRange, ReaderOptions, called, read, reader_options
from longtail.cli.learners import check_learner_options, learner, learner_options
from longtail.cli.terminal import Terminal, counted
from longtail.errors import InvalidInput, ModelFormatError

if TYPE_CHECKING:
    from longtail.data import Corpus
    from longtail.tagger import Tagger

_GOLDEN_RATIO = 0x9E3779B97F4A7C15


@click.command()
@click.argument("data")
@click.option("-o", "--out", required=True, metavar="MODEL", help="The directory to write the model to.")
@click.option("--force", is_flag=True, help="Replace a model that is there.")
@reader_options
@learner_options
@feature_options
@group_options
@click.option(
    "--strategy", type=click.Choice(STRATEGIES), help="Groups: how to find whose a label is.  [default: auto]"
)
@click.option("--rule", type=click.Choice(RULES), help="Groups: which members get a label.  [default: joint]")
@click.option("--validate", type=FiniteRange(0, 1, min_open=True, max_open=True), help="Share of rows to measure on.")
@click.option("--no-refit", is_flag=True, help="With --validate: keep the model of the rows not held out.")
@click.option("--seed", type=SEED, default=0, show_default=True, help="Of the rows to hold out and of samples.")
@click.option("--jobs", type=int, help="Threads.  [default: every core]")
@click.option("--memory", metavar="4G", help="The most memory to plan with.  [default: what is free]")
@click.pass_obj
def command(terminal: Terminal, /, **given: Any) -> None:
    """Learn from DATA and write a model.

    DATA is a file of texts (.jsonl, .csv, .tsv) or of features (.txt, .npz, .arff), the name of a data set, which
    means its training part, or - for JSON lines on standard input.

    What learns is chosen by the size of the data, or by --learner; options that begin with the name of a learner belong
    to that learner.

    Where labels are known for groups of texts only, DATA is JSON lines of groups, {"texts": [...], "labels": [...]}, a
    .csv or .tsv file with a --group-column, or any file of rows with --groups FILE. The model is one of rows all the
    same.
    """
    begun = time.perf_counter()
    out = given["out"]
    terminal.outlive_reader()
    check_learner_options(given)
    check_target(out, given["force"])
    with _planning_with(given["memory"]):
        options = ReaderOptions(*(given[name] for name in ReaderOptions.__dataclass_fields__))
        if holds_group_labels(given, options):
            trained = _train_on_groups(given, options, terminal)
        else:
            trained = _train_on_rows(given, options, terminal)
    seconds = time.perf_counter() - begun
    trained.tagger.save(out, _card(given["data"], trained, seconds))
    terminal.summarize(_summary(out, trained.tagger, seconds))


class _Trained(NamedTuple):
    """A model, why it learnt as it did, and what was measured on rows held out."""

    tagger: Tagger
    reasons: list[str]
    metrics: dict[str, Any] | None = None


def _card(data: str, trained: _Trained, seconds: float) -> dict[str, dict[str, Any]]:
    tagger = trained.tagger
    sections: dict[str, dict[str, Any]] = {
        "data": {"source": source(data, "training"), "rows": tagger.n_rows_, "labels": len(tagger.label_names_)},
        "trained": {
            "at": now(),
            "seconds": round(seconds, 1),
            "learner": type(tagger.estimator_).__name__,
            "reason": "; ".join(trained.reasons),
        },
    }
    return sections if trained.metrics is None else {**sections, "metrics": trained.metrics}


def check_target(out: str, force: bool) -> None:
    """Refuse before the work what could not be written after it."""
    from longtail.store import inspect_model

    path = Path(out)
    for parent in path.absolute().parents:
        if parent.exists():
            if not (parent.is_dir() and os.access(parent, os.W_OK)):
                raise InvalidInput(
                    f"{out} cannot be made: {parent} is not a directory one may write to; choose another"
                )
            break
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return
    try:
        inspect_model(path)
    except ModelFormatError:
        raise InvalidInput(f"{out} is there and is not a model; give the model a directory of its own") from None
    if not force:
        raise InvalidInput(f"{out} already holds a model; say --force to replace it")


def _train_on_rows(given: dict[str, Any], options: ReaderOptions, terminal: Terminal) -> _Trained:
    # Unlike a file, a stream cannot be examined beforehand.
    grouped = "say --strategy auto" if given["data"] == STANDARD_INPUT else ""
    corpus = read(given["data"], "train", options, grouped=grouped)
    if not corpus.n_rows:
        raise InvalidInput(f"{called(given['data'])} has no rows; there is nothing to learn from")
    check_feature_options(given, corpus)
    if given["no_refit"] and given["validate"] is None:
        raise InvalidInput("--no-refit only has a meaning with --validate")
    terminal.say(_describe(given["data"], corpus))
    if given["validate"] is None:
        return _fit(corpus, given, terminal)
    rest, held_out = _hold_out(corpus, given["validate"], given["seed"])
    terminal.say(f"holding out {counted(held_out.n_rows, 'row')} to validate, training on {rest.n_rows:,}")
    part = _fit(rest, given, terminal)
    report = part.tagger.evaluate(held_out)
    click.echo(report.to_text())
    held = f"{counted(held_out.n_rows, 'row')} held out of {source(given['data'], 'training')}"
    if given["no_refit"]:
        return part._replace(metrics=metrics_section(report, held))
    terminal.say(f"training again on all {corpus.n_rows:,} rows")
    metrics = metrics_section(report, f"{held}, before training on all")
    return _fit(corpus, given, terminal)._replace(metrics=metrics)


def _train_on_groups(given: dict[str, Any], options: ReaderOptions, terminal: Terminal) -> _Trained:
    if given["validate"] is not None or given["no_refit"]:
        raise InvalidInput(
            "--validate and --no-refit need labels of rows, and here only those of groups are known; label some rows "
            "by hand and measure with `longtail evaluate`"
        )
    corpus = read_grouped(given["data"], given["groups"], options, given["group_column"])
    check_feature_options(given, corpus)
    terminal.say(describe_groups(given["data"], corpus))
    return _Trained(*fit_groups(given, corpus, terminal))


@contextmanager
def _planning_with(memory: str | None) -> Iterator[None]:
    from longtail.memory import parse_bytes

    if memory is None:
        yield
        return
    parse_bytes(memory)
    before = os.environ.get("LONGTAIL_MEMORY")
    os.environ["LONGTAIL_MEMORY"] = memory
    try:
        yield
    finally:
        if before is None:
            del os.environ["LONGTAIL_MEMORY"]
        else:
            os.environ["LONGTAIL_MEMORY"] = before


def _hold_out(corpus: Corpus, share: float, seed: int) -> tuple[Corpus, Corpus]:
    """The rows to train on and those to validate on.

    Rows are ordered by a hash of their number and the seed, so the split is the same with every version of NumPy.
    """
    import numpy as np

    count = round(share * corpus.n_rows)
    if not 0 < count < corpus.n_rows:
        raise InvalidInput(
            f"--validate {share:g} of {corpus.n_rows} rows leaves no row for one of the parts; choose another share"
        )
    mixed = np.arange(1, corpus.n_rows + 1, dtype=np.uint64) + np.uint64(seed) * np.uint64(corpus.n_rows)
    mixed *= np.uint64(_GOLDEN_RATIO)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    order = np.argsort(mixed ^ (mixed >> np.uint64(31)), kind="stable")
    return corpus.select(np.sort(order[count:])), corpus.select(np.sort(order[:count]))


def _fit(corpus: Corpus, given: dict[str, Any], terminal: Terminal) -> _Trained:
    from longtail.tagger import Tagger

    corpus = _with_labels_that_occur(corpus, given["data"], terminal)
    features, X = make_features(given, corpus, terminal)
    choice = learner(given, X, corpus, terminal)
    return _Trained(Tagger.from_fitted(features, choice.estimator.fit(X, corpus.labels), corpus), choice.reasons)


def _with_labels_that_occur(corpus: Corpus, data: str, terminal: Terminal) -> Corpus:
    """Nothing can be learnt of a label without rows; its score of 0 would only get into the way of others."""
    counts = corpus.label_counts
    if not counts.any():
        rows = counted(corpus.n_rows, "row")
        raise InvalidInput(f"{called(data)}: of {rows} to learn from, none has a label; give the rows their labels")
    if counts.all():
        return corpus
    names = [name for name, count in zip(corpus.label_names, counts.tolist(), strict=True) if count]
    lost = counted(corpus.n_labels - len(names), "label")
    terminal.say(f"left out, having no row to learn from: {lost}")
    return corpus.with_label_names(names)


def _describe(data: str, corpus: Corpus) -> str:
    mean = corpus.labels.nnz / max(1, corpus.n_rows)
    return f"{called(data)}: {counted_rows(corpus)}, {counted(corpus.n_labels, 'label')}, {mean:.1f} labels per row"


def _summary(out: str, tagger: Tagger, seconds: float) -> str:
    from longtail.memory import format_bytes
    from longtail.store import inspect_model

    estimator = tagger.estimator_
    sizes = f"{counted(len(tagger.label_names_), 'label')}, {counted(estimator.n_features_in_, 'feature')}"
    size = format_bytes(inspect_model(out)["bytes"])
    return f"{out}: {sizes}, {estimator.summary()}, {size}; took {seconds:.1f} s"
