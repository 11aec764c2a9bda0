"""A Dask cluster as workers: checked before work starts, so that a mistake is an error and not a wrong model."""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from longtail.errors import InvalidInput, LongtailError, Unavailable, reason
from longtail.native import is_native
from longtail.store import RemoteFile, Spooled
from longtail.version import __version__

if TYPE_CHECKING:
    from longtail.work.task import Task

_PATIENCE = 10  # seconds to wait for a scheduler and for the first worker
_LONGEST_WITHOUT_WORKERS = 300  # seconds; a batch system may start others in place of those that were stopped
_BETWEEN_LOOKS = 10  # seconds
_GO_ON = "what is finished is kept: run the same command again to go on"


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """A client of the scheduler at `address`, such as ``tcp://host:8786``."""
    try:
        from distributed import Client
    except ImportError:
        raise Unavailable(
            "a cluster needs the package distributed; install it with: pip install 'longtail[cluster]'",
            code="missing_package",
        ) from None
    try:
        client: Any = Client(address, timeout=_PATIENCE, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, TypeError) as error:
        raise Unavailable(
            f"there is no scheduler at {address} ({type(error).__name__}); give its address, such as "
            f"tcp://host:8786, and start one with `dask scheduler`",
            code="no_scheduler",
        ) from None
    # Errors of the connection become ours; Dask would print its traceback too.
    logger = logging.getLogger("distributed.client")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield client
    finally:
        with suppress(TimeoutError):  # the scheduler does not answer
            client.close(timeout=_PATIENCE)
        logger.setLevel(level)


class Cluster:
    """The workers of a Dask client."""

    def __init__(self, client: Any, folder: Path) -> None:
        self._client = client
        try:
            client.wait_for_workers(1, timeout=_PATIENCE)
        except (TimeoutError, OSError):
            raise Unavailable(
                f"the cluster has no workers; start some with `dask worker {client.scheduler.address}`",
                code="no_workers",
            ) from None
        self._check_versions()
        self.check_paths([str(folder)])

    def _check_versions(self) -> None:
        own = versions()
        try:
            found = self._ask(versions)
        except (ImportError, AttributeError):
            raise Unavailable(
                "the workers cannot import longtail, or have another version; install the same version on all of them",
                code="other_version",
            ) from None
        for worker, theirs in found.items():
            differing = [
                f"{name} {theirs.get(name)} instead of {own[name]}" for name in own if theirs.get(name) != own[name]
            ]
            if differing:
                raise Unavailable(
                    f"the worker {worker} has {' and '.join(differing)}; install the same versions, or models differ",
                    code="other_version",
                )

    def _ask(self, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        """What a function returns on each worker."""
        with _scheduler_needed():
            found: dict[str, Any] = self._client.run(function, *arguments)
        return found

    def check_paths(self, paths: list[str]) -> None:
        """Raise an error unless every worker sees these files as they are here."""
        own = identities(paths)
        for worker, theirs in self._ask(identities, paths).items():
            for path in paths:
                if theirs[path] != own[path]:
                    raise InvalidInput(
                        f"the worker {worker} does not see {path} as it is here; use a folder that all workers share",
                        code="path_not_shared",
                    )

    def check_files(self, files: Sequence[Spooled | RemoteFile]) -> None:
        """Raise an error unless every worker sees these files as they are here, or reaches them in an object store."""
        self.check_paths([str(file.path) for file in files if isinstance(file, Spooled)])
        remote = [file for file in files if isinstance(file, RemoteFile)]
        for worker, error in self._client.run(_reach, remote).items():
            if error is not None:
                raise Unavailable(f"the worker {worker}: {error.problem}", code=error.code, name=error.name)

    def finished(self, tasks: list[Task]) -> Iterator[tuple[Task, bool]]:
        """Run tasks; yield each when it is finished, and whether its memory was enough."""
        from distributed import as_completed

        # A new key for each submission: the scheduler would answer a known one with an old result.
        call = secrets.token_hex(4)
        keys = [f"{task.name}-{call}" for task in tasks]
        by_key = dict(zip(keys, tasks, strict=True))
        with _scheduler_needed():
            futures = self._client.map(_run, tasks, key=keys, pure=False)
        try:
            completed: Any = as_completed(futures, loop=self._client.loop)  # type: ignore[no-untyped-call]
            while not completed.is_empty():
                self._wait(completed)
                future = next(completed)
                yield by_key[future.key], self._fitted(future)
                future.release()
        finally:
            if self._client.status == "running":
                self._client.cancel(futures)

    def _fitted(self, future: Any) -> bool:
        """Whether the memory of a finished task was enough; raises the error of the task."""
        from distributed import KilledWorker

        # The result of a future is not asked for: the client would wait for ever if the last worker has died with it.
        with _scheduler_needed():
            if future.status == "cancelled":
                raise CancelledError
            error = future.exception(timeout=_PATIENCE) if future.status == "error" else None
        if error is None or isinstance(error, KilledWorker | _TooLarge):
            return error is None
        if isinstance(error, OSError):
            raise Unavailable(f"a worker could not finish its task: {reason(error)}; {_GO_ON}") from error
        raise error

    def _wait(self, completed: Any) -> None:
        """Wait for a task to finish, but not for ever without workers."""
        looked = seen = time.monotonic()
        while not completed.has_ready():
            time.sleep(0.01)
            now = time.monotonic()
            if now - looked < _BETWEEN_LOOKS:
                continue
            if self._has_workers():
                seen = now
            elif now - seen > _LONGEST_WITHOUT_WORKERS:
                raise Unavailable(f"no worker is left, or the scheduler does not answer; {_GO_ON}", code="no_workers")
            looked = time.monotonic()

    def _has_workers(self) -> bool:
        """Ask the scheduler; False if it does not answer in time."""
        with _scheduler_needed():
            try:
                found = self._client.sync(self._client.scheduler.identity, callback_timeout=_PATIENCE)
            except TimeoutError:
                return False
        return bool(found["workers"])


@contextmanager
def _scheduler_needed() -> Iterator[None]:
    """Tell a lost connection to the scheduler."""
    try:
        yield
    except (CancelledError, OSError):
        raise Unavailable(f"the connection to the scheduler was lost; {_GO_ON}", code="no_scheduler") from None


def _reach(files: list[RemoteFile]) -> LongtailError | None:
    try:
        for file in files:
            file.check()
    except LongtailError as error:
        return error
    return None


class _TooLarge(Exception):
    """The worker has too little memory for the task."""


def _run(task: Task) -> None:
    """Do a task without a result: its end and its error reach the client even if the worker dies afterwards."""
    if not task.run():
        raise _TooLarge(task.name)


def versions() -> dict[str, str]:
    """The versions that must be the same everywhere, since they can change the bytes of a model."""
    import numpy

    return {"longtail": __version__, "numpy": numpy.__version__, "kernels": "native" if is_native() else "numpy"}


def identities(paths: list[str]) -> dict[str, tuple[int, int] | None]:
    """The size and the time of change of each file; None if there is none."""
    found: dict[str, tuple[int, int] | None] = {}
    for path in paths:
        try:
            status = Path(path).stat()
            found[path] = (0, 0) if Path(path).is_dir() else (status.st_size, status.st_mtime_ns)
        except OSError:
            found[path] = None
    return found
