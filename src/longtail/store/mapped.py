"""Arrays that are mapped from files, and the way back from such an array to its file."""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from longtail.arrays import Array


@dataclass(frozen=True)
class _Origin:
    path: Path
    identity: tuple[int, int, int]
    is_scratch: bool
    remote: Any


_origins: WeakKeyDictionary[mmap.mmap, _Origin] = WeakKeyDictionary()


def map_whole(file: Any, path: Path, length: int, *, is_scratch: bool = False, remote: Any = None) -> mmap.mmap:
    """Map an open file; remember its path and the `RemoteFile` it is a copy of. Nobody else needs a scratch file."""
    mapped = mmap.mmap(file.fileno(), length, access=mmap.ACCESS_READ)
    _origins[mapped] = _Origin(Path(os.path.abspath(path)), _identity(os.fstat(file.fileno())), is_scratch, remote)
    return mapped


def file_behind(array: Array, *, only_scratch: bool = False) -> Path | None:
    """The `.npy` file whose values an array maps, all of them; None if there is none or it has been replaced."""
    origin = _origin(array)
    if origin is None or (only_scratch and not origin.is_scratch):
        return None
    try:
        return origin.path if _identity(os.stat(origin.path)) == origin.identity else None
    except OSError:
        return None


def remote_behind(array: Array) -> Any:
    """The `RemoteFile` whose values an array maps, all of them; None if there is none."""
    origin = _origin(array)
    return None if origin is None else origin.remote


def _origin(array: Array) -> _Origin | None:
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    mapped: Any = base.obj if isinstance(base, memoryview) else None
    origin = _origins.get(mapped) if isinstance(mapped, mmap.mmap) else None
    if origin is None:
        return None
    head = array.ctypes.data - np.frombuffer(mapped, np.uint8).ctypes.data
    if not array.flags.c_contiguous or head != 128 or head + array.nbytes != len(mapped):
        return None
    return origin


def _identity(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_ino, found.st_size, found.st_mtime_ns
