"""`Batcher`: a queue and one thread. Requests that arrive while the thread works are then scored together.

No request is delayed to make batches larger: an idle service scores a request at once, and a busy one makes larger
batches. Requests with the same options (model, k, filters, threshold) form a group; each group is one call.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from longtail.parallel import Stop, Stopped
from longtail.serve.refusal import Refusal

_log = logging.getLogger(__name__)

# Seconds before checking whether the client has hung up: the check costs more than scoring.
_PATIENCE = 0.5
_LONGEST_RETRY = 60
# Seconds for the thread to stop; our kernels check more often, other code may never.
_LAST_SECONDS = 1.0
_MEMORY = 0.8  # weight of the past in the running mean of the rate


class Gone(Exception):
    """The client has hung up."""


def shutting_down() -> Refusal:
    """The answer once the service has begun to shut down."""
    return Refusal("shutting_down", "the service is shutting down; try again later", {"retry-after": "5"})


@dataclass(eq=False, slots=True)
class _Job:
    group: Hashable
    items: Sequence[Any]
    future: asyncio.Future[list[Any]]
    loop: asyncio.AbstractEventLoop
    deadline: float
    waits: bool = True


class Batcher:
    """Runs `work` in a thread of its own.

    Parameters
    ----------
    work : callable
        ``work(group, items)`` returns one result per item. When it raises for several requests, each of them is tried
        alone, so that no request fails because of another.
    queued, batch : int
        Maximum number of items that wait, and of items in a batch.
    seconds : float
        Maximum time from entering the queue to the result.
    observe : callable or None
        Called with the number of items of each batch.
    name : str
        The name of the thread.
    what : str
        What the items are, for messages.
    """

    def __init__(
        self,
        work: Callable[[Any, list[Any]], Sequence[Any]],
        *,
        queued: int,
        batch: int,
        seconds: float,
        observe: Callable[[int], None] | None = None,
        name: str = "longtail-scoring",
        what: str = "requests",
    ) -> None:
        self._work = work
        self._queued = queued
        self._batch = batch
        self._seconds = seconds
        self._observe = observe
        self._name = name
        self._what = what
        self._jobs: deque[_Job] = deque()
        self._waiting = 0
        self._rate = 0.0
        self._closed = False
        self._asking = 0  # requests that wait for results
        self._stop = Stop()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    @property
    def waiting(self) -> int:
        """Items in the queue."""
        return self._waiting

    @property
    def closed(self) -> bool:
        """Whether new requests are refused."""
        return self._closed

    def refuse_if_full(self, items: int = 1) -> None:
        """Raise the `Refusal` that `run` would raise now for this number of items."""
        if self._closed:
            raise shutting_down()
        # An empty queue accepts a request that is larger than the queue; it would never fit otherwise.
        if self._waiting and self._waiting + items > self._queued:
            retry = self._retry()
            message = f"{self._waiting} {self._what} are waiting; the maximum is {self._queued}. Try again in {retry} s"
            raise Refusal("queue_full", message, {"retry-after": str(retry)})

    def _retry(self) -> int:
        if not self._rate:
            return 1
        return min(_LONGEST_RETRY, max(1, math.ceil(self._waiting / self._rate)))

    async def run(
        self, group: Hashable, items: Sequence[Any], gone: Callable[[], Awaitable[Any]] | None = None
    ) -> list[Any]:
        """Return the results of `items`, or raise what `work` raised; `gone` returns when the client hangs up."""
        loop = asyncio.get_running_loop()
        job = _Job(group, items, loop.create_future(), loop, time.monotonic() + self._seconds)
        self._enter(job)
        self._asking += 1
        watcher: asyncio.Future[Any] | None = None
        try:
            await asyncio.wait((job.future,), timeout=min(_PATIENCE, self._seconds))
            if not job.future.done():
                if gone is not None:
                    watcher = asyncio.ensure_future(gone())
                await asyncio.wait(
                    [job.future] if watcher is None else [job.future, watcher],
                    timeout=max(0.0, job.deadline - time.monotonic()),
                    return_when=asyncio.FIRST_COMPLETED,
                )
            if job.future.done():
                return job.future.result()
            if watcher is not None and watcher.done():
                raise Gone
            message = f"the request was not answered within {self._seconds:g} s; try again with fewer or shorter texts"
            raise Refusal("deadline_passed", message, {"retry-after": str(self._retry())})
        finally:
            self._asking -= 1
            if watcher is not None:
                watcher.cancel()
            if not job.future.done():
                self._leave(job)

    def _enter(self, job: _Job) -> None:
        with self._changed:
            self.refuse_if_full(len(job.items))
            self._jobs.append(job)
            self._waiting += len(job.items)
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
                self._thread.start()
            self._changed.notify()

    def _leave(self, job: _Job) -> None:
        """Drop a job; one that waits stays in the queue, emptied, until the thread discards it."""
        job.future.cancel()
        with self._changed:
            if job.waits:
                job.waits = False
                self._waiting -= len(job.items)
                job.group, job.items = None, ()

    def _serve(self) -> None:
        with suppress(Stopped), self._stop.obeyed():
            while self._score(self._wait_for_jobs()):
                pass

    def _wait_for_jobs(self) -> list[_Job]:
        """The next jobs; none when the queue is closed and empty."""
        with self._changed:
            while True:
                while not self._jobs and not self._closed:
                    self._changed.wait()
                jobs = self._take()
                if jobs or (self._closed and not self._jobs):
                    return jobs

    def _take(self) -> list[_Job]:
        taken: list[_Job] = []
        count, now = 0, time.monotonic()
        while self._jobs and (not taken or count + len(self._jobs[0].items) <= self._batch):
            job = self._jobs.popleft()
            if not job.waits:
                continue
            job.waits = False
            self._waiting -= len(job.items)
            if job.deadline <= now:
                continue
            taken.append(job)
            count += len(job.items)
        return taken

    def _score(self, jobs: list[_Job]) -> bool:
        """Answer jobs, and keep none of them: a job holds its model. Without jobs, the thread ends."""
        if not jobs:
            return False
        begun = time.perf_counter()
        groups: dict[Hashable, list[_Job]] = {}
        for job in jobs:
            groups.setdefault(job.group, []).append(job)
        count = 0
        for group, members in groups.items():
            count += sum(len(job.items) for job in members)
            _deliver(self._results(group, members))
        if self._observe is not None:
            self._observe(count)
        rate = count / max(time.perf_counter() - begun, 1e-6)
        self._rate = _MEMORY * self._rate + (1 - _MEMORY) * rate if self._rate else rate
        return True

    def _results(self, group: Hashable, jobs: list[_Job]) -> list[tuple[_Job, Any]]:
        try:
            found = self._work(group, [item for job in jobs for item in job.items])
        except Exception as error:
            if len(jobs) == 1:
                return [(jobs[0], error)]
            return [pair for job in jobs for pair in self._results(group, [job])]
        results: list[tuple[_Job, Any]] = []
        start = 0
        for job in jobs:
            results.append((job, list(found[start : start + len(job.items)])))
            start += len(job.items)
        return results

    async def close(self) -> None:
        """Refuse new requests, finish those that wait, and end the thread; abandon it if it does not stop."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        if self._thread is None:
            return
        while self._asking and self._thread.is_alive():
            await asyncio.to_thread(self._thread.join, 0.05)
        self._stop.request()
        await asyncio.to_thread(self._thread.join, _LAST_SECONDS)
        if self._thread.is_alive():
            _log.warning("%s did not stop in time; ending without it", self._name)


def _deliver(results: list[tuple[_Job, Any]]) -> None:
    loops: dict[asyncio.AbstractEventLoop, list[tuple[_Job, Any]]] = {}
    for job, result in results:
        loops.setdefault(job.loop, []).append((job, result))
    for loop, pairs in loops.items():
        try:
            loop.call_soon_threadsafe(_settle, pairs)
        except RuntimeError:
            _log.warning("the event loop ended before %d requests were answered", len(pairs))


def _settle(pairs: list[tuple[_Job, Any]]) -> None:
    for job, result in pairs:
        if job.future.done():
            continue
        if isinstance(result, BaseException):
            job.future.set_exception(result)
        else:
            job.future.set_result(result)
