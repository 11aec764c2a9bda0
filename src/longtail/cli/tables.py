"""Tables and explanations for the terminal, in colour where possible."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from longtail.cli.terminal import console
from longtail.printable import counted, printable

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from longtail.tagger import PathStep, TagExplanation

_BAR_WIDTH = 12
_WORDS_OF_A_STEP = 3


def show(*things: RenderableType) -> None:
    """Print on standard output; the terminal wraps lines of text, and a file gets no trailing blanks."""
    from rich.text import Text

    screen = console()
    with screen.capture() as captured:
        for thing in things:
            screen.print(thing, soft_wrap=isinstance(thing, str | Text))
    for line in captured.get().splitlines():
        click.echo(line if screen.is_terminal else line.rstrip(), file=screen.file)


def simple_table(columns: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[str] = ()) -> Table:
    """A table without borders; the columns named in `right` are aligned to the right."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", no_wrap=column == columns[0])
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def tag_lines(tags: Iterable[tuple[str, float]], indent: int = 0) -> RenderableType:
    """Labels with their scores, best first, and a bar for each score."""
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(justify="right")
    table.add_column(width=_BAR_WIDTH)
    table.add_column(overflow="fold")
    for label, score in tags:
        table.add_row(f"{score:.3f}", Text(_bar(score), style="cyan"), Text(printable(label)))
    return Padding(table, (0, 0, 0, indent), expand=False)


def path_table(explanation: TagExplanation) -> list[RenderableType]:
    """The label, its score and, for a label tree, the path to it; nothing for ridge."""
    from rich.table import Table
    from rich.text import Text

    steps = explanation.steps
    if not steps:
        return []
    heading = Text(printable(explanation.label), style="bold").append(
        f"  score {explanation.score:.4f}", style="not bold"
    )
    n_trees = steps[-1].tree
    if len(steps) == n_trees:  # one classifier per tree: the path adds nothing to the words
        return [heading]
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(justify="right")
    table.add_column(overflow="fold")
    table.add_column(overflow="fold", style="dim")
    for before, step in zip([None, *steps], steps, strict=False):
        if n_trees > 1 and (before is None or before.tree != step.tree):
            table.add_row("", Text(f"tree {step.tree} of {n_trees}", style="bold"), "")
        reasons = [
            f"{printable(reason.readable)} {reason.contribution:+.2f}" for reason in step.reasons[:_WORDS_OF_A_STEP]
        ]
        table.add_row(f"{step.probability:.3f}", Text(_place(step)), Text(", ".join(reasons)))
    return [heading, table, ""]


def _place(step: PathStep) -> str:
    """Where a step leads, with the most frequent labels of a node."""
    if step.n_labels == 1 and step.frequent == (step.name,):
        return printable(step.name)
    others = ", ..." if step.n_labels > len(step.frequent) else ""
    return f"{printable(step.name)} ({step.n_labels:,}: {printable(', '.join(step.frequent))}{others})"


def explanation_table(explanation: TagExplanation, words: int) -> Table:
    """The contributions that add up to the margin; the last row sums up those not shown."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE, show_edge=False, pad_edge=False, header_style="bold", show_footer=True)
    total = "(margin)" if explanation.steps else printable(explanation.label)
    table.add_column("word", footer=total, overflow="fold")
    table.add_column("adds", footer=f"{explanation.margin:+.4f}", justify="right")
    shown, others = explanation.reasons[:words], explanation.reasons[words:]
    for reason in shown:
        style = "green" if reason.contribution > 0 else "red"
        table.add_row(Text(printable(reason.readable)), Text(f"{reason.contribution:+.4f}", style=style))
    if others:
        rest = sum(reason.contribution for reason in others)
        table.add_row(f"({counted(len(others), 'other')})", f"{rest:+.4f}")
    if explanation.intercept:
        table.add_row("(intercept)", f"{explanation.intercept:+.4f}")
    return table


def evidence_table(explanation: TagExplanation, most: int) -> list[RenderableType]:
    """What the second stage looked at, most important first; the contributions add up to the log-odds of the score."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    if not explanation.evidence:
        return []
    total = sum(each.contribution for each in explanation.evidence)
    table = Table(box=box.SIMPLE, show_edge=False, pad_edge=False, header_style="bold", show_footer=True)
    table.add_column("evidence", footer=f"(log-odds of {explanation.score:.3f})", overflow="fold")
    table.add_column("value", justify="right")
    table.add_column("adds", footer=f"{total:+.4f}", justify="right")
    ranked = sorted(explanation.evidence, key=lambda each: (each.value is not None, -abs(each.contribution)))
    for each in ranked[:most]:
        value = "" if each.value is None else f"{each.value:.3g}"
        style = "green" if each.contribution > 0 else "red"
        table.add_row(Text(each.name), value, Text(f"{each.contribution:+.4f}", style=style))
    if ranked[most:]:
        rest = sum(each.contribution for each in ranked[most:])
        table.add_row(f"({counted(len(ranked) - most, 'other')})", "", f"{rest:+.4f}")
    return [table, ""]


def _bar(score: float) -> str:
    """A bar for a score between 0 and 1; ridge scores outside this range are clipped."""
    share = min(max(score, 0.0), 1.0)
    if not (sys.stdout.encoding or "").lower().startswith("utf"):
        return "#" * round(share * _BAR_WIDTH)
    eighths = round(share * _BAR_WIDTH * 8)
    return "█" * (eighths // 8) + (" ▏▎▍▌▋▊▉"[eighths % 8] if eighths % 8 else "")
