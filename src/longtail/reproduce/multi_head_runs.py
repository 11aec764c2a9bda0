"""Networks trained and judged for `reproduce multi-head`: figures kept in a file, means over seeds, statements.

A figure is measured once for its settings, so that a run that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from longtail.data.cache import written_whole
from longtail.errors import InvalidInput
from longtail.neural.heads import Head
from longtail.neural.network import Network
from longtail.progress import stage
from longtail.reproduce.tables import Column, Section, Table
from longtail.version import __version__

SEEDS = (0, 1, 2)

Figures = dict[str, float]


class Claim(NamedTuple):
    """A statement, the figures it is about, and whether they agree."""

    statement: str
    measured: str
    holds: bool


class Spread(NamedTuple):
    """The mean over seeds and the standard deviation."""

    mean: float
    deviation: float

    @classmethod
    def of(cls, runs: Sequence[Figures], name: str) -> Spread:
        """
        Examples
        --------
        >>> Spread.of([{"P@1": 1.0}, {"P@1": 3.0}], "P@1")
        Spread(mean=2.0, deviation=1.0)
        """
        values = [run[name] for run in runs]
        return cls(float(np.mean(values)), float(np.std(values)))


class Records:
    """Figures by the settings they were measured with, in a file.

    Parameters
    ----------
    path : path
        Need not exist. What another version measured is measured anew.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: dict[str, Figures] = {}
        if path.is_file():
            try:
                content = json.loads(path.read_text(encoding="utf-8"))
                self._known = dict(content["figures"]) if content["version"] == __version__ else {}
            except (ValueError, KeyError, TypeError) as error:
                raise InvalidInput(
                    f"{path} does not hold the figures of an experiment: {error!r}; remove it to measure anew"
                ) from None

    def measured(self, settings: dict[str, Any], measure: Callable[[], Figures]) -> Figures:
        """What is known of these settings, or what `measure` finds now."""
        key = json.dumps(settings, sort_keys=True)
        if key not in self._known:
            with stage(", ".join(f"{name} {value}" for name, value in settings.items() if value not in ("", None))):
                self._known[key] = measure()
            content = {"version": __version__, "figures": self._known}
            with written_whole(self.path) as file:
                file.write(f"{json.dumps(content, indent=1)}\n".encode())
        return self._known[key]


def seeded_network(seed: int, encoder: Callable[[], Any], head: Callable[[int], Head]) -> Network:
    """A network whose first weights follow from the seed; `head` is told the width of the features."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        made = encoder()
        return Network(made, head(made.n_features))


def lengths(radices: Sequence[int]) -> str:
    """The lengths of heads as the paper writes them.

    Examples
    --------
    >>> lengths((40, 25))
    '{40;25}'
    """
    return "{" + ";".join(map(str, radices)) + "}"


def statements(claims: Sequence[Claim]) -> Section:
    """A section that says which claims hold."""
    broken = "; ".join(f"{claim.statement} ({claim.measured})" for claim in claims if not claim.holds)
    holding = sum(claim.holds for claim in claims)
    text = f"{holding} of {len(claims)} statements hold in this run." + (
        f" Those that do not: {broken}." * bool(broken)
    )
    rows = [(claim.statement, claim.measured, "yes" if claim.holds else "no") for claim in claims]
    return Section(
        "What holds", text, [Table("Statements", tuple(map(Column, ("statement", "measured", "holds"))), rows)]
    )
