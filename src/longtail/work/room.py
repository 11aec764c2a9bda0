"""The memory of this process, shared by its tasks: a task starts when it fits beside those that run."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from longtail.memory import available_memory, current_limit, parse_bytes
from longtail.parallel import check_stop
from longtail.store import release_pages

_ENOUGH = 0.25  # share of the memory that can always be planned, however much the process has taken already


class Room:
    """What the running tasks have taken."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._taken = 0
        self._base = 0

    @contextmanager
    def taken(self, size: int) -> Iterator[bool]:
        """Wait until `size` bytes are free; False if they never will be."""
        if not self._take(size):
            yield False
            return
        try:
            yield True
        finally:
            with self._changed:
                self._taken -= size
                self._changed.notify_all()

    def _take(self, size: int) -> bool:
        with self._changed:
            limit, resident = process_memory(), _resident()
            if resident > _ENOUGH * limit:
                release_pages()
                resident = _resident()
            if self._taken == 0:
                self._base = resident
            capacity = max(limit - self._base, int(_ENOUGH * limit))
            if size > capacity:
                return False
            while self._taken and self._taken + size > capacity:
                check_stop()
                self._changed.wait(0.1)
            self._taken += size
            return True


room = Room()


def process_memory() -> int:
    """The memory that this process may have in all: a limit, or what the machine has left."""
    limit = current_limit()
    if limit is not None:
        return limit
    if "LONGTAIL_MEMORY" in os.environ:
        return parse_bytes(os.environ["LONGTAIL_MEMORY"])
    if "distributed.worker" in sys.modules and (of_worker := _worker_memory()) is not None:
        return of_worker
    return _resident() + available_memory()


def _worker_memory() -> int | None:
    """The memory limit of the Dask worker that this thread works for; None outside a worker, or without a limit."""
    from distributed import get_worker

    try:
        limit: int | None = get_worker().memory_manager.memory_limit
    except (ValueError, AttributeError):
        return None
    return limit


def _resident() -> int:
    import psutil

    return int(psutil.Process().memory_info().rss)
