"""Threads over blocks of rows, labels or nodes: the one place that spreads work over cores.

Kernels and NumPy release the interpreter lock, so threads suffice; BLAS is limited to one thread while ours run. If a
block fails or the caller is interrupted, the other blocks stop, because long work calls `check_stop` regularly.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from itertools import chain, islice
from typing import Any, TypeVar

from longtail import memory
from longtail.errors import InvalidInput

Block = TypeVar("Block")
Result = TypeVar("Result")

_MOST_THREADS = 32  # with fewer than 8 cores
# Seconds to wait for blocks: on Windows ctrl-C does not end a wait, and an interrupt should take effect soon.
_LONGEST_WAIT = 0.5


def count_cores() -> int:
    """Number of cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_asked_jobs: list[int] = []


@contextmanager
def use_jobs(n_jobs: int | None) -> Iterator[None]:
    """Use this number of threads inside the block, in every thread, whatever models and features are set to.

    Their parameters stay as they are. None changes nothing.

    >>> with use_jobs(2):
    ...     resolve_jobs(3)
    2
    """
    if n_jobs is None:
        yield
        return
    _asked_jobs.append(_resolved(n_jobs))
    try:
        yield
    finally:
        _asked_jobs.pop()


def resolve_jobs(n_jobs: int | None) -> int:
    """The number of threads: None and -1 mean every core, -2 all but one, and so on.

    Larger numbers, which may come from a file, are limited to 4 per core or 32, whichever is more.

    >>> resolve_jobs(3), resolve_jobs(10**12) < 10**6
    (3, True)
    """
    return _asked_jobs[-1] if _asked_jobs else _resolved(n_jobs)


def _resolved(n_jobs: int | None) -> int:
    if n_jobs is None:
        return count_cores()
    if n_jobs == 0:
        raise InvalidInput("n_jobs is 0; expected a number of threads, or None for every core")
    cores = count_cores()
    return min(n_jobs, max(_MOST_THREADS, 4 * cores)) if n_jobs > 0 else max(1, cores + 1 + n_jobs)


def split(n: int, size: int) -> list[slice]:
    """Split ``range(n)`` into slices of at most `size`.

    >>> split(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


_blas_lock = threading.Lock()
_blas_limits: list[int] = []
_blas_before: Any = None


_blas_known: tuple[int, Any] = 0, None


def _blas_libraries() -> Any:
    """The libraries of BLAS; looking for them takes milliseconds, and only imports bring new ones."""
    global _blas_known
    from threadpoolctl import ThreadpoolController

    if _blas_known[0] != len(sys.modules):
        _blas_known = len(sys.modules), ThreadpoolController()
    return _blas_known[1]


@contextmanager
def blas_threads(limit: int) -> Iterator[None]:
    """Limit BLAS to `limit` threads inside the block; of several open blocks, in any thread, the smallest limit counts.

    BLAS has one setting for the whole process, so the last block to close restores it.
    """
    global _blas_before

    with _blas_lock:
        if not _blas_limits:
            _blas_before = _blas_libraries().limit(limits=limit, user_api="blas")
        _blas_limits.append(limit)
        if min(_blas_limits) < min(_blas_limits[:-1], default=limit):
            _blas_libraries().limit(limits=limit, user_api="blas")
    try:
        yield
    finally:
        with _blas_lock:
            _blas_limits.remove(limit)
            if not _blas_limits:
                _blas_before.restore_original_limits()
            elif min(_blas_limits) > limit:
                _blas_libraries().limit(limits=min(_blas_limits), user_api="blas")


class Stopped(BaseException):
    """Ends work whose result is no longer needed; callers of `map_blocks` never see it."""


class _Here(threading.local):
    stop: Stop | None = None


_here = _Here()


class Stop:
    """A request to stop, and the work that obeys it. Nested work also obeys the requests to the work around it.

    >>> stop = Stop()
    >>> stop.request()
    >>> with stop.obeyed():
    ...     check_stop()
    Traceback (most recent call last):
    longtail.parallel.Stopped
    """

    def __init__(self) -> None:
        self._outer = _here.stop
        self._requested = False

    def request(self) -> None:
        """Stop the work, in whichever thread it runs."""
        self._requested = True

    def is_requested(self) -> bool:
        """Whether this work, or work around it, should stop."""
        return self._requested or (self._outer is not None and self._outer.is_requested())

    @contextmanager
    def obeyed(self) -> Iterator[None]:
        """Make the work of this thread inside the block obey the request."""
        before, _here.stop = _here.stop, self
        try:
            yield
        finally:
            _here.stop = before


def check_stop() -> None:
    """Raise `Stopped` if the work of this thread should stop.

    Kernels and their twins call it; any other loop that can run for long must call it too.
    """
    if _here.stop is not None and _here.stop.is_requested():
        raise Stopped


def map_blocks(
    function: Callable[[Block], Result], blocks: Iterable[Block], n_jobs: int | None = None, *, blas: bool = True
) -> Iterator[Result]:
    """Yield ``function(block)`` for each block, in order, computed by `n_jobs` threads.

    At most ``n_jobs + 1`` blocks are taken ahead and as many results are held, so memory is bounded. If the call ends
    early, because of an error, an interrupt or a caller that needs no more results, the running blocks are stopped.
    Use ``blas=False`` if the work does not use BLAS: limiting BLAS takes longer than predicting thousands of rows.
    """
    blocks = iter(blocks)
    first = list(islice(blocks, 2))
    blocks = chain(first, blocks)
    # A single block needs no thread, and counting the cores takes longer than scoring a row.
    jobs = 1 if len(first) <= 1 and n_jobs != 0 else resolve_jobs(n_jobs)
    if jobs == 1:
        for block in blocks:
            check_stop()
            yield function(block)
        return
    stop = Stop()
    limit = memory.current_limit()

    def run(block: Block) -> Result:
        with stop.obeyed(), memory.limit(limit):
            check_stop()
            return function(block)

    with blas_threads(1) if blas else nullcontext():
        pool = ThreadPoolExecutor(jobs)
        running: deque[Future[Result]] = deque()
        patient = True
        try:
            for block in blocks:
                running.append(pool.submit(run, block))
                if len(running) > jobs:
                    yield _first_result(running)
            while running:
                yield _first_result(running)
        except KeyboardInterrupt:
            patient = False
            raise
        finally:
            stop.request()
            if not patient:  # calls that cannot be stopped, such as LAPACK, are left to finish
                wait(running, _LONGEST_WAIT)
            pool.shutdown(wait=patient)


def _first_result(running: deque[Future[Result]]) -> Result:
    pending: set[Future[Result]] = set(running)
    while not running[0].done():
        ended, pending = wait(pending, _LONGEST_WAIT, FIRST_COMPLETED)
        for each in running:
            if each in ended:
                each.result()  # raises the error of a failed block
    return running.popleft().result()
