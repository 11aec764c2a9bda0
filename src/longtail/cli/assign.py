"""`longtail assign`: reads labels of groups, writes labelled rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from longtail.cli.features import FeatureFlags
from longtail.cli.groups import PLACING, RULES, GroupOptions, describe_groups, read_grouped
from longtail.cli.options import SEED, FiniteRange, option, takes
from longtail.cli.outputs import check_out, out_field, output, write_through
from longtail.cli.reading import ReaderOptions
from longtail.cli.terminal import Terminal
from longtail.files import check_ending
from longtail.printable import counted, printable

if TYPE_CHECKING:
    from longtail.aggregated import AssignedCorpus
    from longtail.data import GroupedCorpus

_DECIMALS = 6
_SHOWN_OF_A_TEXT = 70
_OF_TEXTS, _OF_FEATURES = (".jsonl", ".jsonl.gz"), (".txt", ".txt.gz", ".npz")


@dataclass(frozen=True)
class AssignOptions:
    """How to assign labels, and what to show."""

    out: str | None = out_field()
    rule: str = option(
        type=click.Choice(RULES),
        default="joint",
        show_default=True,
        help="How to share out the labels of a group among its members.",
    )
    strategy: str = option(
        type=click.Choice(PLACING),
        default="eagle",
        show_default=True,
        help="How to decide which members of a group carry a label.",
    )
    iterations: int | None = option(
        type=click.IntRange(min=0), help="Number of steps in the search for label vectors.  [default: 20]"
    )
    step: float | None = option(type=FiniteRange(min=0), help="Step size of this search.  [default: 0.1]")
    show: int | None = option(
        type=click.IntRange(min=1), metavar="N", help="Print tables of N groups instead of all rows."
    )
    seed: int = option(type=SEED, default=0, show_default=True, help="Random seed for --strategy iterate.")
    jobs: int | None = option(type=int, help="Number of threads.  [default: one per core]")

    def search(self) -> dict[str, Any]:
        """The parameters of the search for label vectors that were given."""
        given = {"n_iter": self.iterations, "step": self.step}
        return {name: value for name, value in given.items() if value is not None}


@click.command()
@click.argument("data")
@takes(options=AssignOptions, group=GroupOptions, reader=ReaderOptions, feature=FeatureFlags)
@click.pass_obj
def command(
    terminal: Terminal,
    data: str,
    group: GroupOptions,
    options: AssignOptions,
    reader: ReaderOptions,
    feature: FeatureFlags,
) -> None:
    """Decide which texts, or rows of features, of each group in DATA carry which of its labels.

    DATA is a file of JSON lines with one group in each, {"texts": [...], "labels": [...]}, or - to read such lines from
    standard input. It can also be a file of rows, as for `longtail train`, with their groups as --groups FILE or, for a
    .csv or .tsv file, as --group-column NAME. In the embedded corpus python-api, each docstring is a group of
    paragraphs.

    For texts, the output is JSON lines with the labels of each text and their confidences. The
    confidence of a label is its similarity to the text minus its similarity to the best text that did not get the
    label. It is null if all texts of the group got the label. For features, the output is in the repository format.

    \b
    Rules:
      joint    share out the labels of a group evenly among its members
      count    a label that occurs c times in a group goes to the c most similar members
      argmax   a label goes to the most similar member only
    Strategies:
      eagle    label vectors that are close to one member of each group
      eagle-0  label vectors that are means over all members; faster
      iterate  models trained on some groups place the labels of the others; slower, better
    """
    from longtail.aggregated import assign

    if options.strategy == "eagle-0" and options.search():
        raise click.UsageError("--strategy eagle-0 does not search, so --iterations and --step do not apply")
    out = options.out
    if out is not None:
        terminal.outlive_reader()
        check_ending(out, [*_OF_TEXTS, *_OF_FEATURES], "labelled rows are written")
    wrote = check_out(out, data, group.groups)
    corpus = read_grouped(data, group.groups, reader, group.group_column)
    terminal.say(describe_groups(data, corpus))
    if out is not None:
        _check_format(out, corpus)
    found = assign(
        corpus,
        feature.checked(corpus, data),
        strategy=options.strategy,
        rule=options.rule,
        random_state=options.seed,
        n_jobs=options.jobs,
        **options.search(),
    )
    if options.show is not None:
        _show(found, options.show)
    if out is not None or options.show is None:
        _write(found, out)
    if out is not None:
        terminal.say(f"{wrote} {out}: {counted(corpus.n_rows, 'row')}")
    terminal.say(_summary(found))


def _check_format(out: str, corpus: GroupedCorpus) -> None:
    """Refuse, before the work, a file that cannot hold the result."""
    if corpus.texts is not None:
        check_ending(out, _OF_TEXTS, "labelled texts are written")
    else:
        check_ending(out, _OF_FEATURES, "labelled features are written")


def _write(found: AssignedCorpus, out: str | None) -> None:
    from longtail.data import as_line, write_corpus

    corpus = found.corpus
    if corpus.texts is None:
        write_through(partial(write_corpus, found.labelled()), out, "rows.txt")
        return
    with output(out) as write:
        for row in found.rows():
            groups = [_name(corpus.group_names, group) for group in row.groups]
            confidences = [round(value, _DECIMALS) if math.isfinite(value) else None for value in row.confidences]
            record = {
                "id": _name(corpus.row_names, row.row),
                "group": groups[0] if len(groups) == 1 else groups,
                "text": corpus.texts[row.row],
                "labels": [corpus.label_names[label] for label in row.labels],
                "confidences": confidences,
            }
            write(as_line(record))


def _name(names: Any, number: int) -> str | int:
    """A name, or the number counted from 1."""
    return number + 1 if names is None else names[number]


def _show(found: AssignedCorpus, count: int) -> None:
    from rich.text import Text

    from longtail.cli.tables import show, simple_table

    corpus = found.corpus
    groups = found.groups_to_show(count)
    if not groups:
        show("no group has several rows and a label")
    for group in groups:
        pairs = slice(*corpus.group_labels.indptr[group : group + 2])
        counts = corpus.group_labels.data[pairs].tolist()
        names = [corpus.label_names[label] for label in corpus.group_labels.indices[pairs].tolist()]
        held = ", ".join(name if times == 1 else f"{name} x{times}" for name, times in zip(names, counts, strict=True))
        show(Text(printable(f"{_name(corpus.group_names, group)}: {held}"), style="bold"))
        cells = []
        for number, member in enumerate(found.members(group), start=1):
            gained = [
                f"{printable(corpus.label_names[label])} {_confidence(value, found.in_one_group[label])}"
                for label, value in zip(member.labels, member.confidences, strict=True)
            ]
            name = f"row {_name(corpus.row_names, member.row)}"
            text = name if corpus.texts is None else _shortened(corpus.texts[member.row])
            cells.append([str(number), printable(text), "\n".join(gained) or "-"])
        show(simple_table(["", "row", "labels and confidences"], cells), "")


def _confidence(value: float, only_here: bool) -> str:
    if not math.isfinite(value):
        return "(all have it)"
    return f"{value:+.2f}{' (only here)' if only_here else ''}"


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN_OF_A_TEXT else f"{text[: _SHOWN_OF_A_TEXT - 3].rstrip()}..."


def _summary(found: AssignedCorpus) -> str:
    corpus, without = found.corpus, found.n_rows_without_labels
    return (
        f"assigned {counted(len(found.assignment.rows), 'label')} of {counted(corpus.n_groups, 'group')} to "
        f"{counted(corpus.n_rows - without, 'row')}; {counted(without, 'row')} got none. "
        f"{100 * found.share_unsure:.0f} % of the assignments are unsure, because another member is nearly as similar "
        "or no other group has the label"
    )
