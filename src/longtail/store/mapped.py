"""Arrays that are mapped from files, and the way back from such an array to its file."""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from longtail.arrays import Array

if TYPE_CHECKING:
    from longtail.store.spool import Spooled


@dataclass(frozen=True)
class _Origin:
    path: Path
    identity: tuple[int, int, int]
    scratch: Spooled | None
    remote: Any


_origins: WeakKeyDictionary[mmap.mmap, _Origin] = WeakKeyDictionary()


def map_whole(file: Any, path: Path, length: int, scratch: Spooled | None = None, remote: Any = None) -> mmap.mmap:
    """Map an open file and remember its path; `scratch` if nobody else needs the file, `remote` if it is a copy."""
    mapped = mmap.mmap(file.fileno(), length, access=mmap.ACCESS_READ)
    _origins[mapped] = _Origin(Path(os.path.abspath(path)), _identity(os.fstat(file.fileno())), scratch, remote)
    return mapped


def file_behind(array: Array) -> Path | None:
    """The `.npy` file whose values an array maps, all of them; None if there is none or it has been replaced."""
    origin = _origin(array)
    return None if origin is None else origin.path


def scratch_behind(array: Array) -> Spooled | None:
    """The scratch file whose values an array maps, as `file_behind`."""
    origin = _origin(array)
    return None if origin is None else origin.scratch


def remote_behind(array: Array) -> Any:
    """The `RemoteFile` whose cached copy an array maps, as `file_behind`."""
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
    try:
        return origin if _identity(os.stat(origin.path)) == origin.identity else None
    except OSError:
        return None


def release_pages() -> None:
    """Take the mapped pages out of the memory of this process; they are read again when they are used."""
    if hasattr(mmap, "MADV_DONTNEED"):
        for reference in _origins.keyrefs():
            mapped = reference()
            if mapped is not None:
                mapped.madvise(mmap.MADV_DONTNEED)


def _identity(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_ino, found.st_size, found.st_mtime_ns
