"""The results of a stage of work: one mapping of arrays for each range of items."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from longtail.arrays import Array
from longtail.store import Spooled, read_piece

Range = tuple[int, int]
Piece = Mapping[str, Array]


class Kept(ABC):
    """An argument of stages that is small to send: it names files, and a worker opens it."""

    @abstractmethod
    def open(self) -> Any:
        """What the function of a stage receives."""


class Results(Sequence[Piece]):
    """Results in memory, in the order of their ranges."""

    def __init__(self, ranges: Sequence[Range], pieces: list[Piece]) -> None:
        self.ranges: Sequence[Range] = ranges
        self._pieces = pieces

    def __len__(self) -> int:
        return len(self.ranges)

    def __getitem__(self, place):  # type: ignore[no-untyped-def]
        return self._pieces[place]

    def find(self, item: int) -> tuple[Piece, int]:
        """The result that an item belongs to, and the place of the item in it."""
        place = bisect_right([start for start, _ in self.ranges], item) - 1
        return self[place], item - self.ranges[place][0]


@dataclass(frozen=True)
class StoredResults(Results):
    """Results in files. It is small to send: a worker that gets it maps the files."""

    folder: str
    stage: str

    @property
    def ranges(self) -> Sequence[Range]:  # type: ignore[override]
        return _ranges(self.folder, self.stage)

    def __getitem__(self, place):  # type: ignore[no-untyped-def]
        start, stop = self.ranges[place]
        return _opened(piece_path(self.folder, self.stage, start, stop))


@dataclass(frozen=True)
class StoredPiece(Kept):
    """Arrays in a piece and in files of their own, by their paths."""

    path: str
    files: tuple[tuple[str, Spooled], ...]

    def open(self) -> Piece:
        return {**_opened(Path(self.path)), **{name: mapped(file) for name, file in self.files}}


def piece_path(folder: str, stage: str, start: int, stop: int) -> Path:
    """The file with the result of one task."""
    return Path(folder, f"{stage}.{start}-{stop}")


def index_path(folder: str, stage: str) -> Path:
    """The file with the ranges of a finished stage."""
    return Path(folder, f"{stage}.index")


@lru_cache(maxsize=64)
def _ranges(folder: str, stage: str) -> Sequence[Range]:
    found = np.asarray(read_piece(index_path(folder, stage))["ranges"]).tolist()
    return [(start, stop) for start, stop in found]


@lru_cache(maxsize=256)
def _opened(path: Path) -> Piece:
    return read_piece(path)


@lru_cache(maxsize=256)
def mapped(file: Spooled) -> Array:
    """The array in a file, which stays open from task to task."""
    return file.values


def forget_opened() -> None:
    """Close files that are kept open from task to task."""
    mapped.cache_clear()
    _ranges.cache_clear()
    _opened.cache_clear()


_last_training = ""


def forget_other_trainings(training: str) -> None:
    """Close what another training has opened in this process: its files may have the same names."""
    global _last_training
    if training != _last_training:
        forget_opened()
        _last_training = training
