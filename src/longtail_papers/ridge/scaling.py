"""Time and memory of the ridge solvers as rows and features grow, on synthetic sparse data.

Every point runs in its own process, so the peak belongs to the fit alone. The memory plan stands beside the
measurement.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from longtail.errors import NotEnoughMemory
from longtail.parallel import split
from longtail.pictures import Line, Panel, Picture
from longtail.ridge import Ridge
from longtail_papers.common import Cell, Column, Context, Peak, Section, Table, call_isolated, tracked

_SIZES = (1_000, 2_000, 4_000, 8_000, 16_000)
_FIXED = 4_000
_QUICK_SIZES = (200,)
_QUICK_FIXED = 300
_LABELS = 500
_SOLVERS = ("primal", "dual", "cg", "auto")
_ALPHA = 1.0
_MOST_FITS = 3
_REPEAT_BELOW = 5.0
_MIB = 2**20


def planted(n_rows: int, n_features: int, n_labels: int, seed: int = 0) -> tuple[Any, Any]:
    """Sparse rows whose features follow a power law, and the three labels that fit each row best.

    Every label owns a few features; a row's labels are those with the largest weight on the row's features.

    Examples
    --------
    >>> X, Y = planted(20, 50, 10)
    >>> X.shape, Y.shape, set(Y.sum(axis=1).tolist())
    ((20, 50), (20, 10), {3.0})
    """
    rng = np.random.default_rng(seed)
    popularity = 1 / np.arange(1, n_features + 1) ** 0.8
    popularity /= popularity.sum()
    per_row = min(60, n_features)
    columns = rng.choice(n_features, size=n_rows * per_row, p=popularity)
    rows = np.repeat(np.arange(n_rows), per_row)
    counts = sparse.csr_array((np.ones(len(rows), np.float32), (rows, columns)), shape=(n_rows, n_features))
    counts.sum_duplicates()
    counts.data = (1 + np.log(counts.data)).astype(np.float32)
    lengths = np.sqrt(counts.multiply(counts).sum(axis=1))
    X = sparse.csr_array(sparse.diags_array(1 / lengths) @ counts).astype(np.float32)
    owned = min(20, n_features)
    features = rng.choice(n_features, size=n_labels * owned, p=popularity)
    label_of = np.repeat(np.arange(n_labels), owned)
    # A frequent feature says less about a label.
    strength = rng.random(len(features)) / np.sqrt(popularity[features])
    weights = sparse.csr_array((strength, (features, label_of)), shape=(n_features, n_labels))
    best = np.concatenate(
        [np.argpartition(-(X[block] @ weights).toarray(), 3, axis=1)[:, :3] for block in split(n_rows, 2048)]
    )
    values = np.ones(best.size, dtype=np.float32)
    return X, sparse.csr_array((values, (np.repeat(np.arange(n_rows), 3), best.ravel())), shape=(n_rows, n_labels))


def fit_once(folder: str, solver: str) -> dict[str, Any]:
    """Fit the data in `folder` and measure time and memory; runs in its own process."""
    X, Y = (sparse.csr_array(sparse.load_npz(Path(folder, f"{name}.npz"))) for name in ("X", "Y"))
    # Anything loaded or started on first use should not count for the fit.
    Ridge(_ALPHA, solver=solver).fit(X[:64, :64], Y[:64, :8])
    model = Ridge(_ALPHA, solver=solver)
    try:
        with Peak() as peak:
            model.fit(X, Y)
    except NotEnoughMemory as error:
        return {"refused": str(error)}
    # Other work on the machine can only slow a fit down, so the fastest of a few counts.
    seconds = [peak.seconds]
    while len(seconds) < _MOST_FITS and sum(seconds) < _REPEAT_BELOW:
        with Peak() as again:
            model.fit(X, Y)
        seconds.append(again.seconds)
    plan = model.memory_plan(X, Y)
    return {
        "solver": model.solver_,
        "seconds": min(seconds),
        "measured": peak.growth,
        "planned": plan.total,
        "plan": plan.describe(),
    }


def scaling(context: Context) -> Iterator[Section]:
    """Grow the rows at a fixed number of features, then the features at a fixed number of rows."""
    sizes, fixed = (_QUICK_SIZES, _QUICK_FIXED) if context.quick else (_SIZES, _FIXED)
    curves = {f"Rows grow, {fixed:,} features": ("rows", [(size, fixed) for size in sizes])}
    if not context.quick:
        curves[f"Features grow, {fixed:,} rows"] = "features", [(fixed, size) for size in sizes]
    columns = (
        *(Column("rows", ",d"), Column("features", ",d"), Column("solver"), Column("seconds", ".2f")),
        *(Column("peak memory, MiB", ".1f"), Column("planned memory, MiB", ".1f"), Column("peak / planned", ".2f")),
    )
    tables: list[Table] = []
    panels: list[list[Panel]] = [[], []]
    for title, (growing, points) in curves.items():
        measured: dict[str, list[dict[str, Any]]] = {solver: [] for solver in _SOLVERS}
        rows: list[tuple[Cell, ...]] = []
        for n_rows, n_features in tracked(f"cost of the solvers: {title}", points):
            for solver, found in _measure_point(n_rows, n_features):
                rows.append((n_rows, n_features, *_cells(solver, found)))
                if "refused" not in found:
                    measured[solver].append({"size": n_rows if growing == "rows" else n_features, **found})
        tables.append(Table(f"{title}, {_LABELS} labels", columns, rows))
        seconds = _lines(measured, "seconds", 1)
        panels[0].append(Panel(title, growing, "seconds", seconds, True, True, sizes))
        memory = [*_lines(measured, "measured", _MIB), *_lines(measured, "planned", _MIB, planned=True)]
        panels[1].append(Panel(title, growing, "peak memory, MiB (dashed: planned)", memory, True, True, sizes))
        yield Section(
            "Cost of the solvers",
            "The paper does not say how ridge scales. Synthetic data: about 50 non-zeros per row with power-law "
            f"features, {_LABELS} planted labels, alpha {_ALPHA:g}. Each point runs in a fresh process. Time is the "
            f"fastest of up to {_MOST_FITS} fits; only short fits are repeated. Memory is the growth of resident "
            "memory during the first fit, beside the plan that `fit` checks before it allocates; the plan should be "
            "the larger of the two. `auto` includes the time it takes to choose.",
            list(tables),
            [Picture("ridge-scaling.png", "Time and memory of the solvers", [list(row) for row in panels])],
        )


def _measure_point(n_rows: int, n_features: int) -> Iterator[tuple[str, dict[str, Any]]]:
    with tempfile.TemporaryDirectory() as folder:
        for name, matrix in zip(("X", "Y"), planted(n_rows, n_features, _LABELS), strict=True):
            sparse.save_npz(Path(folder, f"{name}.npz"), matrix, compressed=False)
        for solver in _SOLVERS:
            yield solver, call_isolated(f"{__name__}:fit_once", folder=folder, solver=solver)


def _cells(solver: str, found: dict[str, Any]) -> tuple[Cell, ...]:
    if "refused" in found:
        return (f"{solver}: does not fit in memory", None, None, None, None)
    name = f"auto: {found['solver']}" if solver == "auto" else solver
    peak, planned = found["measured"], found["planned"]
    return (name, found["seconds"], peak / _MIB, planned / _MIB, peak / planned)


def _lines(measured: dict[str, list[dict[str, Any]]], key: str, unit: int, planned: bool = False) -> list[Line]:
    return [
        Line(
            "" if planned else solver,
            [point["size"] for point in points],
            [point[key] / unit for point in points],
            style=6 if solver == "auto" else style,
            dash="dashed" if planned else "dotted" if solver == "auto" else "solid",
            marked=not planned,
        )
        for style, (solver, points) in enumerate(measured.items())
        if points and not (planned and solver == "auto")
    ]
