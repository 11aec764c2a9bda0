"""Tasks: each reads mapped files and writes one file, its piece. A piece that is there already is not made again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from longtail.errors import NotEnoughMemory
from longtail.memory import format_bytes
from longtail.store import Spooled, is_sound, join_pieces, read_piece, write_piece
from longtail.work.results import Kept, Piece, StoredResults, forget_other_trainings, piece_path
from longtail.work.room import room
from longtail.work.work import Function, Needs, shown


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
        with room.taken(self.memory) as fits:
            if not fits:
                return False
            opened = [each.open() if isinstance(each, Kept) else each for each in self.arguments]
            write_piece(self.path, self.function(*opened, self.start, self.stop))
        return True

    def is_done(self) -> bool:
        """Whether there is a sound piece."""
        return is_sound(self.path)

    def halves(self, needs: Needs) -> list[Task]:
        """Two smaller tasks."""
        if self.stop - self.start < 2:
            raise NotEnoughMemory(
                f"{shown(self.stage)}: the largest task needs about {format_bytes(self.memory)}, and the workers that "
                f"got it have less, or died; give the workers more memory"
            )
        middle = (self.start + self.stop) // 2
        return [
            replace(self, start=start, stop=stop, memory=needs.bytes_of(start, stop))
            for start, stop in ((self.start, middle), (middle, self.stop))
        ]


class Joining(Task):
    """A task that joins arrays; its piece tells their files."""

    def is_done(self) -> bool:
        """Whether the piece and the files are sound."""
        return super().is_done() and all(_is_intact(file) for file in files_of(self.folder, read_piece(self.path)))


def join(results: StoredResults, stage: str, names: Sequence[str], start: int, stop: int) -> Piece:
    """Join the arrays of some names."""
    pieces = [piece_path(results.folder, results.stage, *each) for each in results.ranges]
    files = [join_pieces(pieces, name, Path(results.folder, f"{stage}-{name}.npy")) for name in names[start:stop]]
    told = [[file.path.name, file.dtype, file.shape[0], file.sha256()] for file in files]
    return {"files": np.frombuffer(json.dumps(told).encode(), np.uint8)}


def files_of(folder: str, piece: Piece) -> list[Spooled]:
    """The files that a task has joined."""
    told = json.loads(piece["files"].tobytes())
    return [Spooled(Path(folder, name), dtype, (length,), sha256) for name, dtype, length, sha256 in told]


def _is_intact(file: Spooled) -> bool:
    try:
        return file.read_sha256() == file.sha256()
    except OSError:
        return False
