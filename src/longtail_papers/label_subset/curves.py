"""Quality against the size of the subset, and the training cost beside other learners."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from longtail.pictures import Line, Panel, Picture
from longtail.subset import LabelSubsetClassifier
from longtail.trees import LabelTree
from longtail_papers.common import Cell, Column, Section, Table, tracked
from longtail_papers.label_subset.settings import Choice, Labels
from longtail_papers.label_subset.tables import Prepared

_SIZES = (10, 20, 40, 70, 100, 159, 250, 400, 650, 983)
_QUICK_SIZES = (10, 40)
_SUBSETS = (100, 400)
_EQUAL = 0.5  # points of nDCG@5


def quality_by_size(prepared: list[Prepared], choices: dict[str, Choice], *, quick: bool) -> Iterator[Section]:
    """nDCG@5 against the number of learned labels, from 10 to all."""
    panels: list[Panel] = []
    rows: list[tuple[Cell, ...]] = []
    for data in prepared:
        n_labels = data.benchmark.train.n_labels
        sizes = [size for size in (_QUICK_SIZES if quick else _SIZES) if size < n_labels] + [n_labels]
        X, _ = data.features()
        Y = data.benchmark.train.labels
        labels = Labels(X, Y)
        ways = {
            "predictable cut": choices[data.benchmark.name],
            "frequency": Choice("frequency"),
            "random": Choice("random"),
        }
        lines: dict[str, list[float]] = {name: [] for name in (*ways, "predictable cut, 10 % outliers")}
        for size in tracked(f"quality against size on {data.benchmark.title}", sizes):
            for name, choice in ways.items():
                lines[name].append(_quality(data, labels, choice, size, 0))
            lines["predictable cut, 10 % outliers"].append(_quality(data, labels, ways["predictable cut"], size, 0.1))
            rows.append((data.benchmark.title, size, *(values[-1] for values in lines.values())))
        ridge = data.judge(data.ridge().fit(X, Y))[2]
        drawn = [Line(name, sizes, values, style=style) for style, (name, values) in enumerate(lines.items())]
        drawn.append(Line("plain ridge", sizes, [ridge] * len(sizes), style=6, dash="dashed", marked=False))
        panels.append(Panel(data.benchmark.title, "labels in the subset", "nDCG@5, %", drawn, log_x=True))
        columns = (Column("data set"), Column("labels", ",d"), *(Column(name, ".2f") for name in lines))
        yield Section(
            "Quality against the size of the subset",
            "nDCG@5 in percent on the test set. Ridge learns the subset with one alpha, and the other labels are "
            "decoded by least squares. With all labels in the subset every way equals plain ridge.",
            [Table("nDCG@5", columns, list(rows))],
            [Picture("label-subset-size.png", "nDCG@5 against the number of labels learned", [list(panels)])],
        )


def _quality(data: Prepared, labels: Labels, choice: Choice, size: int, outliers: float) -> float:
    model = LabelSubsetClassifier(
        data.ridge(),
        outliers=outliers,
        outlier_estimator=data.ridge(),
        decoder="ridge",
        decoder_alpha=choice.decoder_alpha if choice.decoder == "ridge" else 1.0,
        subset=labels.select(choice, size),
    )
    X, _ = data.features()
    return data.judge(model.fit(X, data.benchmark.train.labels))[2]


def cost(data: Prepared, *, quick: bool) -> Iterator[Section]:
    """Processor time of training against quality, beside plain ridge and a label tree."""
    X, _ = data.features()
    Y = data.benchmark.train.labels
    ridge = data.ridge().set_params(solver="auto")
    sizes = [size for size in _SUBSETS if size < Y.shape[1]][: 1 if quick else None] or [Y.shape[1] // 2]
    learners: list[tuple[str, Any]] = [("plain ridge", ridge), ("label tree", LabelTree())]
    for size in sizes:
        for outliers, name in ((0, "no outliers"), (0.1, "10 % outliers"), ("all", "all outliers")):
            model = LabelSubsetClassifier(ridge, size, outliers, ridge, affinity="conditional")
            learners.append((f"subset of {size}, {name}", model))
        tree = LabelSubsetClassifier(ridge, size, "all", LabelTree(), affinity="conditional")
        learners.append((f"subset of {size}, a tree for the outliers", tree))
    measured: list[tuple[str, float, float]] = []
    for name, learner in tracked(f"cost on {data.benchmark.title}", learners):
        start = time.process_time()
        learner.fit(X, Y)
        measured.append((name, time.process_time() - start, data.judge(learner)[2]))
    yield _cost_section(data, measured)


def _cost_section(data: Prepared, measured: list[tuple[str, float, float]]) -> Section:
    (_, ridge_time, ridge), (_, tree_time, tree), *subsets = measured
    numbers = ("training, s", "of plain ridge", "nDCG@5, %")
    columns = (Column("learner"), *(Column(name, ".2f") for name in numbers))
    rows: list[tuple[Cell, ...]] = [
        (name, seconds, seconds / ridge_time, quality) for name, seconds, quality in measured
    ]
    text = (
        f"Processor time of training over all threads on {data.benchmark.title}, including the choice of the subset "
        "(conditional affinity, predictability) and the decoder. "
    )
    for name, bar, seconds in (("plain ridge", ridge, ridge_time), ("the label tree", tree, tree_time)):
        equal = [(cost, who) for who, cost, quality in subsets if quality >= bar - _EQUAL]
        if equal:
            best, who = min(equal)
            text += (
                f"The cheapest within {_EQUAL:g} points of {name} is the {who}: {best:.2f} s against {seconds:.2f} s, "
                f"a ratio of {best / seconds:.2f}. "
            )
        else:
            text += f"No subset comes within {_EQUAL:g} points of {name}. "
    return Section("Training cost", text.rstrip(), [Table(data.benchmark.title, columns, rows)])
