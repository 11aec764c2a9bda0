"""Memory plans: the peak memory of a piece of work, checked before anything is allocated."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from longtail.errors import InvalidInput, NotEnoughMemory

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_limit: ContextVar[int | None] = ContextVar("longtail_memory_limit", default=None)


def format_bytes(size: float) -> str:
    """A number of bytes for people to read.

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


@contextmanager
def limit(size: int | str | None) -> Iterator[None]:
    """Plan all work inside the block with at most `size` of memory; None changes nothing.

    Threads of `longtail.parallel.map_blocks` inside the block obey the limit too.

    >>> with limit("4G"):
    ...     available_memory() == 4 * 2**30
    True
    """
    if size is None:
        yield
        return
    if isinstance(size, str):
        size = parse_bytes(size)
    elif size <= 0:
        raise InvalidInput(f"the memory limit is {size} bytes; expected more than 0")
    token = _limit.set(size)
    try:
        yield
    finally:
        _limit.reset(token)


def current_limit() -> int | None:
    """The limit in bytes that `limit` has set here, or None."""
    return _limit.get()


def available_memory() -> int:
    """Bytes the process may still use: the `limit` set here, else `$LONGTAIL_MEMORY`, else the free memory."""
    set_here = _limit.get()
    if set_here is not None:
        return set_here
    set_by_user = os.environ.get("LONGTAIL_MEMORY")
    if set_by_user:
        return parse_bytes(set_by_user)
    import psutil

    return int(min(psutil.virtual_memory().available, _container_memory()))


def _container_memory() -> float:
    """Free memory of a Linux container; infinite where there is no limit."""
    try:
        limit, used = (Path("/sys/fs/cgroup", name).read_text().strip() for name in ("memory.max", "memory.current"))
        return max(0, int(limit) - int(used))
    except (OSError, ValueError):  # no container, or one without a limit ("max")
        return math.inf


@dataclass(frozen=True)
class MemoryPlan:
    """Peak memory of a piece of work, part by part.

    Parameters
    ----------
    work : str
        The name of the work in messages.
    parts : dict of str to int
        Bytes by part.
    advice : str
        What the user can do if the plan does not fit.
    """

    work: str
    parts: dict[str, int] = field(default_factory=dict)
    advice: str = ""

    @property
    def total(self) -> int:
        return sum(self.parts.values())

    def check(self) -> MemoryPlan:
        """Return the plan; raise `NotEnoughMemory` if it needs more than `available_memory`."""
        available = available_memory()
        if self.total > available:
            raise NotEnoughMemory(
                f"{self.work} needs {format_bytes(self.total)}, but only {format_bytes(available)} are available "
                f"({self.describe()}). {self.advice}".rstrip()
            )
        return self

    def describe(self) -> str:
        """The parts in one line, largest first."""
        ordered = sorted(self.parts.items(), key=lambda part: -part[1])
        return ", ".join(f"{name} {format_bytes(size)}" for name, size in ordered if size)
