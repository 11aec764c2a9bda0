"""The cache of arrays from object stores: each file lies under its checksum, and appears when it is complete."""

from __future__ import annotations

import os
from collections.abc import Callable
from hashlib import file_digest
from pathlib import Path

from longtail.errors import Unavailable, reason
from longtail.files import cache_directory
from longtail.store import files
from longtail.store.layout import StoredFile


def path_of(stored: StoredFile) -> Path:
    """Where the cache keeps a file."""
    return cache_directory() / "arrays" / stored.sha256 / stored.name


def put(stored: StoredFile, write: Callable[[Path], None], *, verify: bool) -> Path:
    """The cached file, which ``write(folder)`` makes unless it is there; processes that need it at once wait.

    `verify` also compares the checksum of a file that is there, not only its length.
    """
    path = path_of(stored)
    try:
        if is_intact(path, stored, verify=verify):
            return path
        os.makedirs(path.parent, exist_ok=True)
        with files.locked(path.parent):
            if not is_intact(path, stored, verify=verify):
                files.remove_ours(path.parent, keep=())
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
