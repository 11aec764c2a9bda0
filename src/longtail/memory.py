"""Memory plans: what a piece of work will hold at its peak, checked before anything is allocated."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from pathlib import Path

from longtail.errors import InvalidInput, NotEnoughMemory

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def format_bytes(size: float) -> str:
    """Write a number of bytes for people.

    >>> format_bytes(1536)
    '1.5 KiB'
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def parse_bytes(text: str) -> int:
    """Read a size such as ``4G`` or ``512M``.

    >>> parse_bytes("1.5K")
    1536
    """
    number = text.strip().upper().removesuffix("B").removesuffix("I")
    unit = number[-1:] if number[-1:] in ("K", "M", "G", "T") else ""
    try:
        size = float(number.removesuffix(unit)) * _UNITS[unit]
        if not 0 < size < float("inf"):
            raise ValueError
    except ValueError:
        raise InvalidInput(f"{text!r} is not a size; write a number with K, M, G or T, as in 4G") from None
    return int(size)


def available_memory() -> int:
    """Bytes the process may still use: `$LONGTAIL_MEMORY` where set, else what the system has free."""
    limit = os.environ.get("LONGTAIL_MEMORY")
    if limit:
        return parse_bytes(limit)
    import psutil

    return int(min(psutil.virtual_memory().available, _container_memory()))


def _container_memory() -> float:
    """What a Linux container leaves free; without limit elsewhere."""
    try:
        limit, used = (Path("/sys/fs/cgroup", name).read_text().strip() for name in ("memory.max", "memory.current"))
        return max(0, int(limit) - int(used))
    except (OSError, ValueError):  # no container, or one without a limit ("max")
        return math.inf


@dataclass(frozen=True)
class MemoryPlan:
    """The parts of a peak, in bytes, by name.

    Parameters
    ----------
    work : str
        What the plan is for, as it should read in a message.
    parts : dict of str to int
        Bytes by the name of what needs them.
    advice : str
        What a user can change if it does not fit.
    """

    work: str
    parts: dict[str, int] = field(default_factory=dict)
    advice: str = ""

    @property
    def total(self) -> int:
        return sum(self.parts.values())

    def check(self) -> MemoryPlan:
        """Return the plan, or raise `NotEnoughMemory` if it is more than `available_memory`."""
        available = available_memory()
        if self.total > available:
            raise NotEnoughMemory(
                f"{self.work} needs {format_bytes(self.total)} and {format_bytes(available)} are available "
                f"({self.describe()}). {self.advice}".rstrip()
            )
        return self

    def describe(self) -> str:
        """The parts in one line, the largest first."""
        ordered = sorted(self.parts.items(), key=lambda part: -part[1])
        return ", ".join(f"{name} {format_bytes(size)}" for name, size in ordered if size)
