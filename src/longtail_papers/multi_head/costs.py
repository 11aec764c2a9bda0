"""Figure 7: what the last layer costs with 10^4 to 10^6 labels, as `head_costs` measures it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from longtail.parallel import count_cores
from longtail.pictures import Line, Panel, Picture
from longtail_papers.common.claims import Claim
from longtail_papers.common.records import Figures, Records
from longtail_papers.common.tables import Cell, Column, Section, Table
from longtail_papers.multi_head.head_costs import BAR_AT, BATCH, CONTESTANTS, SIZES, WIDTH, compare

_MIB = 2**20
_QUICK_SIZES = (1_000,)
_ROUNDS, _PASSES = 2, 5
_NAMES = (
    *("one-hot, single", "product, single", "sampling, single", "cascade, single"),
    *("one-hot, multi", "cascade, multi"),
)
_STYLES = {"one-hot": 0, "product": 1, "sampling": 2, "cascade": 3}
_CLAIMED = tuple(name for name in _NAMES if CONTESTANTS[name].at_least)


def costs(records: Records[Figures], claims: list[Claim], *, quick: bool) -> Iterator[Section]:
    """A section that grows with the numbers of labels."""
    measured: dict[int, dict[str, dict[str, float]]] = {}
    for n_labels in _QUICK_SIZES if quick else SIZES:
        measured[n_labels] = _compared(n_labels, records, _ROUNDS if n_labels == BAR_AT else 1)
        yield _section(measured)
    claims += _claims(measured.get(BAR_AT, {}))


def _compared(n_labels: int, records: Records[Figures], rounds: int) -> dict[str, dict[str, float]]:
    """The comparison, or what is known of it: heads are compared in one run or not at all."""
    found: dict[str, dict[str, float]] = {}

    def row(name: str) -> dict[str, float]:
        if not found:
            found.update(compare(n_labels, _NAMES, rounds, _PASSES, count_cores()))
        return found[name]

    settings = {"labels": n_labels, "rounds": rounds, "cores": count_cores()}
    return {name: records.measured({"cost of": name, **settings}, partial(row, name)) for name in _NAMES}


def _section(measured: dict[int, dict[str, dict[str, float]]]) -> Section:
    columns = (
        *(Column("labels", ",d"), Column("head"), Column("seconds", ".4f"), Column("faster than one-hot", ".1f")),
        *(Column("least", ".1f"), Column("most", ".1f"), Column("paper, GPU", "g")),
        *(Column("weights, MiB", ",.1f"), Column("a pass takes besides, MiB", ",.1f"), Column("10^9 mul-adds", ".2f")),
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
        f"A pass forward and backward of the last layer alone, {BATCH} rows of {WIDTH} features, without an optimiser; "
        f"labels are drawn evenly, one in a row (single) or 5 (multi). The product has two heads of equal lengths, "
        "sampling and cascade many short blocks. Every head is measured in a process of its own, "
        f"up to {_PASSES} passes after a first one that is not timed, in {_ROUNDS} rounds in which the heads take "
        f"turns with {BAR_AT:,} labels, and in one with fewer: the ratio is the median over rounds, with its least and "
        "most. The paper's factors are those of its figure 7."
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


def _claims(heads: dict[str, dict[str, float]]) -> Iterator[Claim]:
    for name in _CLAIMED if heads else ():
        bar = CONTESTANTS[name].at_least or 0.0
        ratio = heads[name]["ratio"]
        statement = f"{BAR_AT:,} labels: {name} is at least {bar:g} times as fast as one-hot"
        yield Claim(statement, f"{ratio:.1f}", ratio >= bar)
