"""Work in pieces: each task reads mapped files and writes one file, and what is there already is not done again."""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from longtail import progress
from longtail.arrays import Array
from longtail.errors import InvalidInput, NotEnoughMemory, Unavailable
from longtail.files import PathName
from longtail.memory import available_memory, current_limit, format_bytes, parse_bytes
from longtail.memory import limit as memory_limit
from longtail.parallel import check_stop, map_blocks, split
from longtail.store import (
    LOCK,
    RemoteFile,
    Spool,
    Spooled,
    alone_in,
    claim_folder_of_job,
    file_behind,
    is_sound,
    join_pieces,
    read_piece,
    release_pages,
    remote_behind,
    scratch_behind,
    write_piece,
)
from longtail.version import __version__
from longtail.work.results import (
    Kept,
    Piece,
    Range,
    Results,
    StoredPiece,
    StoredResults,
    forget_opened,
    forget_other_trainings,
    index_path,
    mapped,
    piece_path,
)
from longtail.work.rows import Rows, even_ranges
from longtail.work.work import Function, Work, longest_first, shown, working_in

_OWN = re.compile(r"training\d+-[0-9a-f]{12}|data")
_STRIP = 2**24  # values that are put together at once
_ENOUGH = 0.25  # share of the memory that can always be planned, however much the process has taken already


class Folder:
    """A folder of unfinished work, and who works on it."""

    def __init__(self, folder: Path, workers: Any) -> None:
        self.folder, self.workers = folder, workers
        self._begun = 0

    def begin(self, about: Mapping[str, Any], n_jobs: int | None, matrices: Mapping[str, Any]) -> Work:
        self._begun += 1
        return Stored(self.folder, f"training{self._begun}", self.workers, n_jobs, about, matrices)


@contextmanager
def in_pieces(folder: PathName, workers: Any = None) -> Iterator[None]:
    """Train in pieces that are kept in a folder; an interrupted training goes on where it stopped.

    Inside the block, `fit` of `LabelTree`, `OneVsRest`, `Ridge` and `RidgeCV` writes the result of every task to the
    folder; other learners train in memory. The same block again goes on with what is there. The folder is removed at
    the end, if no error is raised: save the model inside the block. The model does not depend on the workers.

    Parameters
    ----------
    folder : str or path-like
        A new folder, or one of the same training. All workers must see it under the same path.
    workers : None, concurrent.futures.Executor or distributed.Client
        Who does the tasks; None for threads of this process.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from longtail import LabelTree, in_pieces
    >>> X, Y = np.eye(4, dtype=np.float32), np.eye(4)
    >>> with in_pieces(tempfile.mkdtemp() + "/unfinished"):
    ...     tree = LabelTree().fit(X, Y)
    >>> tree.predict_topk(X, k=1)[0].ravel().tolist()
    [0, 1, 2, 3]
    """
    if working_in.get() is not None:
        raise InvalidInput("a training in pieces is already open here; close it first")
    path = Path(os.path.abspath(folder))
    with alone_in(path):
        _check_content(path)
        token = working_in.set(Folder(path, _workers(workers, path)))
        try:
            yield
        finally:
            working_in.reset(token)
            forget_opened()
        for name in filter(_OWN.fullmatch, os.listdir(path)):
            shutil.rmtree(path / name, ignore_errors=True)
        (path / LOCK).unlink(missing_ok=True)
        with suppress(OSError):  # something else is in the folder, such as a model
            path.rmdir()


def _check_content(folder: Path) -> None:
    """Refuse a folder with files of others: those of a training are removed at its end."""
    others = [name for name in os.listdir(folder) if name != LOCK and not _OWN.fullmatch(name)]
    if others:
        raise InvalidInput(f"{folder} holds other files, such as {min(others)!r}; choose another folder")


def _workers(workers: Any, folder: Path) -> Any:
    if workers is None:
        return None
    if isinstance(workers, Executor):
        return Executors(workers)
    from longtail.work.cluster import Cluster

    return Cluster(workers, folder)


class Executors:
    """Processes or threads behind the interface of `concurrent.futures`."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def check_files(self, files: Sequence[Spooled | RemoteFile]) -> None:
        """Nothing to do: the workers run on this machine."""

    def finished(self, tasks: list[Task]) -> Iterator[tuple[Task, bool]]:
        """Run tasks; yield each when it is finished, and whether its memory was enough."""
        limit = current_limit()
        futures = {self._executor.submit(_limited, task, limit): task for task in tasks}
        try:
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


def _limited(task: Task, limit: int | None) -> bool:
    with memory_limit(limit):
        return task.run()


@dataclass(frozen=True)
class StoredRows(Kept):
    """A sparse matrix in three `.npy` files, by their paths or URLs."""

    files: tuple[Spooled | RemoteFile, ...]
    n_columns: int

    def open(self) -> Rows:
        indptr, indices, data = map(mapped, self.files)
        return Rows(indptr, indices, data, self.n_columns)


@dataclass(frozen=True)
class Task:
    """A call of a stage's function for a range of items. It is small to send: it names files and has no arrays."""

    training: str
    folder: str
    stage: str
    function: Function
    arguments: tuple[Any, ...]
    start: int
    stop: int
    memory: int

    @property
    def name(self) -> str:
        return f"{self.stage.replace('_', '-')}-{self.start}-{self.stop}"

    @property
    def path(self) -> Path:
        """The file with the result."""
        return piece_path(self.folder, self.stage, self.start, self.stop)

    def run(self) -> bool:
        """Make the piece, if it is not there already; False if there is too little memory."""
        forget_other_trainings(self.training)
        if self.is_done():
            return True
        with _room.taken(self.memory) as fits:
            if not fits:
                return False
            opened = [each.open() if isinstance(each, Kept) else each for each in self.arguments]
            write_piece(self.path, self.function(*opened, self.start, self.stop))
        return True

    def is_done(self) -> bool:
        """Whether there is a sound piece."""
        return is_sound(self.path)

    def halves(self, needs: _Needs) -> list[Task]:
        """Two smaller tasks."""
        if self.stop - self.start < 2:
            raise NotEnoughMemory(
                f"{shown(self.stage)}: the largest task needs about {format_bytes(self.memory)}, and the workers that "
                f"got it have less, or died; give the workers more memory"
            )
        middle = (self.start + self.stop) // 2
        return [
            replace(self, start=start, stop=stop, memory=needs.of(start, stop))
            for start, stop in ((self.start, middle), (middle, self.stop))
        ]


class Joining(Task):
    """A task that joins arrays; its piece tells their files."""

    def is_done(self) -> bool:
        """Whether the piece and the files are sound."""
        return super().is_done() and all(_is_intact(file) for file in _files_of(self.folder, read_piece(self.path)))


def _join(results: StoredResults, stage: str, names: Sequence[str], start: int, stop: int) -> Piece:
    """Join the arrays of some names."""
    pieces = [piece_path(results.folder, results.stage, *each) for each in results.ranges]
    files = [join_pieces(pieces, name, Path(results.folder, f"{stage}-{name}.npy")) for name in names[start:stop]]
    told = [[file.path.name, file.dtype, file.shape[0], file.sha256()] for file in files]
    return {"files": np.frombuffer(json.dumps(told).encode(), np.uint8)}


def _files_of(folder: str, piece: Piece) -> list[Spooled]:
    """The files that a task has joined."""
    told = json.loads(piece["files"].tobytes())
    return [Spooled(Path(folder, name), dtype, (length,), sha256) for name, dtype, length, sha256 in told]


def _is_intact(file: Spooled) -> bool:
    try:
        return file.read_sha256() == file.sha256()
    except OSError:
        return False


@dataclass(frozen=True)
class _Needs:
    """The bytes that tasks need: for the largest of their items, and for the results of all."""

    memory: Array | None = None
    results: Array | None = None

    def of(self, start: int, stop: int) -> int:
        largest = 0 if self.memory is None else int(self.memory[start:stop].max(initial=0))
        return largest + (0 if self.results is None else int(self.results[start:stop].sum()))


class _Room:
    """The memory of this process, shared by its tasks: a task starts when it fits beside those that run."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._taken = 0
        self._base = 0

    @contextmanager
    def taken(self, size: int) -> Iterator[bool]:
        """Wait until `size` bytes are free; False if they never will be."""
        with self._changed:
            limit = _process_memory()
            resident = _resident()
            if limit is not None and resident > _ENOUGH * limit:
                release_pages()
                resident = _resident()
            if self._taken == 0:
                self._base = resident
            capacity = max(limit - self._base, int(_ENOUGH * limit)) if limit is not None else None
            if capacity is not None and size > capacity:
                yield_size = None
            else:
                while capacity is not None and self._taken and self._taken + size > capacity:
                    check_stop()
                    self._changed.wait(0.1)
                self._taken += size
                yield_size = size
        if yield_size is None:
            yield False
            return
        try:
            yield True
        finally:
            with self._changed:
                self._taken -= size
                self._changed.notify_all()


_room = _Room()


def _resident() -> int:
    import psutil

    return int(psutil.Process().memory_info().rss)


def _process_memory() -> int:
    """The memory that this process may have in all: a limit, or what the machine has left."""
    limit = current_limit()
    if limit is not None:
        return limit
    if "LONGTAIL_MEMORY" in os.environ:
        return parse_bytes(os.environ["LONGTAIL_MEMORY"])
    if "distributed.worker" in sys.modules:
        from longtail.work.cluster import worker_memory

        if (found := worker_memory()) is not None:
            return found
    return _resident() + available_memory()


class Stored(Work):
    """Threads, an executor or a cluster do the work, and results are files of a folder."""

    is_stored = True

    def __init__(
        self,
        parent: Path,
        name: str,
        workers: Any,
        n_jobs: int | None,
        about: Mapping[str, Any],
        matrices: Mapping[str, Any],
    ) -> None:
        self._workers, self.jobs = workers, n_jobs
        # Folders and stages of other trainings may have the same names.
        self._token = secrets.token_hex(4)
        parts = {name: Rows.of(matrix, name) for name, matrix in matrices.items()}
        told = {name: [*map(_told, each[:3]), each.n_columns] for name, each in parts.items()}
        job = {"longtail": __version__, "about": dict(about), "matrices": told}
        self._folder = claim_folder_of_job(parent, name, job)
        self._matrices: dict[str, StoredRows] = {}
        for name, each in parts.items():
            self.add(name, each)
        if workers is not None:
            self.jobs = 1
            workers.check_files([file for each in self._matrices.values() for file in each.files])

    def add(self, name: str, matrix: Rows) -> None:
        files = [_stored(self._folder / f"{name}{number}.npy", array) for number, array in enumerate(matrix[:3])]
        self._matrices[name] = StoredRows(tuple(files), matrix.n_columns)

    def settled(self, name: str, found: tuple[str, ...]) -> tuple[str, ...]:
        path = self._folder / name
        if not is_sound(path):
            write_piece(path, {"json": np.frombuffer(json.dumps(found).encode(), np.uint8)})
        return tuple(json.loads(read_piece(path)["json"].tobytes()))

    def matrix(self, name: str) -> Any:
        return self._matrices[name]

    def opened(self, name: str) -> Rows:
        return self._matrices[name].open()

    def keep(self, name: str, arrays: Piece) -> Any:
        path = self._folder / name
        files = {name: file for name, array in arrays.items() if (file := scratch_behind(array)) is not None}
        write_piece(path, {name: array for name, array in arrays.items() if name not in files})
        forget_opened()
        return StoredPiece(str(path), tuple(files.items()))

    def divide(self, costs: Array, most: float) -> Sequence[Range]:
        return even_ranges(costs, most)

    def run(
        self,
        stage: str,
        function: Function,
        ranges: Sequence[Range],
        *arguments: Any,
        costs: Array | None = None,
        memory: Array | None = None,
        results: Array | None = None,
    ) -> Results:
        return self._run(Task, stage, function, ranges, arguments, costs, _Needs(memory, results))

    def join(self, stage: str, results: Any, names: Sequence[str]) -> dict[str, Array]:
        each = even_ranges(np.ones(len(names)), 1)
        done = self._run(Joining, stage, _join, each, (results, stage, tuple(names)), None, _Needs())
        files = [file for piece in done for file in _files_of(str(self._folder), piece)]
        return {name: file.values for name, file in zip(names, files, strict=True)}

    def _run(
        self,
        kind: type[Task],
        stage: str,
        function: Function,
        ranges: Sequence[Range],
        arguments: tuple[Any, ...],
        costs: Array | None,
        needs: _Needs,
    ) -> Results:
        order, amounts = longest_first(ranges, costs)
        sums = np.concatenate([[0], np.cumsum(costs)]) if costs is not None else None
        pending = [
            kind(
                self._token,
                str(self._folder),
                stage,
                function,
                arguments,
                *ranges[place],
                needs.of(*ranges[place]),
            )
            for place in order
        ]
        done: list[Range] = []
        with progress.task(shown(stage), total=sum(amounts)) as advance:
            while pending:
                refused = []
                for task, fits in self._finished(pending):
                    if not fits:
                        refused.append(task)
                        continue
                    done.append((task.start, task.stop))
                    advance(int(sums[task.stop] - sums[task.start]) if sums is not None else task.stop - task.start)
                pending = [half for task in refused for half in task.halves(needs)]
        write_piece(index_path(str(self._folder), stage), {"ranges": np.array(sorted(done)).reshape(-1, 2)})
        forget_opened()
        return StoredResults(str(self._folder), stage)

    def _finished(self, tasks: list[Task]) -> Iterator[tuple[Task, bool]]:
        if self._workers is not None:
            yield from self._workers.finished(tasks)
        else:
            yield from zip(tasks, map_blocks(Task.run, tasks, self.jobs), strict=True)

    def side_by_side(self, results: Any, name: str, shape: tuple[int, int]) -> tuple[Array, list[Piece]]:
        path = self._folder / f"{results.stage}-{name}.npy"
        with Spool(path, np.float32, shape[1]) as spool:
            for rows in split(shape[0], max(1, _STRIP // max(1, shape[1]))):
                spool.append(np.concatenate([piece[name][rows] for piece in results], axis=1))
        rest: list[Piece] = [{key: np.array(piece[key]) for key in piece if key != name} for piece in results]
        return spool.finished().values, rest


def _told(array: Array) -> dict[str, Any]:
    """What tells an array from others: its file or, if it is in memory, its content."""
    if (remote := remote_behind(array)) is not None:
        return {"file": remote.stored.sha256}
    path = file_behind(array)
    if path is not None:
        return {"path": str(path), "changed": os.stat(path).st_mtime_ns}
    return {"sha256": sha256(np.ascontiguousarray(array).data).hexdigest()}


def _stored(path: Path, array: Array) -> Spooled | RemoteFile:
    """The file of an array; one in memory is written to `path`."""
    remote: RemoteFile | None = remote_behind(array)
    if remote is not None:
        return remote
    known = file_behind(array)
    if known is not None:
        return Spooled(known, array.dtype.newbyteorder("<").str, array.shape)
    with Spool(path, array.dtype) as spool:
        spool.append(array)
    return spool.finished()
