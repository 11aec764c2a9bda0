"""`FeedbackFile`: corrections of tags as lines of a JSON lines file, each on disk before its sender gets an answer.

Several services may write to one file. The file may be moved away at any time; the next correction begins a new one.
"""

from __future__ import annotations

import json
import logging
import os
import stat
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from longtail.errors import InvalidInput, Unavailable, no_room, reason
from longtail.files import PathName
from longtail.printable import json_text
from longtail.serve.refusal import Refusal

if sys.platform != "win32":
    import fcntl

_log = logging.getLogger(__name__)

# An update reads no longer lines.
_LONGEST_LINE = 1 << 24
_OPENING = b'{"time": '
_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT
for _name in ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"):
    _FLAGS |= getattr(os, _name, 0)


class FeedbackFile:
    """A file of corrections that any number of services write to.

    Parameters
    ----------
    path : str or path-like
        Created with access for its owner only, unless it exists.
    most : int
        Maximum size of the file in bytes.

    Raises
    ------
    InvalidInput
        If `path` is not a regular file, or holds lines that are not JSON objects.
    Unavailable
        If the file cannot be read and written.

    Examples
    --------
    >>> import tempfile
    >>> feedback = FeedbackFile(tempfile.mkdtemp() + "/feedback.jsonl")
    >>> feedback.append([correction("notes", "5f3c", "a red apple", added=[label]) for label in ("fruit", "red")])
    >>> feedback.waiting("notes", datetime(2020, 1, 1, tzinfo=UTC))
    1
    """

    def __init__(self, path: PathName, most: int = 1 << 28) -> None:
        self.path = os.path.abspath(path)
        self._most = most
        self._counting = threading.Lock()
        self._forget()
        try:
            with self._locked() as descriptor:
                self._count(descriptor, strictly=True)
                # Only now, because this may cut off half a line: the file is one of corrections.
                if self._mended(descriptor) >= most:
                    _log.warning("%s has reached its limit of %d bytes; corrections will be refused", path, most)
        except OSError as error:
            what = "it is a symbolic link" if os.path.islink(path) else reason(error)
            advice = "give the name of a file, which may be new, in a folder that the service may write to"
            raise Unavailable(f"cannot write corrections to {path}: {what}; {advice}", path=path) from None

    def append(self, records: Sequence[dict[str, Any]]) -> None:
        """Write records, all or none, or raise a `Refusal`; they are on disk when this returns."""
        lines = [json_text(record).encode("utf-8", "backslashreplace") + b"\n" for record in records]
        if max(map(len, lines), default=0) > _LONGEST_LINE:
            raise Refusal("text_too_long", f"the correction is longer than {_LONGEST_LINE} bytes; send a shorter text")
        try:
            with self._locked() as descriptor:
                size = self._mended(descriptor)
                if size + sum(map(len, lines)) > self._most:
                    raise _full(f"the file of corrections has reached its limit of {self._most} bytes")
                try:
                    for line in lines:
                        _write(descriptor, line)
                    os.fsync(descriptor)
                except BaseException:
                    os.ftruncate(descriptor, size)
                    raise
                if not size:
                    _sync_folder(self.path)
        except OSError as error:
            _log.error("corrections cannot be written to %s: %s", self.path, reason(error))
            if no_room(error):
                raise _full("the disk of the service is full") from None
            raise _failed() from None
        except InvalidInput as error:
            _log.error("%s", error)
            raise _failed() from None

    def waiting(self, model: str, since: datetime) -> int:
        """The number of texts with corrections of a model that are newer than `since`."""
        with self._counting:
            try:
                # Not for writing: a file that was moved away must not come back empty.
                descriptor = os.open(self.path, _FLAGS & ~(os.O_CREAT | os.O_APPEND | os.O_RDWR))
            except OSError:
                self._forget()
                return 0
            try:
                self._count(descriptor)
            except OSError as error:
                _log.warning("%s cannot be read: %s", self.path, reason(error))
            finally:
                os.close(descriptor)
            return sum(time > since.timestamp() for time in self._times.get(model, {}).values())

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """The file, open and locked against other services, until the block ends."""
        while True:
            descriptor = os.open(self.path, _FLAGS, 0o600)
            try:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise InvalidInput(f"{self.path} is not a regular file; give another for corrections")
                if sys.platform != "win32":
                    _lock(descriptor)
                if not _is_still_at(descriptor, self.path):
                    continue  # it was moved away meanwhile
                yield descriptor
                return
            finally:
                os.close(descriptor)

    def _mended(self, descriptor: int) -> int:
        """The size of the file once its last line has an end: a machine that stopped can have left half a line."""
        size = os.fstat(descriptor).st_size
        if not size or _read(descriptor, size - 1, 1) == b"\n":
            return size
        begin = max(0, size - _LONGEST_LINE)
        tail = _read(descriptor, begin, size - begin)
        line = tail[tail.rfind(b"\n") + 1 :]
        begun = line.rstrip(b"\0")  # a machine that lost power can leave zeros
        if _object(line) is not None:
            _write(descriptor, b"\n")
            return size + 1
        if not (begun.startswith(_OPENING) or _OPENING.startswith(begun)):
            raise InvalidInput(f"the end of {self.path} is not a correction; give another file", path=self.path)
        _log.warning("%s ended in half a line, which was removed", self.path)
        os.ftruncate(descriptor, size - len(line))
        return size - len(line)

    def _forget(self) -> None:
        self._file: tuple[int, int] | None = None
        self._read_to = 0
        self._times: dict[str, dict[int, float]] = {}

    def _count(self, descriptor: int, strictly: bool = False) -> None:
        """Read what was added since the last time: the time of the last correction of each text, by model."""
        found = os.fstat(descriptor)
        if self._file != (found.st_dev, found.st_ino) or found.st_size < self._read_to:
            self._forget()
            self._file = found.st_dev, found.st_ino
        if found.st_size == self._read_to:
            return
        with open(descriptor, "rb", closefd=False) as stream:
            stream.seek(self._read_to)
            number = 0
            while line := stream.readline(_LONGEST_LINE):
                number += 1
                if not line.endswith(b"\n") and len(line) < _LONGEST_LINE:
                    break  # it is being written, or will be mended
                record = _object(line)
                if record is None and strictly and line.strip():
                    raise InvalidInput(
                        f"{self.path}, line {number}, is not a JSON object; give a file of corrections, or a new name",
                        path=self.path,
                        line=number,
                    )
                self._read_to += len(line)
                model, time = _origin(record or {})
                if record is not None and model is not None:
                    row = hash(str(record.get("id", record.get("text"))))
                    self._times.setdefault(model, {})[row] = time


def write_all(file: FeedbackFile, records: list[dict[str, Any]]) -> list[None]:
    """The work of the writing thread: corrections that arrive together go to the disk together."""
    file.append(records)
    return [None] * len(records)


def correction(
    model: str,
    version: str,
    text: str,
    *,
    accepted: Sequence[str] = (),
    rejected: Sequence[str] = (),
    added: Sequence[str] = (),
    row: str | None = None,
) -> dict[str, Any]:
    """A record of the file: each label at most once, and rejected wins over accepted, which wins over added.

    >>> record = correction("notes", "5f3c", "a red apple", accepted=["fruit"], added=["fruit", "red", "red"])
    >>> record["accepted"], record["rejected"], record["added"]
    (['fruit'], [], ['red'])
    """
    seen: set[str] = set()
    kept = {}
    for field, labels in (("rejected", rejected), ("accepted", accepted), ("added", added)):
        kept[field] = [label for label in dict.fromkeys(labels) if label not in seen]
        seen.update(labels)
    return {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "model": model,
        "version": version,
        "text": text,
        **{field: kept[field] for field in ("accepted", "rejected", "added")},
        **({} if row is None else {"id": row}),
    }


def _full(why: str) -> Refusal:
    return Refusal("feedback_full", f"{why}; tell the person who runs the service")


def _failed() -> Refusal:
    advice = "tell the person who runs the service"
    return Refusal("feedback_failed", f"the service cannot write its file of corrections; {advice}")


def _lock(descriptor: int) -> None:
    # Some network file systems have no locks; one service alone needs none.
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def _is_still_at(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


def _read(descriptor: int, begin: int, count: int) -> bytes:
    os.lseek(descriptor, begin, os.SEEK_SET)
    parts = []
    while count and (part := os.read(descriptor, count)):
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _write(descriptor: int, line: bytes) -> None:
    """One call for a line, and more only if the system takes a part of it, as on a disk that becomes full."""
    view = memoryview(line)
    while len(view):
        view = view[os.write(descriptor, view) :]


def _sync_folder(path: str) -> None:
    """Make the name of a new file durable, where the system can open folders."""
    if sys.platform != "win32":
        descriptor = os.open(os.path.dirname(path), os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _origin(record: dict[str, Any]) -> tuple[str | None, float]:
    """The model and the time of a correction; no model for what is not one."""
    model, time = record.get("model"), record.get("time")
    if not isinstance(model, str) or not isinstance(time, str):
        return None, 0.0
    try:
        at = datetime.fromisoformat(time)
        return model, (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None, 0.0
