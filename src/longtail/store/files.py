"""The file operations of the store: durable writes, locks, and opening of plain files only.

Every change to the disk goes through `os` in this module, so the tests can make each step fail.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from hashlib import sha256
from io import BufferedReader
from pathlib import Path
from typing import Any

from longtail.errors import InvalidInput, Unavailable, reason

if sys.platform != "win32":
    import fcntl

MANIFEST = "manifest.json"
LOCK = "lock"
CARD = "card.json"
ARRAY_FILE = re.compile(r"[a-z0-9_][a-z0-9_-]{0,127}-[0-9a-f]{16}\.npy")
_TEMPORARY_FILE = re.compile(r"\.longtail-[0-9a-f]{16}\.tmp")
_CHUNK = 1 << 26


class SpecialFileError(OSError):
    """A link, a directory, a pipe or a device where a file was expected."""


def open_plain(path: Path) -> BufferedReader:
    """Open a regular file for reading; never follow a link, never wait on a pipe."""
    if not stat.S_ISREG(os.lstat(path).st_mode):
        raise SpecialFileError(f"{path.name} is not a plain file")
    flags = os.O_RDONLY
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
        flags |= getattr(os, name, 0)
    file = os.fdopen(os.open(path, flags), "rb")
    # The file can have been swapped since lstat.
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise SpecialFileError(f"{path.name} is not a plain file")
    return file


def is_ours(name: str) -> bool:
    """Whether only the store creates files with such a name, so that it may remove them."""
    return bool(ARRAY_FILE.fullmatch(name) or _TEMPORARY_FILE.fullmatch(name))


def write_file(directory: Path, name: str, blocks: Iterable[Any]) -> None:
    """Write `blocks` to a temporary file, make it durable, and only then rename it; after a failure it is removed."""
    temporary = directory / f".longtail-{secrets.token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    descriptor = os.open(temporary, flags, 0o666)
    try:
        try:
            for block in blocks:
                view = memoryview(block)
                while len(view):
                    view = view[os.write(descriptor, view[:_CHUNK]) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(temporary, directory / name)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise `Unavailable` with the path if the system cannot write a file inside the block."""
    try:
        yield
    except OSError as error:
        raise Unavailable(f"{path} cannot be written: {reason(error)}") from error


def link_file(directory: Path, name: str, source: Path) -> None:
    """Give a finished file a second name, or copy it where links are not possible."""
    temporary = directory / f".longtail-{secrets.token_hex(8)}.tmp"
    try:
        os.link(source, temporary)
    except OSError:
        with open(source, "rb") as file:
            write_file(directory, name, iter(lambda: file.read(_CHUNK), b""))
        return
    os.replace(temporary, directory / name)


def sync_directory(directory: Path) -> None:
    """Make the names in `directory` durable, if the system can open directories."""
    if sys.platform != "win32":
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove_ours(directory: Path, keep: Iterable[str]) -> None:
    """Remove the store's own files except `keep`; a file that the system does not release stays for the next save."""
    kept = set(keep)
    for name in os.listdir(directory):
        if is_ours(name) and name not in kept:
            # Windows refuses while a reader has the file mapped; the next save tries again.
            with suppress(OSError):
                os.unlink(directory / name)


def remove_card(directory: Path) -> None:
    """Remove the card of the earlier model; if that fails, the card still names that model and is ignored."""
    with suppress(OSError):
        os.unlink(directory / CARD)


@contextmanager
def locked(directory: Path, *, wait: bool = True) -> Iterator[bool]:
    """Lock the directory against other processes that save; yield False if it is taken and `wait` is False.

    The lock ends with its process. Windows cannot lock a directory: there, only one process at a time may save.
    """
    if sys.platform == "win32":
        yield True
        return
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    free = True
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            free = False
        except OSError:
            # Some network file systems have no locks; saving must work there too.
            pass
        yield free
    finally:
        os.close(descriptor)


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Create a folder for the work of one process; `InvalidInput` if another one works in it.

    The lock is a file, since directories on network file systems cannot be locked. It ends with its process.
    """
    try:
        os.makedirs(folder, exist_ok=True)
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
    except OSError as error:
        raise Unavailable(f"{folder} cannot be used for unfinished work: {reason(error)}") from None
    try:
        try:
            if sys.platform != "win32":
                # Unlike those of flock, these locks do not live on in forked processes.
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_ours = os.path.samestat(os.fstat(descriptor), os.stat(folder / LOCK))
        except (BlockingIOError, PermissionError, FileNotFoundError):
            is_ours = False
        except OSError:
            is_ours = True  # some network file systems have no locks; the work must be possible there too
        if not is_ours:
            raise InvalidInput(
                f"another process is working in {folder}; wait until it has ended, or choose another folder",
                code="folder_in_use",
            )
        yield
    finally:
        os.close(descriptor)


@contextmanager
def sibling_of(target: Path) -> Iterator[Path]:
    """A new locked directory beside `target`, named as an unfinished save, and removed unless it is renamed."""
    os.makedirs(target.parent, exist_ok=True)
    sibling = target.parent / f"{_sibling_prefix(target)}{secrets.token_hex(4)}.tmp"
    with ExitStack() as held:
        # `remove_siblings` locks the parent too, so it never sees a sibling that is not locked yet.
        with locked(target.parent):
            os.mkdir(sibling)
            held.callback(_discard, sibling)
            held.enter_context(locked(sibling))
        yield sibling


def remove_siblings(target: Path) -> None:
    """Remove what killed saves of `target` left beside it; a running save holds a lock and is left alone."""
    pattern = re.compile(re.escape(_sibling_prefix(target)) + r"[0-9a-f]{8}\.tmp")
    # The model is saved by now: a failure to clean up must not become a failure to save.
    with suppress(OSError), locked(target.parent):
        for name in filter(pattern.fullmatch, os.listdir(target.parent)):
            with locked(target.parent / name, wait=False) as free:
                if free:
                    remove_model(target.parent / name)


def remove_model(directory: Path) -> None:
    """Remove the store's files from `directory`, then the directory, which must be empty."""
    with suppress(FileNotFoundError):
        os.unlink(directory / MANIFEST)
    remove_card(directory)
    remove_ours(directory, keep=())
    os.rmdir(directory)


def _discard(sibling: Path) -> None:
    # It was renamed, or another process removed it after its lock was released.
    with suppress(FileNotFoundError):
        remove_model(sibling)


def rename_directory(source: Path, target: Path) -> None:
    """Give a finished directory its final name."""
    os.rename(source, target)
    sync_directory(target.parent)


def _sibling_prefix(target: Path) -> str:
    # A hash, because the name may already be as long as the file system allows.
    return f".longtail-{sha256(os.fsencode(target.name)).hexdigest()[:8]}-"
