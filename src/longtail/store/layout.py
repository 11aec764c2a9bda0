"""What a model directory holds, described without its bytes; and the limits a description must keep."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

VERSION = 1
MAX_BYTES = 4 * 2**20
MAX_PARTS_DEPTH = 8
MAX_FILES = 10_000
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")


@dataclass(frozen=True)
class StoredFile:
    """One `.npy` file."""

    name: str
    sha256: str
    length: int
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class StoredArray:
    """A named array, sparse matrix or table of strings, and the files it is made of."""

    type: str
    shape: tuple[int, ...]
    files: Mapping[str, StoredFile]


@dataclass(frozen=True)
class StoredModel:
    """A `State` whose arrays are still on disk."""

    kind: str
    params: Mapping[str, Any]
    facts: Mapping[str, Any]
    arrays: Mapping[str, StoredArray]
    parts: Mapping[str, StoredModel]

    def walk(self, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], StoredModel]]:
        """This model and every part below it, with the names that lead there."""
        yield path, self
        for name, part in self.parts.items():
            yield from part.walk((*path, name))

    def files(self) -> Iterator[StoredFile]:
        """Every file of the model and its parts."""
        for _, model in self.walk():
            for array in model.arrays.values():
                yield from array.files.values()


@dataclass(frozen=True)
class Manifest:
    """The whole manifest: the model and the versions of what wrote it."""

    written_by: Mapping[str, str]
    model: StoredModel
    version: int = VERSION
