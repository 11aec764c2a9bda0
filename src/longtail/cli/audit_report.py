"""What `longtail audit` found, as it is printed and drawn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from longtail.cli.terminal import counted
from longtail.printable import printable

if TYPE_CHECKING:
    from longtail.audit import Findings


class Unknown(NamedTuple):
    """Label sets with labels that the model does not know, and their rows."""

    sets: int
    rows: int


def _show_heading(found: Findings, unknown: Unknown, description: str | None) -> None:
    """What there is to say before anything is said of single label sets."""
    n_sets, n_rows = len(found.sets), int(found.sets.rows.sum())
    of = f"{counted(n_sets, 'different label set')} of {counted(n_rows, 'row')}"
    click.echo(f"{of}; {counted(found.n_labels, 'label')}")
    if description is not None:
        click.echo(f"A label is given where {description}.")
    for reason in found.reasons:
        click.echo(reason)
    if unknown.rows:
        have = f"{counted(unknown.rows, 'row')} {'has' if unknown.rows == 1 else 'have'}"
        click.echo(f"{have} labels that the model does not know; it never gives these sets.")
    click.echo()


def show_tree(found: Findings, names: Sequence[str], unknown: Unknown, examples: int) -> None:
    """What a label tree never gives, if anything; of all else there is nothing to count."""
    from longtail.audit import UNARGMAXABLE

    _show_heading(found, unknown, None)
    never = found.count(UNARGMAXABLE)
    if not never:
        click.echo("There is no reason known why any of these sets should never be given.")
        return
    rows = counted(found.count_rows(UNARGMAXABLE), "row")
    click.echo(f"{never:,} of these sets, of {rows}, {'is' if never == 1 else 'are'} never given.")
    _show_examples(found, names, examples)


def show_layer(
    found: Findings,
    names: Sequence[str],
    unknown: Unknown,
    examples: int,
    description: str,
    sweep: Sequence[tuple[int, Findings]],
) -> None:
    from longtail.audit import ARGMAXABLE, UNARGMAXABLE, UNDETERMINED
    from longtail.cli.tables import show, simple_table

    _show_heading(found, unknown, description)
    n_sets = len(found.sets)
    rows = [
        [
            word,
            f"{found.count(verdict):,}",
            f"{100 * found.count(verdict) / n_sets:.1f}%",
            f"{found.count_rows(verdict):,}",
        ]
        for word, verdict in (
            ("some input gets it", ARGMAXABLE),
            ("no input gets it", UNARGMAXABLE),
            ("not known", UNDETERMINED),
        )
    ]
    if unknown.rows:
        # Beside the others, which the shares are of: these were not looked at.
        rows.append(["has a label it does not know", f"{unknown.sets:,}", "-", f"{unknown.rows:,}"])
    show(simple_table(["label sets", "sets", "share", "rows"], rows, right=["sets", "share", "rows"]))
    smallest = found.smallest_radius()
    if smallest is not None:
        bound = "" if found.radii_are_exact else "at least "
        click.echo(f"smallest radius of a set that some input gets: {bound}{smallest:.2g}")
    _show_examples(found, names, examples)
    if sweep:
        click.echo()
        table = [
            [
                str(rank),
                f"{100 * cut.count(UNARGMAXABLE) / n_sets:.1f}%",
                f"{100 * cut.count(UNDETERMINED) / n_sets:.1f}%",
                "-" if (radius := cut.smallest_radius()) is None else f"{radius:.2g}",
            ]
            for rank, cut in sweep
        ]
        columns = ["rank", "no input gets", "not known", "smallest radius"]
        show(simple_table(columns, table, right=columns))
        cut_down = [(rank, cut) for rank, cut in sweep if cut.count(UNARGMAXABLE)]
        if cut_down and not found.count(UNARGMAXABLE):
            rank, cut = cut_down[-1]
            click.echo()
            click.echo(f"at rank {rank}:", nl=False)
            _show_examples(cut, names, examples)


def _show_examples(found: Findings, names: Sequence[str], most: int) -> None:
    for example in found.examples(names, most):
        click.echo()
        labels = ", ".join(printable(name) for name in example["labels"]) or "(no label)"
        click.echo(f"row {example['row']}: {labels}")
        click.echo(f"  {printable(example['says'])}")


def draw(path: str, found: Findings, sweep: Sequence[tuple[int, Findings]]) -> bool:
    """Write the picture; False where there is nothing to draw."""
    from longtail.audit import UNARGMAXABLE
    from longtail.files import whole_file
    from longtail.pictures import Line, Panel, Picture
    from longtail.pictures import draw as draw_picture

    layers = [("whole layer", found), *((f"rank {rank}", cut) for rank, cut in sweep)]
    lines = [
        Line(name, radii, shares, style=style, marked=False)
        for style, (name, each) in enumerate(layers)
        for radii, shares in [_distribution(each)]
        if radii
    ]
    panels = [Panel("Radii", "radius", "percent of label sets, cumulative", lines, log_x=True)] if lines else []
    if sweep:
        shares = [100 * cut.count(UNARGMAXABLE) / len(cut.sets) for _, cut in sweep]
        line = Line("label sets that no input gets", [rank for rank, _ in sweep], shares, style=6)
        panels.insert(0, Panel("Cut down to a rank", "rank", "percent of label sets", [line], log_x=True))
    if not panels:
        return False
    with whole_file(Path(path), parents=True) as file:
        draw_picture(Picture(path, "", [panels]), file)
    return True


def _distribution(found: Findings) -> tuple[list[float], list[float]]:
    """Radii, ascending, and the percentage of sets whose radius is at most that; those without any count as 0."""
    import numpy as np

    radii = np.sort(found.radii[found.radii > 0])
    below = len(found.sets) - len(radii)
    return radii.tolist(), (100 * (below + np.arange(1, len(radii) + 1)) / len(found.sets)).tolist()
