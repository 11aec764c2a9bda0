"""Figures of several seeds: their mean and standard deviation, and claims checked against them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from longtail_papers.common.tables import Column, Section, Table

Key = TypeVar("Key")


class Spread(NamedTuple):
    """The mean over seeds and their standard deviation, which is None for one seed."""

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


def means(found: Mapping[Key, Sequence[Mapping[str, float]]], name: str) -> dict[Key, float]:
    """The mean of one figure over the runs of each key."""
    return {key: Spread.of(run[name] for run in runs).mean for key, runs in found.items()}


def spreads(runs: Sequence[Mapping[str, float]], names: Iterable[str]) -> list[float | None]:
    """The cells below `spread_columns`: mean and deviation of each figure in turn."""
    return [value for name in names for value in Spread.of(run[name] for run in runs)]


def spread_columns(names: Iterable[str], written: str = ".2f") -> list[Column]:
    """A column for the mean and one for the deviation of each figure."""
    return [column for name in names for column in (Column(name, written), Column(f"± {name}", written))]


class Claim(NamedTuple):
    """A statement, the measured figures, and whether they support it."""

    statement: str
    measured: str
    holds: bool


def statements(claims: Sequence[Claim], basis: str = "", note: str = "") -> Section:
    """A section that says which claims hold.

    Parameters
    ----------
    claims : sequence of Claim
    basis : str
        How the claims are judged; begins the text.
    note : str
        A sentence that ends the text.
    """
    holding = sum(claim.holds for claim in claims)
    counted = f"{holding} of {len(claims)} statements hold in this run."
    broken = "; ".join(f"{claim.statement} ({claim.measured})" for claim in claims if not claim.holds)
    text = [f"{basis}, {counted}" if basis else counted]
    text += [f"These do not hold: {broken}."] * bool(broken)
    text += [note] * bool(note)
    rows: list[tuple[Any, ...]] = [(*claim[:2], "yes" if claim.holds else "no") for claim in claims]
    columns = tuple(map(Column, ("statement", "measured", "holds")))
    return Section("What holds", " ".join(text), [Table("Statements", columns, rows)])
