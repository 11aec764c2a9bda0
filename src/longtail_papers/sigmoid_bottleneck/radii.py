"""Figure 4: the regions of label sets shrink as the number of labels grows, and slack columns enlarge them.

Without slack, an input of each set is known in closed form, within a factor of about 3 of the largest radius. So only
the sets with the smallest bounds need linear programs to find the first percentile of 20,000 sets.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.audit import ARGMAXABLE, audit, closed_form_inputs, dft_matrix, random_members
from longtail.pictures import Line, Panel, Picture
from longtail.progress import task
from longtail_papers.common import Cell, Column, Context, Section, Table
from longtail_papers.sigmoid_bottleneck.checks import PAPER_UNITS, Proofs, proof_row

_SIZES = (50, 100, 300, 1_000, 3_000, 10_000)
_ACTIVE = (1, 2, 3, 4, 5)
_SAMPLES = 20_000  # as in the paper
_SOLVED = 600  # sets without slack whose linear programs are solved, those with the smallest bounds
_WITH_SLACK = 400
_SLACK = 16
# Of 400 sorted values, these enclose the first percentile of all sets with a confidence of 95 percent.
_INTERVAL = 0, 8


def radii(context: Context, proofs: Proofs) -> Iterator[Section]:
    """The first percentile of the radius against n, for layers of 2k + 1 columns."""
    rows: list[tuple[Cell, ...]] = []
    lines: dict[int, list[Line]] = {0: [], _SLACK: []}
    found = list(measured(context))
    for each in found:
        for row in each["proofs"]:
            proofs.note(tuple(row))
        rows.append(tuple(each[name] for name in _NAMES))
    for style, k in enumerate(sorted({each["k"] for each in found})):
        for slack, name in ((0, "at least"), (_SLACK, "low with slack")):
            known = [(each["n"], each[name]) for each in found if each["k"] == k and each[name] > 0]
            lines[slack].append(Line(f"k = {k}", [n for n, _ in known], [low for _, low in known], style=style))
    yield _section(rows, lines)


def measured(context: Context) -> Iterator[dict[str, Any]]:
    """The records of all numbers of labels and sizes of sets, measured if they are not known."""
    sizes, active = (_SIZES[:2], _ACTIVE[:2]) if context.quick else (_SIZES, _ACTIVE)
    samples, with_slack = (200, 20) if context.quick else (_SAMPLES, _WITH_SLACK)
    records = context.records("radii")
    with task("radii of regions", total=len(sizes) * len(active)) as advance:
        for k in active:
            for n in sizes:
                settings = {"n": n, "k": k, "samples": samples, "with slack": with_slack}
                yield records.measured(settings, partial(_measure, n, k, samples, with_slack))
                advance(1)


def _measure(n: int, k: int, samples: int, with_slack: int) -> dict[str, Any]:
    members = random_members(n, k, samples, n + k)
    distinct, counts = np.unique(members, axis=0, return_counts=True)
    inputs = closed_form_inputs(distinct, n, k)
    bounds = PAPER_UNITS * inputs.radii
    order = np.argsort(bounds, kind="stable")
    solved, others = order[:_SOLVED], order[_SOLVED:]
    plain = audit(
        dft_matrix(n, k), as_sets(distinct[solved], n), candidates=inputs.x[solved], exact_radii=True, n_jobs=1
    )
    exact = plain.radius_is_exact & (plain.verdicts == ARGMAXABLE)
    # A radius that is not known counts as infinite for an upper bound, and as its bound for a lower one.
    known = np.where(exact, PAPER_UNITS * plain.radii, np.inf)
    most = percentile(np.append(known, np.full(len(others), np.inf)), counts[order])
    least = percentile(np.where(exact, known, bounds[solved]).tolist() + bounds[others].tolist(), counts[order])
    slack = audit(
        dft_matrix(n, k, _SLACK, random_state=n + k), as_sets(members[:with_slack], n), exact_radii=True, n_jobs=1
    )
    wide = np.sort(np.where(slack.verdicts == ARGMAXABLE, PAPER_UNITS * slack.radii, 0.0))
    return {
        "k": k,
        "n": n,
        "at least": least,
        "at most": most if np.isfinite(most) else None,
        "median": percentile(bounds, counts, 0.5),
        "low with slack": float(np.percentile(wide, 1)),
        "from": float(wide[_INTERVAL[0]]),
        "to": float(wide[min(_INTERVAL[1], len(wide) - 1)]),
        "median with slack": float(np.median(wide)),
        "proofs": [
            proof_row(f"figure 4: n = {n:,}, k = {k}, no slack, smallest bounds", plain),
            proof_row(f"figure 4: n = {n:,}, k = {k}, {_SLACK} slack columns", slack),
        ],
    }


def percentile(values: Any, counts: Array, share: float = 0.01) -> float:
    """The value that a share of all is not above, where each value counts several times.

    Examples
    --------
    >>> percentile([5.0, 1.0, 3.0], np.array([1, 1, 2]), 0.5)
    3.0
    """
    found = np.asarray(values, dtype=np.float64)
    order = np.argsort(found, kind="stable")
    reached = np.cumsum(counts[order]) >= share * counts.sum()
    return float(found[order[int(np.argmax(reached))]])


_NAMES = ("k", "n", "at least", "at most", "median", "low with slack", "from", "to", "median with slack")


def _section(rows: list[tuple[Cell, ...]], lines: dict[int, list[Line]]) -> Section:
    columns = (
        *(Column("k", "d"), Column("n", ",d"), Column("1st percentile: at least", ".2e")),
        *(Column("at most", ".2e"), Column("median: at least", ".2e")),
        *(Column(f"1st percentile, {_SLACK} slack", ".2e"), Column("from", ".2e"), Column("to", ".2e")),
        Column(f"median, {_SLACK} slack", ".2e"),
    )
    axes = "labels n", "1st percentile of the radius"
    panels = [Panel(f"{slack or 'No'} slack columns", *axes, list(some), True, True) for slack, some in lines.items()]
    return Section(
        "How large the regions are",
        f"Figure 4 of the paper, for layers of sines and cosines with 2k + 1 columns: the first percentile of the "
        f"radius of random sets of k labels. Without slack, {_SAMPLES:,} sets are drawn, as in the paper. Inputs in "
        f"closed form bound all radii from below. The linear programs of the {_SOLVED} sets with the smallest bounds "
        "bound the first percentile from both sides; often the bounds are equal. If 64-bit floats do not resolve these "
        f"sets, there is no upper bound. The picture shows the lower one. With {_SLACK} symmetric random "
        f"slack columns, {_WITH_SLACK} sets are audited, and the first percentile lies between the two next columns "
        "with a confidence of 95 %. The paper draws slack from an interval that leans to one side in its code, which "
        "makes radii larger.",
        [Table("Radii of random sets of k labels", columns, list(rows))],
        [Picture("argmaxable-radii.png", "1st percentile of the radius against the number of labels", [panels])],
    )


def as_sets(members: Array, n: int) -> Any:
    """Rows of label ids as a sparse 0/1 matrix.

    Examples
    --------
    >>> as_sets(np.array([[0, 2]]), 4).toarray().tolist()
    [[1.0, 0.0, 1.0, 0.0]]
    """
    rows = np.repeat(np.arange(len(members)), members.shape[1])
    return sparse.csr_array((np.ones(members.size), (rows, members.ravel())), shape=(len(members), n))
