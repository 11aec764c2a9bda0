"""Learning from labels of groups, beside the figures of the paper's tables 2 and 5."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from longtail.pictures import Dash, Line, Panel, Picture
from longtail_papers.common import PRECISIONS, Benchmark, Cell, Column, Records, Section, Table
from longtail_papers.eagle.claims import PAPER, PAPER_ORACLE, claims
from longtail_papers.eagle.runs import ORACLE, WAYS, Findings, Grouping, Run, Summary, measure

SIZES = (2, 4, 6, 8, 10)
DEPTHS = (8, 9, 10, 11, 12)
SEEDS = (0, 1, 2)
N_TREES = 3

# Colour and dash of a way in pictures; two variants that differ little share a colour.
_LOOKS: dict[str, tuple[int, Dash]] = {
    ORACLE: (6, "solid"),
    "all": (0, "solid"),
    "EAGLE-0, argmax": (1, "solid"),
    "EAGLE, argmax": (2, "solid"),
    "EAGLE, count": (3, "solid"),
    "EAGLE-0, joint": (4, "dotted"),
    "EAGLE, joint": (4, "solid"),
    "iterate, joint": (5, "solid"),
}
_KINDS = {"random": ("Random groups", "group size"), "clustered": ("Clustered groups", "depth")}


def labels_of_groups(benchmark: Benchmark, runs: Records[Run], *, quick: bool) -> Iterator[Section]:
    """Every way on every grouping; the sections grow by one grouping and seed at a time."""
    sizes, depths = ((4,), (8,)) if quick else (SIZES, DEPTHS)
    seeds, n_trees = (SEEDS[:1], 1) if quick else (SEEDS, N_TREES)
    groupings = [Grouping("random", size) for size in sizes] + [Grouping("clustered", depth) for depth in depths]
    features = benchmark.features("rows normalised")
    published = benchmark.name == "eurlex-4k"
    for done in measure(benchmark, features, groupings, seeds, runs, n_trees=n_trees):
        findings = Findings.of(done, groupings)
        if published:
            yield from claims(findings)
        for kind in _KINDS:
            if findings.of_kind(kind):
                yield _section(benchmark, findings, kind, n_trees, published)


def _section(benchmark: Benchmark, findings: Findings, kind: str, n_trees: int, published: bool) -> Section:
    title, amount = _KINDS[kind]
    found = findings.of_kind(kind)
    how = (
        "Training rows are grouped at random"
        if kind == "random"
        else "Training rows are clustered by repeated balanced bisection; depth d makes 2^d groups"
    )
    text = (
        f"{how}, and the labels of a group's members are merged into a list. Each way assigns these labels to rows; "
        f"`LabelTree(n_trees={n_trees})` is trained on the result, with rows of length 1, and judged on the "
        f"{benchmark.test.n_rows:,} test rows of {benchmark.title}, in percent. Every figure is the mean over seeds, ± "
        "the standard deviation; a seed is used for the grouping and for the tree. Only the oracle knows the true "
        "labels. `argmax` is the paper's rule; `count` gives a label that occurs several times in a group to as many "
        "members; `joint` distributes the labels of a group over all its members; `iterate` assigns labels by trained "
        "models; `auto` chooses a strategy on held-out groups (first seed only). *Labels true* is the percentage of "
        "the assigned labels that the rows really have."
    )
    tables = [_overview(title, amount, findings, found)]
    tables += [_table(grouping, findings.oracle, each, published) for grouping, each in found.items()]
    picture = Picture(
        f"eagle-{kind}.png",
        f"P@1 against {amount}" + ("; dashed: as published" if published else ""),
        [[_panel(kind, metric, findings.oracle, found, published) for metric in ("P@1", "P@5")]],
    )
    return Section(title, text, tables, [picture])


def _overview(title: str, amount: str, findings: Findings, found: dict[Grouping, dict[str, Summary]]) -> Table:
    columns = (
        Column(amount, "d"),
        Column(ORACLE, ".2f"),
        *(Column(way.name, ".2f") for way in WAYS),
        Column("auto chose"),
    )
    rows: list[tuple[Cell, ...]] = []
    for grouping, ways in found.items():
        means = [ways[way.name].mean("P@1") if way.name in ways else None for way in WAYS]
        chosen = ways["auto"].chosen if "auto" in ways else None
        rows.append((grouping.amount, findings.oracle.mean("P@1"), *means, chosen))
    return Table(f"{title}: P@1", columns, rows)


def _table(grouping: Grouping, oracle: Summary, ways: dict[str, Summary], published: bool) -> Table:
    paper = {ORACLE: PAPER_ORACLE, **PAPER.get(grouping, {})} if published else {}
    columns: list[Column] = [Column("labels"), Column("seeds", "d")]
    for metric in PRECISIONS:
        columns += [Column(f"{metric} paper", ".2f")] if published else []
        columns += [Column(metric, ".2f"), Column(f"± {metric}", ".2f")]
    columns += [Column("P@1 - paper", "+.2f")] if published else []
    columns += [Column("labels true, %", ".1f"), Column("strategy")]
    rows: list[tuple[Cell, ...]] = []
    for name, summary in {ORACLE: oracle, **ways}.items():
        row: list[Cell] = [name, summary.seeds]
        expected: Sequence[float | None] = paper.get(name, (None,) * len(PRECISIONS))
        for metric, value in zip(PRECISIONS, expected, strict=True):
            row += [value] if published else []
            row += summary.precision[metric]
        if published:
            row.append(None if expected[0] is None else summary.mean("P@1") - expected[0])
        rows.append((*row, summary.placed, summary.chosen))
    return Table(grouping.name.capitalize(), tuple(columns), rows)


def _panel(
    kind: str, metric: str, oracle: Summary, found: dict[Grouping, dict[str, Summary]], published: bool
) -> Panel:
    title, amount = _KINDS[kind]
    place = PRECISIONS.index(metric)
    amounts = [grouping.amount for grouping in found]
    lines = [Line(ORACLE, amounts, [oracle.mean(metric)] * len(amounts), style=_LOOKS[ORACLE][0], marked=False)]
    for name, (style, dash) in _LOOKS.items():
        measured = {g.amount: ways[name].mean(metric) for g, ways in found.items() if name in ways}
        if measured:
            lines.append(Line(name, list(measured), list(measured.values()), style=style, dash=dash))
        paper = {g.amount: PAPER[g][name][place] for g in found if published and name in PAPER[g]}
        if paper:
            paper_name = f"{name.partition(',')[0]}, paper"
            lines.append(Line(paper_name, list(paper), list(paper.values()), style=style, dash="dashed"))
    return Panel(f"{title}, {metric}", amount, f"{metric}, percent", lines, x_ticks=amounts)
