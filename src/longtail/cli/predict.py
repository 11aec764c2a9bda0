"""`longtail predict`: labels with scores for new rows, batch by batch."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from longtail.cli.inputs import (
    STANDARD_INPUT,
    Batch,
    batches,
    called,
    check_file,
    check_labels,
    kept_batches,
    load_tagger,
    read_prepared,
)
from longtail.cli.options import FiniteRange, option, takes
from longtail.cli.pieces import ClusterOptions
from longtail.cli.reading import ReaderOptions
from longtail.cli.tagged import TaggedOptions, tagged_rows
from longtail.cli.terminal import Terminal, on_terminal
from longtail.errors import InvalidInput
from longtail.parallel import use_jobs
from longtail.printable import counted

if TYPE_CHECKING:
    from longtail.data import Column, Corpus
    from longtail.tagger import Tag, Tagger

_AUTO = "auto"
_DIGITS = 1000  # int refuses much longer numbers


def _places(value: str) -> int | str:
    if value == _AUTO:
        return value
    if not (value.isascii() and value.isdigit() and len(value) <= _DIGITS and int(value)):
        raise click.BadParameter("expected auto or a whole number from 1 on")
    return int(value)


@dataclass(frozen=True)
class PredictOptions:
    """What to tag, and which labels to give."""

    text: tuple[str, ...] = option(multiple=True, help="Text to tag, instead of DATA; can be repeated.")
    plain: bool = option(is_flag=True, default=False, help="DATA is plain text with one text per line.")
    k: int | str = option(
        "-k",
        metavar="K",
        default=_AUTO,
        show_default=True,
        parse=_places,
        help="Maximum number of labels per row, or auto: those worth giving, as learned while training.",
    )
    threshold: float | None = option(
        type=FiniteRange(),
        metavar="S",
        help="Leave out labels with scores below S; with -k auto, instead of the learned threshold.",
    )
    allow: str | None = option(metavar="FILE", help="Predict only the labels listed in FILE, one per line.")
    deny: str | None = option(metavar="FILE", help="Never predict the labels listed in FILE, one per line.")
    weighting: str | None = option(
        type=click.Choice(["none", "target"]),
        help="Ridge: target gives rare labels more weight.  [default: as trained]",
    )
    jobs: int | None = option(type=int, help="Number of threads.  [default: as in training]")


@click.command()
@click.argument("model")
@click.argument("data", nargs=-1)
@takes(options=PredictOptions, target=TaggedOptions, reader=ReaderOptions, workers=ClusterOptions)
@click.pass_obj
def command(
    terminal: Terminal,
    /,
    model: str,
    data: tuple[str, ...],
    options: PredictOptions,
    target: TaggedOptions,
    reader: ReaderOptions,
    workers: ClusterOptions,
) -> None:
    """Tag the texts or rows of features in DATA with MODEL.

    DATA is files of texts or a file of features, as for `longtail train` but without labels; a directory or URL that
    `longtail prepare` wrote; the name of a data set, which means its test part; or - for JSON lines on standard input.
    A row gets the labels that are worth giving, as the training learned from held-out rows (`train --aim`), or the
    first K with -k K. A score is the probability that the label is right. Without learned probabilities (`train --aim
    none`), scores are those of the learner; ridge scores can then be below 0 or above 1. Labels that the learner scores
    exactly 0 are left out.
    """
    if bool(options.text) == bool(data):
        raise click.UsageError("give either DATA or --text")
    if options.plain and reader.format:
        raise click.UsageError("--plain and --format exclude each other")
    wrote = target.check(*data, options.allow, options.deny)
    terminal.hide_progress("predicting")
    if target.out is None and on_terminal():
        terminal.hide_progress()

    tagger = load_tagger(model)
    restrictions = {**_restrictions(options, tagger, model), "threshold": options.threshold}
    separator, reader = target.separator(tagger, reader)
    tagged = untagged = 0
    with use_jobs(options.jobs), workers.opened(model):
        rows = _rows(tagger, model, data, options, reader, target.keep_columns)
        with target.opened(rows.columns, rows.with_texts, separator) as write:
            for batch, found in _tagged(tagger, rows, options.k, workers, restrictions):
                tagged += len(batch.names)
                for row in tagged_rows(batch, found):
                    untagged += not row.tags
                    write(row)
                sys.stdout.flush()
            if not tagged and STANDARD_INPUT not in data:
                raise InvalidInput(f"{called(data)} has no rows; there is nothing to tag")
    if not tagged:
        terminal.say("standard input has no rows; there is nothing to tag")
    if target.out is not None:
        left_out = f", {untagged:,} without a tag and a record" if untagged and target.layout == "tag" else ""
        terminal.say(f"{wrote} {target.out}: {counted(tagged, 'row')}{left_out}")


def _restrictions(options: PredictOptions, tagger: Tagger, model: str) -> dict[str, Any]:
    """The labels that may be given, and the weighting if one is asked for."""
    allow, deny = _names(options.allow, tagger), _names(options.deny, tagger)
    if allow == []:
        raise InvalidInput(f"{options.allow} lists no label; write one on each line")
    if options.weighting is None:
        return {"allow": allow, "deny": deny}
    if "weighting" not in tagger.estimator_.prediction_options:
        learner = type(tagger.estimator_).__name__
        raise InvalidInput(
            f"{model} holds a {learner}, whose weighting is set in training (train --weighting); only ridge models "
            f"accept --weighting here"
        )
    return {"allow": allow, "deny": deny, "weighting": None if options.weighting == "none" else options.weighting}


class _Rows(NamedTuple):
    """What to tag: batches or, if it is prepared, a corpus; and the columns to keep, if they are kept."""

    batches: Iterable[Batch]
    with_texts: bool
    corpus: Corpus | None = None
    columns: list[Column] | None = None


def _rows(
    tagger: Tagger, model: str, data: tuple[str, ...], options: PredictOptions, reader: ReaderOptions, keep: bool
) -> _Rows:
    """The rows to tag."""
    corpus = read_prepared(data[0], reader) if len(data) == 1 and not options.plain else None
    if keep and (corpus is not None or not data or options.plain or not tagger.takes_texts):
        raise InvalidInput("there are no columns to keep: --keep-columns needs DATA with texts, such as a .csv file")
    if corpus is not None:
        names: Iterable[str | int] = corpus.row_names or range(1, corpus.n_rows + 1)
        return _Rows([Batch(list(names), corpus.features)], False, corpus)
    if not tagger.takes_texts and (options.text or options.plain or STANDARD_INPUT in data):
        raise InvalidInput(f"{model} takes features, not texts; give a file of features")
    if options.text:
        return _Rows([Batch(list(range(1, len(options.text) + 1)), list(options.text))], True)
    if keep:
        columns, found = kept_batches(data, reader)
        return _Rows(found, True, columns=columns)
    return _Rows(batches(data, reader, options.plain, tagger.takes_texts), tagger.takes_texts)


def _tagged(
    tagger: Tagger, rows: _Rows, k: int | str, workers: ClusterOptions, restrictions: dict[str, Any]
) -> Iterator[tuple[Batch, Iterable[list[Tag]]]]:
    """Batches of rows with their labels."""
    if rows.corpus is None and workers.cluster is not None:
        raise InvalidInput("--cluster needs DATA that all workers can read: prepare it first with `longtail prepare`")
    for batch in rows.batches:
        if rows.corpus is not None:
            yield batch, tagger.tag_corpus(rows.corpus, k, **restrictions)
        else:
            yield batch, tagger.tag(batch.rows, k, **restrictions)


def _names(path: str | None, tagger: Tagger) -> list[str] | None:
    if path is None:
        return None
    from longtail.data import read_text_lines

    check_file(path)
    lines = (line.rstrip("\r\n") for _, line in read_text_lines(path))
    names = list(dict.fromkeys(line for line in lines if line))
    check_labels(tagger, names, path)
    return names
