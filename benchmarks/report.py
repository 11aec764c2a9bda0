"""The tables and pictures of a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.data import KS, Prepared
from benchmarks.summary import RIVAL_POINTS, Row, bars, best_peer
from longtail.pictures import Line, Panel, Picture
from longtail_papers.common import Cell, Column, Section, Table


@dataclass(frozen=True)
class Measure:
    """A column: a figure of the child, scaled for reading; `high` if larger is better."""

    figure: str
    title: str
    scale: float
    format: str
    high: bool = False


COST = (
    Measure("train_seconds", "train s", 1, ".2f"),
    Measure("train_cpu_seconds", "train CPU s", 1, ".2f"),
    Measure("memory_peak", "peak MiB", 2**-20, ".0f"),
    Measure("memory_growth", "growth MiB", 2**-20, ".0f"),
    Measure("model_bytes", "model MiB", 2**-20, ".2f"),
    Measure("load_seconds", "load ms", 1e3, ".1f"),
    Measure("rows_per_second", "rows/s", 1, ",.0f", high=True),
    Measure("latency_median", "one row ms", 1e3, ".3f"),
    Measure("latency_p99", "p99 ms", 1e3, ".3f"),
)
QUALITY = tuple(Measure(f"{name}@{k}", f"{name}@{k}", 1, ".2f", high=True) for name in ("P", "nDCG", "PSP") for k in KS)
RANGES = ("train_seconds", "rows_per_second")
_TRAINING, _ACCURACY = "train_cpu_seconds", "nDCG@5"
_PANELS = 3  # side by side
COMPARED = (*COST, QUALITY[0])


def section_of(data: Prepared, rows: Mapping[str, Row]) -> Section:
    """The section of one data set: figures, ratios and a picture."""
    facts = data.facts
    text = (
        f"{facts['train_rows']:,} training rows, {facts['test_rows']:,} test rows, {facts['features']:,} features "
        f"({facts['nonzeros_per_row']:.1f} per row), {facts['labels']:,} labels ({facts['labels_per_row']:.2f} per "
        "row). Medians of the rounds; a range is the smallest and the largest round."
    )
    tables = [cost_table(rows), quality_table(rows), ratio_table(rows)]
    without = [row for row in rows.values() if row.reason]
    if without:
        told = [(row.learner.title, row.status, row.reason) for row in without]
        columns = Column("learner"), Column("status"), Column("reason")
        tables.append(Table("Not measured, or not in every round", columns, told))
    return Section(data.title, text, tables, [picture_of(data, rows)] if any(map(_drawable, rows.values())) else [])


def cost_table(rows: Mapping[str, Row]) -> Table:
    """Time, memory and size."""
    columns = [Column("learner"), Column("key"), Column("version"), Column("rounds", "d")]
    for measure in COST:
        columns.append(Column(measure.title, measure.format))
        if measure.figure in RANGES:
            columns.append(Column(f"{measure.title} range"))
    lines = []
    for row in _measured(rows):
        cells: list[Cell] = [row.learner.title, row.learner.key, row.version, row.rounds]
        for measure in COST:
            cells.append(_scaled(row, measure))
            if measure.figure in RANGES:
                cells.append(_range(row, measure))
        lines.append(tuple(cells))
    return Table("Time, memory, size", tuple(columns), lines)


def quality_table(rows: Mapping[str, Row]) -> Table:
    """Accuracy in percent."""
    columns = (Column("learner"), *(Column(measure.title, measure.format) for measure in QUALITY))
    lines = [(row.learner.title, *(_scaled(row, measure) for measure in QUALITY)) for row in _measured(rows)]
    return Table("Accuracy, in percent", columns, lines)


def ratio_table(rows: Mapping[str, Row]) -> Table:
    """Each of our figures divided by that of the best peer, which the first line names."""
    best = [best_peer(rows, measure.figure, high=measure.high) for measure in COMPARED]
    columns = (Column("learner"), *(Column(measure.title, ".2f") for measure in COMPARED))
    named: tuple[Cell, ...] = tuple(row.learner.title if row else None for row in best)
    lines: list[tuple[Cell, ...]] = [("best peer", *named)]
    for row in _measured(rows):
        if not row.learner.is_peer:
            cells = (_over(row, peer, measure.figure) for measure, peer in zip(COMPARED, best, strict=True))
            lines.append((row.learner.title, *cells))
    arrows = ", ".join(measure.title for measure in COMPARED if measure.high)
    return Table(f"Ours / best peer: below 1 is better, except for {arrows}", columns, lines)


def bars_section(by_data_set: Mapping[str, Mapping[str, Row]]) -> Section:
    """The bars of comparison on every data set."""
    lines = [
        (title, bar.text, bar.measured, f"{'at least' if bar.at_least else 'at most'} {bar.wanted:g}", bar.verdict)
        for title, rows in by_data_set.items()
        for bar in bars(rows)
    ]
    columns = (Column("data set"), Column("bar"), Column("measured", ".2f"), Column("wanted"), Column("verdict"))
    text = (
        "Ratios compare medians of the same run. A peer counts as having equal P@1 if it is at most "
        f"{RIVAL_POINTS:g} points below ours, so a more accurate peer counts too."
    )
    return Section("Bars of comparison", text, [Table("Bars", columns, lines)])


def picture_of(data: Prepared, rows: Mapping[str, Row]) -> Picture:
    """P@1 against training time and against throughput; ours filled, peers hollow."""
    axes = (("train_seconds", "training time (s)"), ("rows_per_second", "rows predicted per second"))
    drawable = [row for row in rows.values() if _drawable(row)]
    ours = [row for row in drawable if not row.learner.is_peer]
    peers = [row for row in drawable if row.learner.is_peer]
    panels = [
        Panel(
            f"{data.title}: P@1 against {label.split(' (')[0]}",
            label,
            "P@1 (%)",
            [_point(row, figure, style) for group in (ours, peers) for style, row in enumerate(group)],
            log_x=True,
        )
        for figure, label in axes
    ]
    return Picture(f"compare-{data.name}.png", f"Accuracy against speed on {data.title}", [panels])


def accuracy_section(by_data_set: Mapping[str, Mapping[str, Row]]) -> Section:
    """nDCG@5 against the processor time of training, one panel for each data set; ours filled, peers hollow."""
    panels = []
    for title, rows in by_data_set.items():
        drawable = [row for row in rows.values() if all(name in row.figures for name in (_TRAINING, _ACCURACY))]
        points = [
            _point(row, _TRAINING, style, _ACCURACY)
            for peers in (False, True)
            for style, row in enumerate(row for row in drawable if row.learner.is_peer == peers)
        ]
        if points:
            label = "training, processor seconds"
            panels.append(Panel(title, label, "nDCG@5 (%)", points, log_x=True, named_points=True))
    grid = [panels[start : start + _PANELS] for start in range(0, len(panels), _PANELS)]
    picture = Picture("compare-accuracy.png", "Accuracy against the processor time of training", grid)
    text = "Up and to the left is better. Filled marks are longtail, hollow ones its peers."
    return Section("Accuracy against the cost of training", text, [], [picture] if panels else [])


def _point(row: Row, figure: str, style: int, accuracy: str = "P@1") -> Line:
    x, y = row.figures[figure].median, row.figures[accuracy].median
    return Line(row.learner.key, [x], [y], style, dash="dashed" if row.learner.is_peer else "solid")


def _drawable(row: Row) -> bool:
    return all(name in row.figures for name in ("train_seconds", "rows_per_second", "P@1"))


def _measured(rows: Mapping[str, Row]) -> list[Row]:
    return [row for row in rows.values() if row.status == "ok"]


def _scaled(row: Row, measure: Measure) -> float | None:
    value = row.value(measure.figure)
    return None if value is None else value * measure.scale


def _range(row: Row, measure: Measure) -> str | None:
    if measure.figure not in row.figures:
        return None
    figure = row.figures[measure.figure]
    return f"{figure.low * measure.scale:{measure.format}} to {figure.high * measure.scale:{measure.format}}"


def _over(row: Row, peer: Row | None, figure: str) -> float | None:
    mine = row.value(figure)
    other = peer.value(figure) if peer else None
    return mine / other if mine is not None and other else None


def figures_in_a_line(figures: Mapping[str, float]) -> str:
    """The main figures of one round."""
    return (
        f"train {figures['train_seconds']:.2f} s, {figures['rows_per_second']:,.0f} rows/s, "
        f"p99 {1e3 * figures['latency_p99']:.2f} ms, P@1 {figures['P@1']:.2f}"
    )
