"""Curves of ridge on the benchmarks: accuracy against alpha, against weights kept, and against the tolerance."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from longtail.pictures import Dash, Line, Panel, Picture
from longtail.ridge import Ridge
from longtail_papers.common import Cell, Column, Context, Section, Table, tracked

_SWEEP = {
    "bibtex": ("as published", (1, 3, 10, 30, 60, 92, 150, 300, 1000)),
    "delicious": ("as published", (1, 3, 10, 30, 50, 100, 300, 1000, 3000)),
    "eurlex-4k": ("log(1+v), rows normalised", (0.03, 0.1, 0.2, 0.3, 0.5, 1, 3, 10)),
}
_SWEPT = ("P@1", "P@5", "PSP@5")
# Features and alpha of the curves that hold alpha fixed.
_FIXED = {
    "bibtex": ("as published", 92.0),
    "delicious": ("as published", 50.0),
    "eurlex-4k": ("log(1+v), rows normalised", 0.3),
}
_SHARES = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005)
# Our own earlier runs of another implementation: percent of P@5 kept, by the share of weights kept.
EARLIER_KEPT = {"bibtex": {0.5: 99.5, 0.2: 99.0, 0.1: 98.4, 0.05: 96.1, 0.02: 94.2, 0.01: 92.0}}
_TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4)
# On all labels of EURLex-4K the four tolerances would take about ten minutes.
_MOST_TOLERANCE_LABELS = 500
_TOLERANCE_SETS = ("bibtex", "eurlex-4k")


def alpha_sweep(context: Context) -> Iterator[Section]:
    """Accuracy against alpha, plain and weighted; one fit serves both because weighting only scales the scores."""
    tables: list[Table] = []
    panels: list[Panel] = []
    columns = (Column("alpha", "g"), *(Column(f"{m} {v}", ".2f") for v in ("plain", "weighted") for m in _SWEPT))
    for benchmark in context.benchmarks:
        scaling, alphas = _SWEEP[benchmark.name]
        alphas = alphas[::3] if context.quick else alphas
        train, test = benchmark.features(scaling)
        values: list[list[float]] = []
        for alpha in tracked(f"sweep of alpha on {benchmark.title}", alphas):
            model = Ridge(alpha).fit(train, benchmark.train.labels)
            judged = [benchmark.judge(model.predict_topk(test, weighting=w)[0]) for w in (None, "target")]
            values.append([scores[metric] for scores in judged for metric in _SWEPT])
        rows: list[tuple[Cell, ...]] = [(alpha, *found) for alpha, found in zip(alphas, values, strict=True)]
        tables.append(Table(f"{benchmark.title} ({scaling})", columns, rows))
        plain, weighted = np.split(np.transpose(values), 2)
        variants: list[tuple[str, Any, Dash]] = [("plain", plain, "solid"), ("weighted", weighted, "dashed")]
        lines = [
            Line(f"{metric}, {variant}", alphas, found.tolist(), style=style, dash=dash)
            for variant, part, dash in variants
            for style, (metric, found) in enumerate(zip(_SWEPT, part, strict=True))
        ]
        panels.append(Panel(benchmark.title, "alpha", "percent on the test set", lines, log_x=True))
        yield Section(
            "Accuracy against alpha",
            "Plain, and with targets weighted by inverse propensity. Every alpha is judged on the test set, so the "
            "best value of a column is what a lucky choice would reach, not what to expect. The section above chooses "
            "alpha without the test set.",
            list(tables),
            [Picture("ridge-alpha.png", "P@1, P@5 and PSP@5 against alpha", [list(panels)])],
        )


def sparsification(context: Context) -> Iterator[Section]:
    """The share of P@5 that remains when only the largest weights are kept."""
    tables: list[Table] = []
    lines: list[Line] = []
    shares = _SHARES[::3] if context.quick else _SHARES
    columns = (
        *(Column("weights kept, %", "g"), Column("weights", ",d"), Column("P@5", ".2f")),
        *(Column("earlier run: P@5 kept, %", ".1f"), Column("measured: P@5 kept, %", ".1f")),
        Column("difference", "+.1f"),
    )
    for style, benchmark in enumerate(context.benchmarks):
        scaling, alpha = _FIXED[benchmark.name]
        train, test = benchmark.features(scaling)
        rows: list[tuple[Cell, ...]] = []
        kept: list[float] = []
        whole = 0.0
        earlier_kept = EARLIER_KEPT.get(benchmark.name, {})
        for share in tracked(f"sparsification on {benchmark.title}", shares):
            model = Ridge(alpha, density=share).fit(train, benchmark.train.labels)
            precision = benchmark.judge(model.predict_topk(test)[0])["P@5"]
            whole = precision if share == 1 else whole
            kept.append(100 * precision / whole)
            earlier = earlier_kept.get(share)
            difference = None if earlier is None else round(kept[-1], 1) - earlier
            weights = int(np.count_nonzero(model.coef_)) if share == 1 else int(model.coef_.nnz)
            rows.append((100 * share, weights, precision, earlier, kept[-1], difference))
        tables.append(Table(f"{benchmark.title} ({scaling}, alpha {alpha:g})", columns, rows))
        percent = [100 * share for share in shares]
        lines.append(Line(benchmark.title, percent, kept, style=style))
        if earlier_kept:
            x, y = [100 * share for share in earlier_kept], list(earlier_kept.values())
            lines.append(Line(f"{benchmark.title}, earlier run", x, y, style=6, dash="dashed"))
        axes = "weights kept, percent", "P@5 kept, percent"
        panel = Panel("Ridge with few weights", *axes, list(lines), log_x=True, x_ticks=percent)
        yield Section(
            "Sparsification",
            "Only the largest weights over all labels are kept (`Ridge(density=...)`). P@5 is in percent on the test "
            "set; the share kept is relative to P@5 with all weights.",
            list(tables),
            [Picture("ridge-sparsification.png", "Share of P@5 kept against share of weights kept", [[panel]])],
        )


def tolerance(context: Context) -> Iterator[Section]:
    """How the tolerance of conjugate gradients changes the ranking, compared with the exact solution."""
    tables: list[Table] = []
    columns = (
        *(Column("solver"), Column("tol", "g"), Column("iterations", "d"), Column("seconds", ".2f")),
        *(Column(metric, ".2f") for metric in ("P@1", "P@3", "P@5")),
        *(Column("same five labels, %", ".2f"), Column("in the same order, %", ".2f")),
    )
    tolerances = _TOLERANCES[:2] if context.quick else _TOLERANCES
    for whole in context.benchmarks:
        if whole.name not in _TOLERANCE_SETS:
            continue
        scaling, alpha = _FIXED[whole.name]
        benchmark = whole.with_frequent_labels(_MOST_TOLERANCE_LABELS)
        train, test = benchmark.features(scaling)
        rows: list[tuple[Cell, ...]] = []
        exact = np.zeros((0, 5), dtype=np.int64)
        for tol in tracked(f"tolerance of conjugate gradients on {benchmark.title}", (None, *tolerances)):
            model = Ridge(alpha, solver="primal") if tol is None else Ridge(alpha, solver="cg", tol=tol)
            start = time.perf_counter()
            model.fit(train, benchmark.train.labels)
            seconds = time.perf_counter() - start
            top = model.predict_topk(test)[0]
            exact = top if tol is None else exact
            same_set = 100 * float(np.mean(np.all(np.sort(top, axis=1) == np.sort(exact, axis=1), axis=1)))
            same_order = 100 * float(np.mean(np.all(top == exact, axis=1)))
            judged = benchmark.judge(top)
            iterations = None if tol is None else model.n_iter_
            precision = [judged[f"P@{k}"] for k in (1, 3, 5)]
            rows.append((model.solver_, tol, iterations, seconds, *precision, same_set, same_order))
        labels = f"{benchmark.train.n_labels} labels"
        tables.append(Table(f"{benchmark.title} ({scaling}, alpha {alpha:g}, {labels})", columns, rows))
        yield Section(
            "Tolerance of conjugate gradients",
            "Conjugate gradients stop when a label's preconditioned residual is below `tol` times its start. The last "
            "columns give the percentage of test rows whose five best labels are those of the exact solution, in any "
            f"order and in the same order. Larger vocabularies are cut to the {_MOST_TOLERANCE_LABELS} most frequent "
            "labels, in training and in the truth.",
            list(tables),
        )
