"""The cache of arrays from object stores: each file lies under its checksum, and appears when it is complete."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from hashlib import file_digest
from pathlib import Path

from longtail.errors import Unavailable, reason
from longtail.files import cache_directory
from longtail.memory import parse_bytes
from longtail.store import files
from longtail.store.layout import StoredFile

_KEPT = 3600  # seconds after its last use in which a file is not removed: its reader may not have opened it yet


def path_of(stored: StoredFile) -> Path:
    """Where the cache keeps a file."""
    return cache_directory() / "arrays" / stored.sha256 / stored.name


def put(stored: StoredFile, write: Callable[[Path], None], *, verify: bool) -> Path:
    """The cached file, which ``write(folder)`` makes unless it is there; processes that need it at once wait.

    `verify` also compares the checksum of a file that is there, not only its length.
    """
    path = path_of(stored)
    try:
        _note_use(path.parent)
        if is_intact(path, stored, verify=verify):
            return path
        os.makedirs(path.parent, exist_ok=True)
        with files.locked(path.parent):
            if not is_intact(path, stored, verify=verify):
                files.remove_ours(path.parent, keep=())
                _make_room(stored.length)
                try:
                    write(path.parent)
                except BaseException:
                    files.remove_ours(path.parent, keep=())
                    raise
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Unavailable(
            f"the cache {path.parent} cannot be used: {reason(error)}; $LONGTAIL_CACHE names another folder"
        ) from None
    return path


def is_intact(path: Path, stored: StoredFile, *, verify: bool = True) -> bool:
    """Whether a file is there with its length and, for `verify`, its checksum."""
    try:
        with files.open_plain(path) as file:
            return os.fstat(file.fileno()).st_size == stored.length and (
                not verify or file_digest(file, "sha256").hexdigest() == stored.sha256
            )
    except FileNotFoundError:
        return False


def _note_use(folder: Path) -> None:
    # Not the time of the file: it tells whether the file is still the one that is mapped.
    with suppress(OSError), files.locked(folder):
        os.utime(folder)


def _make_room(size: int) -> None:
    """Remove the least recently used files until a new one fits into $LONGTAIL_CACHE_SIZE.

    A process that has mapped a file can go on reading it; Windows does not remove such a file.
    """
    chosen = os.environ.get("LONGTAIL_CACHE_SIZE")
    if not chosen:
        return
    excess = size - parse_bytes(chosen)
    found = []
    with suppress(FileNotFoundError):
        for folder in (cache_directory() / "arrays").iterdir():
            with suppress(OSError):  # another process has removed it
                found.append((os.stat(folder).st_mtime, folder, _size_of(folder)))
    excess += sum(size for _, _, size in found)
    for used, folder, size in sorted(found):
        if excess <= 0 or used > time.time() - _KEPT:
            break
        with suppress(OSError), files.locked(folder, wait=False) as free:
            if free and os.stat(folder).st_mtime == used:
                files.remove_ours(folder, keep=())
                excess -= size


def _size_of(folder: Path) -> int:
    size = 0
    for path in folder.iterdir():
        with suppress(FileNotFoundError):
            size += os.stat(path).st_size
    return size
