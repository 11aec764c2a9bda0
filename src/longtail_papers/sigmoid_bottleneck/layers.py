"""Real label sets against two kinds of narrow layers: ridge truncated to a rank, and sines and cosines.

Truncated ridge stands in for the paper's networks and needs no training: the nearest rank-d matrix to ridge's weights
is the best that a bottleneck of d features can represent.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from longtail.arrays import Array
from longtail.audit import ARGMAXABLE, UNARGMAXABLE, UNDETERMINED, audit, dft_matrix, dft_witness
from longtail.pictures import Line, Panel, Picture
from longtail.ridge import Ridge
from longtail_papers.common import Benchmark, Cell, Column, Section, Table, tracked
from longtail_papers.sigmoid_bottleneck.checks import PAPER_UNITS, Proofs

ALPHA = 30.0
_SETS = 100
_QUICK_SETS = 20
# Percent of 100 random test label sets that are unargmaxable at scores above 0, by rank.
EARLIER_UNARGMAXABLE = {
    "bibtex": {5: 100.0, 10: 100.0, 20: 100.0, 40: 100.0, 80: 46.0},
    "delicious": {10: 100.0, 25: 100.0, 50: 98.0, 100: 96.0, 200: 44.0},
}
# Percent of sets without a witness, and the median radius, by slack columns.
EARLIER_FOURIER: dict[str, dict[int, tuple[float, float | None]]] = {
    "bibtex": {0: (0.0, 675.0)},
    "delicious": {0: (23.0, None), 16: (0.0, 1.6)},
}
_SLACK = (0, 16)


def sampled_sets(benchmark: Benchmark, quick: bool) -> Any:
    """The label sets of random test rows."""
    n_sets = _QUICK_SETS if quick else _SETS
    chosen = np.random.default_rng(0).choice(benchmark.test.n_rows, size=n_sets, replace=False)
    return benchmark.test.labels[np.sort(chosen)]


def truncated_ridge(benchmarks: list[Benchmark], proofs: Proofs, *, quick: bool) -> Iterator[Section]:
    """The share of test label sets that ridge of rank d cannot give, at scores above 0 and at its own rule."""
    tables: list[Table] = []
    panels: list[Panel] = []
    columns = (
        *(Column("rank", "d"), Column("earlier run: unargmaxable above 0, %", ".0f")),
        *(Column("measured: unargmaxable above 0, %", ".0f"), Column("difference", "+.0f")),
        *(Column("undetermined above 0, %", ".0f"), Column("unargmaxable at its own rule, %", ".0f")),
        *(Column("undetermined at its own rule, %", ".0f"), Column("ms per set", ".0f")),
    )
    for benchmark in benchmarks:
        train, _ = benchmark.features("as published")
        layer = Ridge(ALPHA).fit(train, benchmark.train.labels).output_layer()
        sets = sampled_sets(benchmark, quick)
        earlier = EARLIER_UNARGMAXABLE[benchmark.name]
        ranks = [rank for rank in earlier if not quick or rank <= 40]
        truncate = layer.truncations(max(ranks))
        rows: list[tuple[Cell, ...]] = []
        for rank in tracked(f"truncated ridge on {benchmark.title}", ranks):
            weights = truncate(rank)
            begin = time.perf_counter()
            plain = audit(weights, sets)
            seconds = time.perf_counter() - begin
            ruled = audit(weights, sets, layer.offsets)
            proofs.add(f"{benchmark.title}, ridge of rank {rank}, above 0", plain)
            proofs.add(f"{benchmark.title}, ridge of rank {rank}, its own rule", ruled)
            share, own = (100 * each.count(UNARGMAXABLE) / len(each) for each in (plain, ruled))
            left, own_left = (100 * each.count(UNDETERMINED) / len(each) for each in (plain, ruled))
            difference = share - earlier[rank]
            per_set = 1000 * seconds / len(plain)
            rows.append((rank, earlier[rank], share, difference, left, own, own_left, per_set))
        title = f"{benchmark.title} ({layer.n_labels:,} labels, {sets.shape[0]} label sets)"
        tables.append(Table(title, columns, rows))
        lines = [
            Line("scores above 0", ranks, [float(row[2] or 0) for row in rows], style=0),
            Line("scores of at least 0.5", ranks, [float(row[5] or 0) for row in rows], style=1),
            Line("scores above 0, earlier run", ranks, [earlier[rank] for rank in ranks], style=6, dash="dashed"),
        ]
        panels.append(Panel(benchmark.title, "rank", "unargmaxable, percent of label sets", lines, log_x=True))
        yield Section(
            "Real label sets and narrow layers",
            f"In place of figure 5a. Ridge (alpha {ALPHA:g}, no intercept) is truncated to the nearest matrix of rank "
            f"d, and the label sets of {sets.shape[0]} random test rows are audited. If labels are given at scores "
            "above 0, as in the paper's layers, most sets of real rows are out of reach of narrow layers. At ridge's "
            "own rule, which gives labels that score at least 0.5, far fewer are: the 0.5 acts as a bias that turns "
            f"all labels off. With {sets.shape[0]} sets, a share near one half has a standard error of "
            f"{50 / np.sqrt(sets.shape[0]):.0f} points.",
            list(tables),
            [Picture("argmaxable-ranks.png", "Share of unargmaxable label sets against the rank", [list(panels)])],
        )


def fourier_layers(benchmarks: list[Benchmark], proofs: Proofs, *, quick: bool) -> Iterator[Section]:
    """Layers of sines and cosines for the largest label set of the data, with and without slack columns."""
    rows: list[tuple[Cell, ...]] = []
    columns = (
        *(Column("data"), Column("k", "d"), Column("slack columns", "d"), Column("d", "d")),
        *(Column("earlier run: no witness, %", ".0f"), Column("measured: no witness, %", ".0f")),
        *(Column("unargmaxable, %", ".0f"), Column("earlier run: median radius", ".3g")),
        *(Column("measured: median radius", ".3g"), Column("smallest radius", ".1e")),
        *(Column("radius exact, %", ".0f"), Column("ms per set", ".0f")),
    )
    for benchmark in benchmarks:
        most = max(int(np.diff(part.labels.indptr).max()) for part in (benchmark.train, benchmark.test))
        sets = sampled_sets(benchmark, quick)
        for slack in tracked(f"sines and cosines on {benchmark.title}", _SLACK):
            weights = dft_matrix(benchmark.train.n_labels, most, slack)
            begin = time.perf_counter()
            found = audit(weights, sets, candidates=_witnesses(sets, most, slack), exact_radii=True)
            per_set = 1000 * (time.perf_counter() - begin) / len(found)
            proofs.add(f"{benchmark.title}, sines and cosines, {slack} slack columns", found)
            reached = found.verdicts == ARGMAXABLE
            known = PAPER_UNITS * found.radii[reached]
            exact = 100 * float(np.mean(found.radius_is_exact[reached])) if len(known) else None
            low, median = (float(known.min()), float(np.median(known))) if len(known) else (None, None)
            earlier, earlier_median = EARLIER_FOURIER[benchmark.name].get(slack, (None, None))
            without = 100 * (len(found) - found.count(ARGMAXABLE)) / len(found)
            proven = 100 * found.count(UNARGMAXABLE) / len(found)
            sizes: tuple[Cell, ...] = (benchmark.title, most, slack, weights.shape[1])
            rows.append((*sizes, earlier, without, proven, earlier_median, median, low, exact, per_set))
        yield Section(
            "Layers with a guarantee",
            "The same label sets against sines and cosines of 2k + 1 columns, where k is the size of the largest label "
            "set of the data. In exact arithmetic every set of at most k labels is argmaxable. With 64-bit floats it "
            "depends on the size of the regions; symmetric random slack columns make them larger. Radii that are not "
            "exact are those of the witness, which are lower bounds.",
            [Table(f"Sines and cosines ({sets.shape[0]} label sets each)", columns, list(rows))],
        )


def _witnesses(sets: Any, k: int, slack: int) -> Array | None:
    """The closed-form inputs that exist, with the slack inputs at 0."""
    found = [dft_witness(row, k) for row in sets.toarray()]
    known = [np.concatenate([x, np.zeros(slack)]) for x in found if x is not None]
    return np.array(known) if known else None
