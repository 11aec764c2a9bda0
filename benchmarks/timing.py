"""Times contestants in turn, so that other work on the machine slows all of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any


class Times(list[float]):
    """The seconds of several rounds."""

    @property
    def median(self) -> float:
        return statistics.median(self)

    def __str__(self) -> str:
        return f"{self.median:.3f} s ({min(self):.3f} to {max(self):.3f})"


def interleave(
    contestants: Mapping[str, Callable[[], Any]],
    repeat: int,
    calls: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[dict[str, Times], dict[str, Any]]:
    """Run the contestants in turn, `repeat` times; return the seconds of a call and the last result of each.

    With ``time.process_time`` as the clock, the seconds are those of the processor.

    >>> seconds, returned = interleave({"sum": lambda: sum(range(9)), "len": lambda: len("abc")}, repeat=3)
    >>> returned, len(seconds["sum"])
    ({'sum': 36, 'len': 3}, 3)
    """
    seconds = {name: Times() for name in contestants}
    returned: dict[str, Any] = {}
    for _ in range(repeat):
        for name, function in contestants.items():
            start = clock()
            for _ in range(calls):
                returned[name] = function()
            seconds[name].append((clock() - start) / calls)
    return seconds, returned


def verdict(holds: bool) -> str:
    return "holds" if holds else "DOES NOT HOLD"
