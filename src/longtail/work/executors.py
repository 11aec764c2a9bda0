"""Threads or processes behind the interface of `concurrent.futures` as workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, as_completed

from longtail.errors import Unavailable
from longtail.memory import current_limit, limit
from longtail.store import RemoteFile, Spooled
from longtail.work.room import process_memory
from longtail.work.task import Task


class Executors:
    """The workers of an executor."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def check_files(self, files: Sequence[Spooled | RemoteFile]) -> None:
        """Nothing to do: the workers run on this machine."""

    def finished(self, tasks: list[Task]) -> Iterator[tuple[Task, bool]]:
        """Run tasks; yield each when it is finished, and whether its memory was enough."""
        memory = self._memory()
        futures: dict[Future[bool], Task] = {}
        try:
            for task in tasks:
                futures[self._executor.submit(_limited, task, memory)] = task
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenExecutor:
            raise Unavailable(
                "a worker process has died, perhaps of too little memory; what is finished is kept: run the same again "
                "to go on",
                code="no_workers",
            ) from None
        finally:
            for future in futures:
                future.cancel()

    def _memory(self) -> int | None:
        """The memory limit of a worker: threads share the memory of this process, and processes divide it."""
        if isinstance(self._executor, ProcessPoolExecutor):
            return max(1, process_memory() // self._executor._max_workers)  # type: ignore[attr-defined]
        return current_limit()


def _limited(task: Task, memory: int | None) -> bool:
    with limit(memory):
        return task.run()
