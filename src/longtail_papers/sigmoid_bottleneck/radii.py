"""Figure 4: the regions of label sets shrink as the number of labels grows, and slack columns enlarge them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from longtail.audit import ARGMAXABLE, audit, dft_matrix
from longtail.pictures import Line, Panel, Picture
from longtail.progress import task
from longtail_papers.common import Cell, Column, Section, Table
from longtail_papers.sigmoid_bottleneck.checks import PAPER_UNITS, Proofs

_SIZES = (50, 100, 300, 1_000, 3_000, 10_000)
_ACTIVE = (1, 2, 3, 4, 5)
_SAMPLES = 400
_SLACK = 16
_PAPER_SAMPLES = 20_000
_COLUMNS = (("1st percentile", ".2e"), ("median", ".2e"), ("exact, %", ".0f"), ("no witness, %", ".1f"))


def radii(proofs: Proofs, *, quick: bool) -> Iterator[Section]:
    """The first percentile of the radius against n, for layers of 2k + 1 columns."""
    sizes, active, samples = (_SIZES, _ACTIVE, _SAMPLES) if not quick else (_SIZES[:2], _ACTIVE[:2], 20)
    rows: list[tuple[Cell, ...]] = []
    lines: dict[int, list[Line]] = {0: [], _SLACK: []}
    columns = (
        Column("k", "d"),
        Column("n", ",d"),
        *(Column(f"{what}, {slack} slack", form) for slack in lines for what, form in _COLUMNS),
    )
    with task("radii of regions", total=len(sizes) * len(active)) as advance:
        for style, k in enumerate(active):
            low: dict[int, list[float]] = {slack: [] for slack in lines}
            for n in sizes:
                sets = random_sets(n, k, samples, seed=n + k)
                cells: list[Cell] = [k, n]
                for slack in lines:
                    found = audit(dft_matrix(n, k, slack, random_state=n + k), sets, exact_radii=True)
                    proofs.add(f"figure 4: n = {n:,}, k = {k}, {slack} slack columns", found)
                    scaled = np.where(found.verdicts == ARGMAXABLE, PAPER_UNITS * found.radii, 0.0)
                    first, median = (float(value) for value in np.percentile(scaled, (1, 50)))
                    low[slack].append(first)
                    reached = found.verdicts == ARGMAXABLE
                    exact = 100 * float(np.mean(found.radius_is_exact[reached])) if reached.any() else None
                    cells += [first, median, exact, 100 * float(np.mean(scaled == 0))]
                rows.append(tuple(cells))
                advance(1)
            for slack, values in low.items():
                known = [(n, value) for n, value in zip(sizes, values, strict=False) if value > 0]
                name = f"k = {k}"
                lines[slack].append(Line(name, [n for n, _ in known], [value for _, value in known], style=style))
            yield _section(columns, rows, lines, samples)


def _section(
    columns: tuple[Column, ...], rows: list[tuple[Cell, ...]], lines: dict[int, list[Line]], samples: int
) -> Section:
    axes = "labels n", "1st percentile of the radius"
    panels = [Panel(f"{slack or 'No'} slack columns", *axes, list(some), True, True) for slack, some in lines.items()]
    return Section(
        "How large the regions are",
        f"Figure 4 of the paper, for layers of sines and cosines with 2k + 1 columns: the first percentile of the "
        f"radius of random sets of k labels, without and with {_SLACK} symmetric random slack columns. Each point has "
        f"{samples} sets (the paper has {_PAPER_SAMPLES:,}), so the first percentile is close to the minimum. A radius "
        "is exact if the linear program confirms it; otherwise it is the radius of the witness, a lower bound. That "
        "is mostly the case below a millionth of the box, where the solver's tolerance ends. Sets without a witness "
        "count as radius 0; a percentile of 0 is not drawn.",
        [Table(f"Radii ({samples} random sets of k labels each)", columns, list(rows))],
        [Picture("argmaxable-radii.png", "1st percentile of the radius against the number of labels", [panels])],
    )


def random_sets(n: int, k: int, samples: int, seed: int) -> Any:
    """Random sets of exactly `k` of `n` labels.

    Examples
    --------
    >>> random_sets(10, 3, 4, seed=0).sum(axis=1).tolist()
    [3.0, 3.0, 3.0, 3.0]
    """
    rng = np.random.default_rng(seed)
    labels = np.concatenate([rng.choice(n, size=k, replace=False) for _ in range(samples)])
    rows = np.repeat(np.arange(samples), k)
    return sparse.csr_array((np.ones(len(rows)), (rows, labels)), shape=(samples, n))
