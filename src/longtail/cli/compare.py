"""`longtail compare`: learners side by side on held-out rows, as a table sorted by quality."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from longtail.cli.features import FeatureFlags
from longtail.cli.inputs import called, counted_rows, read
from longtail.cli.options import SEED, FiniteRange, SectionedCommand, option, takes
from longtail.cli.outputs import check_out, check_picture, out_field, print_json
from longtail.cli.reading import ReaderOptions
from longtail.cli.terminal import Terminal
from longtail.errors import InvalidInput
from longtail.printable import counted, printable

if TYPE_CHECKING:
    from longtail.tagger import Compared

_METRICS = ("P@1", "P@3", "P@5", "nDCG@5", "PSP@1", "F1")
_OF_CLASSES = ("accuracy", "macro-F1")  # of rows with one label each
_BEST_BY = "nDCG@5"
_DECIMALS = 6
_POSITIVE = FiniteRange(min=0, min_open=True)
_GROUPED = "a comparison needs labels of rows; assign the labels of groups to rows first with `longtail assign`"


def _listed(value: str) -> tuple[str, ...]:
    return tuple(name for part in value.split(",") if (name := part.strip().replace("_", "-")))


@dataclass(frozen=True)
class CompareOptions:
    """What to compare, and where the result goes."""

    section = "Comparison"

    learners: tuple[str, ...] = option(
        default="tree,one-vs-rest,ridge,default",
        show_default=True,
        metavar="NAMES",
        parse=_listed,
        help="Learners to compare; also network. default is what `longtail train` trains without --learner.",
    )
    holdout: float = option(
        type=FiniteRange(0, 1, min_open=True, max_open=True),
        default=0.1,
        show_default=True,
        help="Share of rows to hold out.",
    )
    patience: float | None = option(
        type=_POSITIVE,
        metavar="SECONDS",
        help="Leave out learners whose training takes longer, by an estimate.  [default: 600]",
    )
    seed: int = option(type=SEED, default=0, show_default=True, help="Random seed for held-out rows and learners.")
    jobs: int | None = option(type=int, help="Number of threads.  [default: one per core]")
    memory: str | None = option(metavar="SIZE", help="Memory to use, e.g. 4G.  [default: all free memory]")
    as_json: bool = option("--json", is_flag=True, default=False, help="Print JSON.")
    out: str | None = out_field("Also write the table to FILE (.csv, .tsv, .jsonl or .parquet).")
    picture: str | None = option(metavar="FILE.png", help="Also draw quality against the time of training.")


@click.command(cls=SectionedCommand)
@click.argument("data", nargs=-1, required=True)
@takes(options=CompareOptions, reader=ReaderOptions, features=FeatureFlags)
@click.pass_obj
def command(
    terminal: Terminal, /, data: tuple[str, ...], options: CompareOptions, reader: ReaderOptions, features: FeatureFlags
) -> None:
    """Compare learners on held-out rows of DATA.

    All learners train on the same rows and are judged on the same held-out rows; the best comes first. DATA is as for
    `longtail train`. All get the same features, except that the default training also decides on the features. A
    learner that would take too long or too much memory is left out, with the reason. After Ctrl-C, the output has the
    learners that are done.
    """
    from longtail.memory import limit
    from longtail.metrics import propensity_constants
    from longtail.tagger import compare

    wrote = _check(data, options)
    if options.out is not None or options.picture is not None:
        terminal.outlive_reader()
    done: list[Compared] = []
    with limit(options.memory):
        corpus = read(data, "train", reader, grouped=_GROUPED)
        if not corpus.n_rows:
            raise InvalidInput(f"{called(data)} has no rows; there is nothing to compare learners on")
        features.check(corpus, called(data))
        terminal.say(f"{called(data)}: {counted_rows(corpus)}, {counted(corpus.n_labels, 'label')}")
        found = compare(
            corpus,
            options.learners,
            features=features.checked(corpus, called(data)),
            holdout=options.holdout,
            patience=options.patience,
            random_state=options.seed,
            n_jobs=options.jobs,
            propensity=propensity_constants(data[0]),
        )
        try:
            for each in found:
                done.append(each)
                terminal.say(_line(each))
        finally:  # an interrupt takes only what is not done
            if done:
                _tell(terminal, sorted(done, key=lambda each: -each.quality(_BEST_BY)), options, wrote)


def _check(data: Sequence[str], options: CompareOptions) -> str:
    """Refuse files that cannot be written, before the work."""
    from longtail.data import check_table_file

    if options.out is not None:
        check_table_file(options.out, "comparisons are written")
    if options.picture is not None:
        check_picture(options.picture, *data)
    if not options.learners:
        raise InvalidInput("--learners is empty; name at least one, such as --learners tree,ridge")
    return check_out(options.out, *data)


def _line(each: Compared) -> str:
    if each.report is None:
        return f"{each.learner}: left out, as {each.left_out}"
    return f"{each.learner}: {_BEST_BY} {100 * each.quality(_BEST_BY):.2f}, trained in {each.seconds:.1f} s"


def _tell(terminal: Terminal, done: Sequence[Compared], options: CompareOptions, wrote: str) -> None:
    """Print, write and draw the result."""
    if options.as_json:
        print_json([_facts(each, _names(done)) for each in done], indent=2)
    else:
        _show(done)
    if options.out is not None:
        _write(options.out, done)
        terminal.say(f"{wrote} {options.out}: {counted(len(done), 'learner')}")
    if options.picture is not None:
        _draw(options.picture, done)
        terminal.say(f"drew {options.picture}")


def _have_classes(done: Sequence[Compared]) -> bool:
    return any(each.report is not None and each.report.classes is not None for each in done)


def _names(done: Sequence[Compared]) -> tuple[str, ...]:
    """The metrics that are written."""
    return (*_METRICS, *_OF_CLASSES) if _have_classes(done) else _METRICS


def _facts(each: Compared, names: Sequence[str]) -> dict[str, Any]:
    values: dict[str, Any] = dict.fromkeys(names)
    if each.report is not None:
        values = {name: round(each.report[name], _DECIMALS) for name in names}
        values |= {"seconds": round(each.seconds, 3), "seconds_to_predict": round(each.seconds_to_predict, 3)}
        values |= {"bytes": each.size}
    else:
        values |= {"seconds": None, "seconds_to_predict": None, "bytes": None}
    return {"learner": each.learner, **values, "reasons": list(each.reasons), "left_out": each.left_out or None}


def _show(done: Sequence[Compared]) -> None:
    from longtail.cli.tables import show, simple_table
    from longtail.memory import format_bytes

    names = (*_OF_CLASSES, _BEST_BY, "PSP@1") if _have_classes(done) else _METRICS
    rows = [
        [
            each.learner,
            *(f"{100 * each.report[name]:.2f}" for name in names),
            f"{each.seconds:.1f} s",
            f"{each.seconds_to_predict:.1f} s",
            format_bytes(each.size),
        ]
        for each in done
        if each.report is not None
    ]
    if rows:
        columns = ["learner", *names, "train", "tag", "size"]
        show(simple_table(columns, rows, right=columns[1:]))
    for each in done:
        if each.left_out:
            click.echo(printable(f"{each.learner} is left out: {each.left_out}"))
        for reason in each.reasons if each.learner == "default" else ():
            click.echo(printable(f"The default training chooses this {reason}"))


def _write(out: str, done: Sequence[Compared]) -> None:
    from longtail.data import Column, writing_table

    names = _names(done)
    numbers = (*names, "seconds", "seconds_to_predict")
    columns = [Column("learner"), *(Column(name, "number") for name in numbers), Column("bytes", "whole")]
    columns += [Column("reasons"), Column("left_out")]
    with writing_table(out, columns) as write:
        for each in done:
            facts = _facts(each, names) | {"reasons": "; ".join(each.reasons)}
            write([facts[column.name] for column in columns])


def _draw(path: str, done: Sequence[Compared]) -> None:
    from longtail.files import whole_file
    from longtail.pictures import Line, Panel, Picture, draw

    lines = [
        Line(each.learner, [max(each.seconds, 0.01)], [100 * each.quality(_BEST_BY)], number)
        for number, each in enumerate(done)
        if each.report is not None
    ]
    panel = Panel("Learners on held-out rows", "seconds of training", f"{_BEST_BY}, percent", lines, log_x=True)
    with whole_file(Path(path), parents=True) as file:
        draw(Picture(path, "", [[panel]]), file)
