"""`longtail assign`: labels of groups in, labelled rows out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from longtail.cli.features import check_feature_options, feature_options, make_features
from longtail.cli.groups import (
    PLACING,
    RULES,
    describe_groups,
    group_options,
    quiet_about,
    read_grouped,
    without_empty_groups,
)
from longtail.cli.inputs import SEED, FiniteRange, ReaderOptions, called, reader_options
from longtail.cli.outputs import check_out, out_option, output, write_through
from longtail.cli.terminal import Terminal, counted
from longtail.errors import InvalidInput
from longtail.printable import printable

if TYPE_CHECKING:
    from longtail.aggregated import Assignment
    from longtail.data import GroupedCorpus

_DECIMALS = 6
_SHOWN_OF_A_TEXT = 70
# Below this share of its similarity, the lead of a row over the next best is none to rely on.
_SURE = 0.1


class LabelledRow(NamedTuple):
    """A row with its labels and how sure each is."""

    row: int
    groups: list[int]
    labels: list[int]
    confidences: list[float]


@click.command()
@click.argument("data")
@out_option()
@group_options
@click.option(
    "--rule", type=click.Choice(RULES), default="joint", show_default=True, help="How many members get a label."
)
@click.option(
    "--strategy", type=click.Choice(PLACING), default="eagle", show_default=True, help="How to find whose a label is."
)
@click.option("--iterations", type=click.IntRange(min=0), help="Sweeps of the search for label vectors.  [default: 20]")
@click.option("--step", type=FiniteRange(min=0), help="How far a sweep goes.  [default: 0.1]")
@click.option("--show", type=click.IntRange(min=1), metavar="N", help="Print N groups to read, instead of all rows.")
@reader_options
@feature_options
@click.option("--seed", type=SEED, default=0, show_default=True, help="Of strategy iterate.")
@click.option("--jobs", type=int, help="Threads.  [default: every core]")
@click.pass_obj
def command(terminal: Terminal, /, **given: Any) -> None:
    """Find which rows of DATA carry which labels of their groups.

    DATA is a file with a group in each line, {"texts": [...], "labels": [...]}, or - for such lines on standard input;
    or a file of rows, as for `longtail train`, with their groups in --groups FILE or, in a .csv or .tsv file, in a
    --group-column; or python-api, the embedded corpus, whose groups are the paragraphs of a docstring.

    Texts come out as JSON lines with the labels of each and how sure they are: how much more similar to the label the
    text is than the best one that did not get it, null where all did. Features come out as repository text.

    \b
    Rules:
      joint    the labels of a group are shared out among its members
      count    each for itself: a label that is c times in a group goes to the c best
      argmax   to the best alone
    Strategies:
      eagle    label vectors that are close to one member of each group
      eagle-0  label vectors that are means; quicker
      iterate  models that place the labels of groups they have not seen; slower, better
    """
    if given["strategy"] == "eagle-0" and (given["iterations"] is not None or given["step"] is not None):
        raise click.UsageError("--strategy eagle-0 makes no sweeps: --iterations and --step mean nothing with it")
    options = ReaderOptions(*(given[name] for name in ReaderOptions.__dataclass_fields__))
    wrote = check_out(given["out"], given["data"], given["groups"])
    corpus = read_grouped(given["data"], given["groups"], options, given["group_column"])
    terminal.say(describe_groups(given["data"], corpus))
    check_feature_options(given, corpus)
    if given["out"] is not None:
        _check_out(given["out"], corpus)
    if corpus.n_rows == 0:
        groups = counted(corpus.n_groups, "group")
        raise InvalidInput(f"{called(given['data'])} has {groups} and no rows that could carry a label")
    corpus = without_empty_groups(corpus, terminal)
    _, X = make_features(given, corpus, terminal)
    found = _assignment(given, corpus, X)
    if given["show"] is not None:
        _show(corpus, found, given["show"])
    if given["out"] is not None or given["show"] is None:
        _write(corpus, found, given["out"])
    if given["out"] is not None:
        terminal.say(f"{wrote} {given['out']}: {counted(corpus.n_rows, 'row')}")
    terminal.say(_summary(corpus, found))


def _check_out(out: str, corpus: GroupedCorpus) -> None:
    """Refuse before the work what could not be written after it."""
    from longtail.data import format_of

    if corpus.texts is not None and format_of(out) not in (None, "jsonl"):
        raise InvalidInput(f"labelled texts are written as JSON lines; call the file {Path(out).stem}.jsonl")
    if corpus.texts is None and format_of(out) not in ("repository", "scipy"):
        raise InvalidInput(f"labelled features are written as .txt or .npz; {out} is neither")


def _assignment(given: dict[str, Any], corpus: GroupedCorpus, X: Any) -> Assignment:
    from longtail.aggregated import AggregatedClassifier, GroupRobustLabelVectors, assign_labels

    settings = {"n_iter": given["iterations"], "step": given["step"], "n_jobs": given["jobs"]}
    settings = {name: value for name, value in settings.items() if value is not None}
    labels = corpus.groups, corpus.group_labels
    if given["strategy"] == "iterate":
        model = AggregatedClassifier(strategy="iterate", rule=given["rule"], random_state=given["seed"], **settings)
        with quiet_about("longtail.choice", "longtail.aggregated"):
            return model.assign_labels(X, *labels)
    if given["strategy"] == "eagle-0":
        settings["n_iter"] = 0
    vectors = GroupRobustLabelVectors(**settings).fit(X, *labels).label_vectors_
    return assign_labels(X, *labels, vectors, rule=given["rule"], n_jobs=given["jobs"])


def _labelled_rows(corpus: GroupedCorpus, found: Assignment) -> Iterator[LabelledRow]:
    """All rows in order; of a label that a row got in two groups, the surer one counts."""
    import numpy as np

    order = np.lexsort((-found.confidences, found.labels, found.rows))
    rows, labels, confidences = found.rows[order], found.labels[order], found.confidences[order]
    first = np.ones(len(rows), dtype=bool)
    first[1:] = (rows[1:] != rows[:-1]) | (labels[1:] != labels[:-1])
    rows, labels, confidences = rows[first], labels[first], confidences[first]
    bounds = np.searchsorted(rows, np.arange(corpus.n_rows + 1))
    for row in range(corpus.n_rows):
        mine, homes = slice(*bounds[row : row + 2]), slice(*corpus.groups.indptr[row : row + 2])
        yield LabelledRow(row, corpus.groups.indices[homes].tolist(), labels[mine].tolist(), confidences[mine].tolist())


def _write(corpus: GroupedCorpus, found: Assignment, out: str | None) -> None:
    from longtail.data import as_line, write_corpus

    if corpus.texts is None:
        write_through(partial(write_corpus, corpus.labelled(found.row_labels)), out, "rows.txt")
        return
    with output(out) as write:
        for labelled in _labelled_rows(corpus, found):
            homes = [_name(corpus.group_names, group) for group in labelled.groups]
            write(
                as_line(
                    {
                        "id": _name(corpus.row_names, labelled.row),
                        "group": homes[0] if len(homes) == 1 else homes,
                        "text": corpus.texts[labelled.row],
                        "labels": [corpus.label_names[label] for label in labelled.labels],
                        "confidences": [
                            round(value, _DECIMALS) if math.isfinite(value) else None for value in labelled.confidences
                        ],
                    }
                )
            )


def _name(names: Any, number: int) -> str | int:
    """A name, or the number counted from 1."""
    return number + 1 if names is None else names[number]


def _show(corpus: GroupedCorpus, found: Assignment, count: int) -> None:
    """Groups from all over the corpus that leave a choice: several members, some labels."""
    import numpy as np
    from rich.text import Text
    from scipy import sparse

    from longtail.cli.tables import show, simple_table

    members = sparse.csr_array(corpus.groups.T)
    only_here = _in_one_group(corpus)
    telling = np.flatnonzero((corpus.group_sizes > 1) & (np.diff(corpus.group_labels.indptr) > 0))
    if not len(telling):
        show("no group has several rows and a label")
        return
    places = np.linspace(0, len(telling) - 1, min(count, len(telling))).round().astype(int)
    for group in telling[np.unique(places)].tolist():
        pairs = slice(*corpus.group_labels.indptr[group : group + 2])
        counts = corpus.group_labels.data[pairs].tolist()
        names = [corpus.label_names[label] for label in corpus.group_labels.indices[pairs].tolist()]
        held = ", ".join(name if times == 1 else f"{name} x{times}" for name, times in zip(names, counts, strict=True))
        show(Text(printable(f"{_name(corpus.group_names, group)}: {held}"), style="bold"))
        here = np.flatnonzero(found.groups == group)
        here = here[np.argsort(-found.confidences[here], kind="stable")]
        cells = []
        rows = members.indices[slice(*members.indptr[group : group + 2])].tolist()
        for number, row in enumerate(rows, start=1):
            gained = [
                f"{printable(corpus.label_names[label])} {_confidence(value, only_here[label])}"
                for label, value in zip(
                    *(values[here[found.rows[here] == row]].tolist() for values in (found.labels, found.confidences)),
                    strict=True,
                )
            ]
            text = f"row {_name(corpus.row_names, row)}" if corpus.texts is None else _shortened(corpus.texts[row])
            cells.append([str(number), printable(text), "\n".join(gained) or "-"])
        show(simple_table(["", "row", "labels, and how sure"], cells), "")


def _in_one_group(corpus: GroupedCorpus) -> Any:
    """A mask of labels: those of a single group, whose vector is made of its own members, so that it proves nothing."""
    import numpy as np

    occupied = np.repeat(corpus.group_sizes > 0, np.diff(corpus.group_labels.indptr))
    return np.bincount(corpus.group_labels.indices[occupied], minlength=corpus.n_labels) < 2


def _confidence(value: float, only_here: bool) -> str:
    if not math.isfinite(value):
        return "(all have it)"
    return f"{value:+.2f}{' (only here)' if only_here else ''}"


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN_OF_A_TEXT else f"{text[: _SHOWN_OF_A_TEXT - 3].rstrip()}..."


def _summary(corpus: GroupedCorpus, found: Assignment) -> str:
    import numpy as np

    without = int(np.count_nonzero(np.diff(found.row_labels.indptr) == 0))
    unsure = found.confidences <= _SURE * np.abs(found.similarities)
    unsure |= _in_one_group(corpus)[found.labels] & np.isfinite(found.confidences)
    share = 100 * float(unsure.mean()) if len(unsure) else 0.0
    return (
        f"placed {counted(len(found.rows), 'label')} of {counted(corpus.n_groups, 'group')} on "
        f"{counted(corpus.n_rows - without, 'row')}; {counted(without, 'row')} got none; {share:.0f} % of the labels "
        f"are unsure: another member is nearly as similar, or the label is in no other group"
    )
