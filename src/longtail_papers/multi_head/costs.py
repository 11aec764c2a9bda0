"""Figure 7: the cost of the last layer with 10^4 to 10^6 labels, as `head_costs` measures it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from longtail.parallel import count_cores
from longtail.pictures import Line, Panel, Picture
from longtail_papers.common import Cell, Claim, Column, Context, Figures, Records, Section, Table
from longtail_papers.multi_head.head_costs import BAR_AT, BATCH, CONTESTANTS, SIZES, WIDTH, compare

_MIB = 2**20
_QUICK_SIZES = (1_000,)
_ROUNDS, _PASSES = 2, 5
_NAMES = (
    *("one-hot, single", "product, single", "sampling, single", "sampling, dense gradients, single"),
    *("cascade, single", "cascade, dense gradients, single"),
    *("one-hot, multi", "cascade, multi", "cascade, dense gradients, multi"),
)
_STYLES = {"one-hot": 0, "product": 1, "sampling": 2, "cascade": 3}
_CLAIMED = tuple(name for name in _NAMES if CONTESTANTS[name].at_least)


def costs(context: Context) -> Iterator[Section]:
    """A section that grows with the number of labels."""
    measured: dict[int, dict[str, Figures]] = {}
    for n_labels in _QUICK_SIZES if context.quick else SIZES:
        measured[n_labels] = _compared(n_labels, context.records("costs"), _ROUNDS if n_labels == BAR_AT else 1)
        yield _section(measured)
    context.claims += _claims(measured.get(BAR_AT, {}))


def _compared(n_labels: int, records: Records[Figures], rounds: int) -> dict[str, Figures]:
    """The recorded comparison; a new one measures all heads in the same run."""
    found: dict[str, Figures] = {}

    def row(name: str) -> Figures:
        if not found:
            found.update(compare(n_labels, _NAMES, rounds, _PASSES, count_cores()))
        return found[name]

    settings = {"labels": n_labels, "rounds": rounds, "cores": count_cores()}
    return {name: records.measured({"cost of": name, **settings}, partial(row, name)) for name in _NAMES}


def _section(measured: dict[int, dict[str, Figures]]) -> Section:
    columns = (
        *(Column("labels", ",d"), Column("head"), Column("seconds", ".4f"), Column("faster than one-hot", ".1f")),
        *(Column("minimum", ".1f"), Column("maximum", ".1f"), Column("paper, GPU", "g")),
        *(Column("weights, MiB", ",.1f"), Column("memory of a pass, MiB", ",.1f"), Column("10^9 mul-adds", ".2f")),
    )
    rows: list[tuple[Cell, ...]] = []
    for n_labels, heads in measured.items():
        for name, row in heads.items():
            ratios: tuple[Cell, ...] = (row["ratio"], row["least"], row["most"])
            if name.startswith("one-hot"):
                ratios = (None, None, None)
            paper = CONTESTANTS[name].at_least if n_labels == BAR_AT else None
            sizes = (row["parameters"] / _MIB, row["growth"] / _MIB, row["multiply_adds"] / 1e9)
            rows.append((n_labels, name, row["seconds"], *ratios, paper, *sizes))
    text = (
        f"A forward and backward pass of the last layer alone, {BATCH} rows of {WIDTH} features, without an optimiser. "
        "Labels are drawn uniformly, one per row (single) or 5 (multi). The product has two heads of equal length; "
        "sampling and cascade have many short blocks, and sparse gradients unless the line says dense: these are as "
        "large as the table, and clearing them takes most of the time. Every head runs in its own process, with up to "
        f"{_PASSES} passes after a first one that is not timed. The heads take turns, in {_ROUNDS} rounds with "
        f"{BAR_AT:,} labels and in one round with fewer. The ratio is the median over rounds, with its minimum and "
        "maximum. The paper's factors are those of its figure 7."
    )
    panels = []
    for kind in ("single", "multi"):
        x = list(measured)
        lines = [
            Line(head, x, [measured[n][f"{head}, {kind}"]["seconds"] for n in x], style=style)
            for head, style in _STYLES.items()
            if f"{head}, {kind}" in _NAMES
        ]
        panels.append(Panel(f"{kind}-label", "labels", "seconds of a pass", lines, log_x=True, log_y=True))
    picture = Picture("multi-head-cost.png", "Time of the last layer, forward and backward", [panels])
    return Section("Cost of the last layer", text, [Table("Forward and backward", columns, rows)], [picture])


def _claims(heads: dict[str, Figures]) -> Iterator[Claim]:
    for name in _CLAIMED if heads else ():
        bar = CONTESTANTS[name].at_least or 0.0
        ratio = heads[name]["ratio"]
        statement = f"{BAR_AT:,} labels: {name} is at least {bar:g} times as fast as one-hot"
        yield Claim(statement, f"{ratio:.1f}", ratio >= bar)
