"""`longtail prepare`: from files of any size to a prepared corpus, in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from longtail.cli.features import FeatureFlags
from longtail.cli.inputs import STANDARD_INPUT, check_exists
from longtail.cli.options import SectionedCommand, option, takes
from longtail.cli.outputs import check_target
from longtail.cli.reading import ReaderOptions
from longtail.cli.terminal import Terminal
from longtail.errors import InvalidInput
from longtail.printable import counted

if TYPE_CHECKING:
    from longtail.data import Source


@dataclass(frozen=True)
class PreparedOptions:
    """Where the prepared corpus goes, and whose features it gets."""

    section = "Output"

    out: str = option(
        "-o", "--out", required=True, metavar="DIR", help="Directory or URL to write the prepared corpus to."
    )
    force: bool = option(is_flag=True, default=False, help="Replace an existing one.")
    like: str | None = option(
        metavar="DIR", help="A prepared corpus whose features to use; for test rows, that of the training rows."
    )


@dataclass(frozen=True)
class MemoryOptions:
    """How the work is done."""

    section = "Memory"

    memory: str | None = option(metavar="SIZE", help="Memory to use, e.g. 1G.  [default: all free memory]")


@click.command(cls=SectionedCommand)
@click.argument("data", nargs=-1, required=True)
@takes(target=PreparedOptions, reader=ReaderOptions, features=FeatureFlags, running=MemoryOptions)
@click.pass_obj
def command(
    terminal: Terminal,
    /,
    data: tuple[str, ...],
    target: PreparedOptions,
    reader: ReaderOptions,
    features: FeatureFlags,
    running: MemoryOptions,
) -> None:
    """Prepare DATA, one or more files of labelled texts or features, for training.

    The features and labels go to arrays on disk, in bounded memory and batch by batch. `longtail train` and `longtail
    evaluate` take the directory wherever they take a file.

    If the command is interrupted, run it again: it continues where it stopped. Unfinished work is in DIR.unfinished,
    for a URL in the current folder.
    """
    from longtail.memory import limit
    from longtail.prepared import open_prepared, prepare

    terminal.outlive_reader()
    check_target(target.out, target.force)
    like = None if target.like is None else open_prepared(target.like)
    with limit(running.memory):
        corpus = prepare(sources_of(data, reader), target.out, features.options(), like=like, merge_by=reader.merge_by)
    rows, labels = counted(corpus.n_rows, "row"), counted(corpus.n_labels, "label")
    terminal.summarize(f"{target.out}: {rows}, {labels}, {counted(corpus.features.shape[1], 'feature')}")


def sources_of(data: Sequence[str], reader: ReaderOptions) -> list[Source]:
    """The files to prepare, and how to read them."""
    for path in data:
        if path == STANDARD_INPUT:
            raise InvalidInput("DATA is read twice, so it cannot be standard input; write it to a file first")
        check_exists(path)
    return reader.sources(data)
