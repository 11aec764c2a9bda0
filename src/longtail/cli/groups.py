"""Labels of groups: how commands recognise and read such data."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from longtail.cli.advice import reading
from longtail.cli.inputs import (
    STANDARD_INPUT,
    called,
    check_exists,
    check_file,
    check_stdin,
    counted_rows,
    is_blank,
    read,
)
from longtail.cli.options import option
from longtail.cli.reading import GROUPS, ReaderOptions
from longtail.errors import InvalidInput
from longtail.printable import counted

if TYPE_CHECKING:
    from longtail.data import GroupedCorpus

# As in `longtail.aggregated`, which would take long to load for a page of help.
PLACING = ("eagle", "eagle-0", "iterate")
STRATEGIES = ("auto", *PLACING, "all")
RULES = ("joint", "count", "argmax")
EMBEDDED = "python-api"


@dataclass(frozen=True)
class GroupOptions:
    """Which rows of DATA form a group."""

    section = "Labels of groups"

    groups: str | None = option(metavar="FILE", help="File that lists the rows and the labels of each group.")
    group_column: str | None = option(
        metavar="NAME", help="Column with the group of each row, for .csv and .tsv files."
    )


@dataclass(frozen=True)
class TrainGroupOptions(GroupOptions):
    """Which rows form a group, and which of them get its labels."""

    strategy: str | None = option(
        type=click.Choice(STRATEGIES), help="How to decide which members of a group carry a label.  [default: auto]"
    )
    rule: str | None = option(
        type=click.Choice(RULES), help="How to share out the labels of a group.  [default: joint]"
    )

    def placing(self, learner: str) -> dict[str, str]:
        """The options that were given, by name; networks, which do not assign labels to rows, take only auto."""
        given = {"strategy": self.strategy, "rule": self.rule}
        found = {name: value for name, value in given.items() if value is not None}
        if learner == "network" and found not in ({}, {"strategy": "auto"}):
            raise InvalidInput(
                f"--{min(found)} does not go with --learner network: a network learns from the labels of groups "
                "without assigning them to rows; to train a network on assigned labels, run `longtail assign` first "
                "and train on its output"
            )
        return found


def holds_group_labels(files: Sequence[str], groups: TrainGroupOptions, reader: ReaderOptions) -> bool:
    """Whether DATA has labels of groups: told by the options, or by the first line of a file.

    Standard input cannot be inspected beforehand, so there only the options tell.
    """
    from longtail.data import CATALOGUE, format_of, holds_groups

    if len(files) > 1:
        if groups != TrainGroupOptions():
            raise InvalidInput("labels of groups come from one file; join the files first")
        return False
    data = files[0]
    if groups.groups is not None or groups.group_column is not None:
        return True
    asked = next((f"--{name}" for name in ("strategy", "rule") if getattr(groups, name) is not None), None)
    if data == STANDARD_INPUT:
        return asked is not None
    is_jsonl = (reader.format or format_of(data)) == "jsonl" and Path(data).is_file()
    found = is_jsonl and holds_groups(data, reader.text_column)
    if asked and not found:
        if data.lower() not in CATALOGUE:
            check_exists(data)
        if Path(data).is_file() and is_blank(data):
            raise InvalidInput(f"{data} has no rows; there is nothing to learn from")
        raise InvalidInput(
            f"{asked} is for labels of groups; {data} has labels of rows: it has no list of texts under 'texts', and "
            "neither --groups nor --group-column is given"
        )
    return found


def read_grouped(
    data: str, groups: str | None, options: ReaderOptions, group_column: str | None = None
) -> GroupedCorpus:
    """The groups in DATA, or the groups of its rows that a column or a groups file defines."""
    from longtail.data import CATALOGUE, format_of, looks_like_groups, read_grouped_jsonl, read_groups

    if group_column is not None:
        return _read_column(data, groups, options, group_column)
    if groups is not None:
        check_file(groups)
        return read_groups(groups, read(data, "train", options, labelled=False))
    if data == STANDARD_INPUT:
        check_stdin(options)
        with reading():
            return read_grouped_jsonl(sys.stdin.buffer, **options.for_format(GROUPS, labelled=True))
    if not Path(data).is_file() and data.lower() == EMBEDDED:
        return _paragraphs()
    if not Path(data).is_file() and data.lower() in CATALOGUE:
        raise InvalidInput(f"{data} has labels of rows; give their groups as --groups FILE, or use {EMBEDDED}")
    check_exists(data)
    if (options.format or format_of(data)) != "jsonl":
        if looks_like_groups(data):
            raise InvalidInput(
                f"{data} is a groups file: give the file of its rows as DATA, and this one as --groups {data}"
            )
        lines = '{"texts": [...], "labels": [...]}'
        if _is_json(data):
            raise InvalidInput(
                f"{data} is JSON, not JSON lines: write each group on its own line, {lines}, in a .jsonl file"
            )
        raise InvalidInput(
            f"{data} holds rows, not groups; give their groups as --groups FILE, as --group-column NAME of a .csv or "
            f".tsv file, or write groups in JSON lines: {lines}"
        )
    with reading():
        return read_grouped_jsonl(data, **options.for_format(GROUPS, labelled=True))


def _read_column(data: str, groups: str | None, options: ReaderOptions, group: str) -> GroupedCorpus:
    """Groups of the rows of a delimited file that have the same value in a column."""
    from longtail.data import format_of, read_grouped_delimited

    if groups is not None:
        raise InvalidInput("--groups and --group-column both define groups; give one of them")
    check_exists(data)
    format = options.format or (None if data == STANDARD_INPUT else format_of(data))
    if format != "delimited":
        raise InvalidInput(
            f"--group-column is for delimited files (.csv, .tsv), but {data} is not one; JSON lines have a group in "
            'each line, {"texts": [...], "labels": [...]}, and other files need --groups FILE'
        )
    with reading(group_column=group):
        return read_grouped_delimited(data, group=group, **options.for_format(format, labelled=True))


def _is_json(path: str) -> bool:
    """Whether a file begins like a JSON array or object."""
    with open(path, "rb") as file:
        return file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"[", b"{")


def _paragraphs() -> GroupedCorpus:
    """The embedded corpus, where each docstring is a group of paragraphs."""
    from dataclasses import replace

    import numpy as np

    from longtail.data import GroupedCorpus, load_python_api

    corpus = load_python_api(rows="paragraphs")
    assert corpus.row_names is not None
    _, first = np.unique(corpus.groups.indices, return_index=True)
    names = [corpus.row_names[row] for row in first.tolist()]
    return GroupedCorpus.from_corpus(replace(corpus, row_names=None), merge="set", group_names=names)


def describe_groups(data: str, corpus: GroupedCorpus) -> str:
    """A line about a corpus of groups."""
    labels = corpus.group_labels.nnz / max(1, corpus.n_groups)
    members = corpus.groups.nnz / max(1, corpus.n_groups)
    return (
        f"{called(data)}: {counted_rows(corpus)} in {counted(corpus.n_groups, 'group')} of {members:.1f} on average, "
        f"{counted(corpus.n_labels, 'label')}, {labels:.1f} labels per group"
    )
