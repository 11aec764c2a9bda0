"""The proofs behind the verdicts of a run: each witness and certificate is checked again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from longtail.audit import ARGMAXABLE, UNARGMAXABLE, UNDETERMINED, Audit, System, nearest_point
from longtail_papers.common import Cell, Column, Section, Table

PAPER_UNITS = 1e4
# The aim, in the paper's units: no label set with a larger region stays undetermined.
RESOLUTION = 1e-8


class Proofs:
    """The verdicts of all parts of a run."""

    def __init__(self) -> None:
        self._rows: list[tuple[Cell, ...]] = []

    def add(self, name: str, audit: Audit) -> None:
        """Check the proofs of an audit again, using only the weights."""
        self.note(tuple(proof_row(name, audit)))

    def note(self, row: tuple[Cell, ...]) -> None:
        """Take a row of an earlier check."""
        self._rows.append(row)

    def section(self) -> Iterator[Section]:
        """One row for each audit so far."""
        columns = (
            Column("part"),
            *(Column(name, ",d") for name in ("label sets", "argmaxable", "unargmaxable")),
            Column("proofs that fail", "d"),
            Column("undetermined", "d"),
            Column("their radius is at most", ".1e"),
        )
        failed = sum(int(row[4] or 0) for row in self._rows)
        above = sum(1 for row in self._rows if row[6] is not None and float(row[6]) > RESOLUTION)
        text = (
            "Every verdict carries a proof that was checked again from the weights, without the solver: an input that "
            "gets the label set, or labels whose signed weights add up to 0. "
            + (f"{failed} proofs fail. " if failed else "All proofs hold. ")
            + "A set without either proof is undetermined, and a mixture of signed weights bounds its radius. "
            + f"The bound is above the target of {RESOLUTION:g} in {above or 'no'} parts."
        )
        yield Section("Proofs", text, [Table("Verdicts and their proofs", columns, self._rows)])


def proof_row(name: str, audit: Audit) -> list[Cell]:
    """Check the proofs of an audit again, using only the weights: the cells of a row."""
    stands = audit.recheck()
    left = np.flatnonzero(audit.verdicts == UNDETERMINED)
    bounds = [largest_radius(audit, int(place), PAPER_UNITS) for place in left]
    decided = audit.verdicts != UNDETERMINED
    return [
        *(name, len(audit), audit.count(ARGMAXABLE), audit.count(UNARGMAXABLE)),
        *(int(np.count_nonzero(decided & ~stands)), len(left), max(bounds, default=None)),
    ]


def largest_radius(audit: Audit, place: int, half_width: float = 1.0) -> float:
    """An upper bound on the radius of a label set for inputs of a box: what a mixture of its signed rows allows."""
    assert audit.layer is not None
    system = System.of(audit.layer)
    signs = system.signs(audit.sets.dense([place]))[0]
    found = nearest_point(system.rows, signs)
    of_labels = system.labels[found.support] >= 0
    support, weights = found.support[of_labels], found.weights[of_labels]
    labels = system.labels[support]
    mixture = weights @ (signs[support, None] * system.rows[support])
    # Distances are for rows of weights of length 1; the rows of the system have the offset too.
    total = float(weights @ (audit.layer.lengths[labels] / system.lengths[labels]))
    width = audit.layer.n_inputs
    offset = float(mixture[-1]) if audit.layer.has_offsets else 0.0
    return max(0.0, half_width * float(np.abs(mixture[:width]).sum()) + offset) / total
