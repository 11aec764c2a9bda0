"""`Stored`: work whose results are files of a folder; threads, an executor or a cluster do it."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from longtail import progress
from longtail.arrays import Array
from longtail.parallel import map_blocks, split
from longtail.store import (
    RemoteFile,
    Spool,
    Spooled,
    claim_folder_of_job,
    file_behind,
    is_sound,
    read_piece,
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
    index_path,
    mapped,
)
from longtail.work.rows import Rows, even_ranges
from longtail.work.task import Joining, Task, files_of, join
from longtail.work.work import Function, Needs, Work, shown

_STRIP = 2**24  # values that are put together at once


@dataclass(frozen=True)
class StoredRows(Kept):
    """A sparse matrix in three `.npy` files, by their paths or URLs."""

    files: tuple[Spooled | RemoteFile, ...]
    n_columns: int

    def open(self) -> Rows:
        indptr, indices, data = map(mapped, self.files)
        return Rows(indptr, indices, data, self.n_columns)


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

    def _run(
        self,
        stage: str,
        function: Function,
        ranges: Sequence[Range],
        arguments: tuple[Any, ...],
        needs: Needs,
        kind: type[Task] = Task,
    ) -> Results:
        def task(start: int, stop: int) -> Task:
            size = needs.bytes_of(start, stop)
            return kind(self._token, str(self._folder), stage, function, arguments, start, stop, size)

        pending = [task(*ranges[place]) for place in needs.longest_first(ranges)]
        done: list[Range] = []
        with progress.task(shown(stage), total=needs.total(ranges)) as advance:
            while pending:
                refused = []
                for each, fits in self._finished(pending):
                    if not fits:
                        refused.append(each)
                        continue
                    done.append((each.start, each.stop))
                    advance(needs.amount(each.start, each.stop))
                pending = [half for each in refused for half in each.halves(needs)]
        write_piece(index_path(str(self._folder), stage), {"ranges": np.array(sorted(done)).reshape(-1, 2)})
        forget_opened()
        return StoredResults(str(self._folder), stage)

    def join(self, stage: str, results: Any, names: Sequence[str]) -> dict[str, Array]:
        each = even_ranges(np.ones(len(names)), 1)
        done = self._run(stage, join, each, (results, stage, tuple(names)), Needs(), Joining)
        files = [file for piece in done for file in files_of(str(self._folder), piece)]
        return {name: file.values for name, file in zip(names, files, strict=True)}

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
