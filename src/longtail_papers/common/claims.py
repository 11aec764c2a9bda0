"""What figures of several seeds say: their mean and spread, and statements held against them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from longtail_papers.common.tables import Column, Section, Table


class Spread(NamedTuple):
    """The mean over seeds and their standard deviation, which one seed does not have."""

    mean: float
    deviation: float | None

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        """
        Examples
        --------
        >>> Spread.of([1.0, 2.0, 3.0])
        Spread(mean=2.0, deviation=1.0)
        >>> Spread.of([1.0])
        Spread(mean=1.0, deviation=None)
        """
        found = np.array(list(values))
        return cls(float(found.mean()), float(found.std(ddof=1)) if len(found) > 1 else None)


class Claim(NamedTuple):
    """A statement, the figures it is about, and whether they agree."""

    statement: str
    measured: str
    holds: bool


def statements(claims: Sequence[Claim], basis: str = "", note: str = "") -> Section:
    """A section that says which claims hold.

    Parameters
    ----------
    claims : sequence of Claim
    basis : str
        What the claims are judged by, to begin the text with.
    note : str
        A sentence to end it with.
    """
    holding = sum(claim.holds for claim in claims)
    counted = f"{holding} of {len(claims)} statements hold in this run."
    broken = "; ".join(f"{claim.statement} ({claim.measured})" for claim in claims if not claim.holds)
    text = [f"{basis}, {counted}" if basis else counted]
    text += [f"Those that do not: {broken}."] * bool(broken)
    text += [note] * bool(note)
    rows = [(claim.statement, claim.measured, "yes" if claim.holds else "no") for claim in claims]
    columns = tuple(map(Column, ("statement", "measured", "holds")))
    return Section("What holds", " ".join(text), [Table("Statements", columns, rows)])
