"""Labels of groups, as commands meet them: how such data is told from labelled rows, read, and learnt from."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longtail.cli.advice import reading
from longtail.cli.inputs import (
    GROUPS,
    STANDARD_INPUT,
    ReaderOptions,
    called,
    check_exists,
    check_file,
    check_stdin,
    is_blank,
    read,
)
from longtail.cli.learners import learner
from longtail.cli.options import add_options, option
from longtail.cli.terminal import Terminal, counted
from longtail.errors import InvalidInput

if TYPE_CHECKING:
    from longtail.data import Corpus, GroupedCorpus
    from longtail.tagger import Tagger

# As in `longtail.aggregated`, which would take long to load for a page of help.
PLACING = ("eagle", "eagle-0", "iterate")
STRATEGIES = ("auto", *PLACING, "all")
RULES = ("joint", "count", "argmax")
EMBEDDED = "python-api"


@dataclass(frozen=True)
class GroupOptions:
    """Which rows of DATA form a group."""

    section = "Groups"

    groups: str | None = option(metavar="FILE", help="File with groups of the rows of DATA, and the labels of each.")
    group_column: str | None = option(
        metavar="NAME", help="Column of a delimited file; rows with the same value form a group."
    )


group_options = add_options(GroupOptions)


def holds_group_labels(given: dict[str, Any], options: ReaderOptions) -> bool:
    """Whether the data of a command has labels of groups: by its options or by the first line of a file.

    Standard input cannot be looked into beforehand, so there it is the options for groups that say it.
    """
    from longtail.data import CATALOGUE, format_of, holds_groups

    asked = [f"--{name}" for name in ("strategy", "rule") if given[name] is not None]
    data = given["data"]
    if given["groups"] is not None or given["group_column"] is not None:
        return True
    if data == STANDARD_INPUT:
        return bool(asked)
    if (options.format or format_of(data)) == "jsonl" and Path(data).is_file():
        found = holds_groups(data, options.text_column)
    else:
        found = False
    if asked and not found:
        if data.lower() not in CATALOGUE:
            check_exists(data)
        if Path(data).is_file() and is_blank(data):
            raise InvalidInput(f"{data} has no rows; there is nothing to learn from")
        raise InvalidInput(
            f"{asked[0]} is for labels of groups; {data} has labels of rows: no list of texts under 'texts', and "
            "neither --groups nor --group-column is given"
        )
    return found


def read_grouped(
    data: str, groups: str | None, options: ReaderOptions, group_column: str | None = None
) -> GroupedCorpus:
    """The groups that DATA holds, or that a column or a groups file makes of its rows."""
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
        raise InvalidInput(f"{data} has labels of rows; give their groups as --groups FILE, or take {EMBEDDED}")
    check_exists(data)
    if (options.format or format_of(data)) != "jsonl":
        if looks_like_groups(data):
            raise InvalidInput(
                f"{data} is a groups file: give the file of its rows as DATA, and this one as --groups {data}"
            )
        lines = '{"texts": [...], "labels": [...]}'
        if _is_json(data):
            raise InvalidInput(
                f"{data} is JSON and not JSON lines: write every group on a line of its own, {lines}, into a file "
                "whose name ends in .jsonl"
            )
        raise InvalidInput(
            f"{data} holds rows; give their groups as --groups FILE, or groups in JSON lines: {lines}; rows of a .csv "
            "or .tsv file may have their groups in a column: --group-column NAME"
        )
    with reading():
        return read_grouped_jsonl(data, **options.for_format(GROUPS, labelled=True))


def _read_column(data: str, groups: str | None, options: ReaderOptions, group: str) -> GroupedCorpus:
    """The groups that a column of a delimited file makes of its rows."""
    from longtail.data import format_of, read_grouped_delimited

    if groups is not None:
        raise InvalidInput("--groups and --group-column both say which rows are a group; give one of them")
    check_exists(data)
    format = options.format or (None if data == STANDARD_INPUT else format_of(data))
    if format != "delimited":
        raise InvalidInput(
            f"--group-column is for delimited files (.csv, .tsv), which {data} is not; JSON lines have a group in each "
            'line, {"texts": [...], "labels": [...]}, and other files go with --groups FILE'
        )
    with reading(group_column=group):
        return read_grouped_delimited(data, group=group, **options.for_format(format, labelled=True))


def _is_json(path: str) -> bool:
    """Whether a file begins as an array or an object of JSON does."""
    with open(path, "rb") as file:
        return file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"[", b"{")


def _paragraphs() -> GroupedCorpus:
    """The embedded corpus: a docstring is a group of paragraphs."""
    from dataclasses import replace

    import numpy as np

    from longtail.data import GroupedCorpus, load_python_api

    corpus = load_python_api(rows="paragraphs")
    assert corpus.row_names is not None
    _, first = np.unique(corpus.groups.indices, return_index=True)
    names = [corpus.row_names[row] for row in first.tolist()]
    return GroupedCorpus.from_corpus(replace(corpus, row_names=None), merge="set", group_names=names)


def counted_rows(corpus: Corpus | GroupedCorpus) -> str:
    """How many rows there are, and of what."""
    if corpus.texts is not None:
        return counted(corpus.n_rows, "text")
    return counted(corpus.n_rows, "row of features", "rows of features")


def describe_groups(data: str, corpus: GroupedCorpus) -> str:
    """A line about what was found."""
    labels = corpus.group_labels.nnz / max(1, corpus.n_groups)
    members = corpus.groups.nnz / max(1, corpus.n_groups)
    return (
        f"{called(data)}: {counted_rows(corpus)} in {counted(corpus.n_groups, 'group')} of {members:.1f} on average, "
        f"{counted(corpus.n_labels, 'label')}, {labels:.1f} labels per group"
    )


def fit_groups(given: dict[str, Any], corpus: GroupedCorpus, terminal: Terminal) -> tuple[Tagger, list[str]]:
    """Find the rows of the labels and learn from them; what was chosen, and why, is told and returned."""
    import numpy as np

    from longtail.aggregated import AggregatedClassifier
    from longtail.cli.features import make_features
    from longtail.tagger import Tagger

    if given["learner"] == "network":
        raise InvalidInput(
            "--learner network does not learn from groups; longtail.neural.DeepMIML does, in Python, or place the "
            "labels first: longtail assign"
        )
    corpus = without_empty_groups(corpus, terminal)
    corpus = _with_labels_that_occur(corpus, given["data"], terminal)
    features, X = make_features(given, corpus, terminal)
    choice = learner(given, X, corpus.union(), terminal)
    model = AggregatedClassifier(
        choice.estimator,
        strategy=given["strategy"] or "auto",
        rule=given["rule"] or "joint",
        random_state=given["seed"],
        n_jobs=given["jobs"],
    )
    if model.strategy != "auto":
        terminal.say(f"strategy: {model.strategy}, as asked for")
    model.fit(X, corpus.groups, corpus.group_labels)
    labelled = corpus.labelled(model.row_labels_)
    learnt_from = np.diff(labelled.labels.indptr) > 0
    return Tagger.from_fitted(features, model.estimator_, labelled.select(learnt_from)), choice.reasons


def _with_labels_that_occur(corpus: GroupedCorpus, data: str, terminal: Terminal) -> GroupedCorpus:
    """The same groups, without the labels that no row can have."""
    import numpy as np

    occupied = np.repeat(corpus.group_sizes > 0, np.diff(corpus.group_labels.indptr))
    counts = np.bincount(corpus.group_labels.indices[occupied], minlength=corpus.n_labels)
    if not counts.any():
        groups = counted(corpus.n_groups, "group")
        raise InvalidInput(f"{called(data)} holds nothing to learn from: {groups}, none of them with rows and labels")
    if counts.all():
        return corpus
    names = [name for name, count in zip(corpus.label_names, counts.tolist(), strict=True) if count]
    lost = counted(corpus.n_labels - len(names), "label")
    terminal.say(f"left out, being in no group that has rows: {lost}")
    return corpus.with_label_names(names)


def without_empty_groups(corpus: GroupedCorpus, terminal: Terminal) -> GroupedCorpus:
    """The same groups, those that have no rows without their labels, which nothing could carry."""
    from dataclasses import replace

    import numpy as np

    labels = corpus.group_labels.copy()
    lost = np.flatnonzero((corpus.group_sizes == 0) & (np.diff(labels.indptr) > 0))
    if not len(lost):
        return corpus
    labels.data[np.isin(np.repeat(np.arange(corpus.n_groups), np.diff(labels.indptr)), lost)] = 0
    first = corpus.describe_group(int(lost[0]))
    have = f"{counted(len(lost), 'group')} {'has' if len(lost) == 1 else 'have'}"
    terminal.say(f"{have} labels and no rows, {first} for one; these labels are left out")
    return replace(corpus, group_labels=labels)
