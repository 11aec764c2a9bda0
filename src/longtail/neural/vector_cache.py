"""`VectorCache`: vectors on disk, found by the hash of the text that they belong to.

Two files grow at their ends: ``hashes.bin`` and ``vectors.bin``. Every row has a checksum, so a row that is torn, cut
or damaged counts as missing. The texts themselves are not stored.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import numpy as np

from longtail.arrays import Array
from longtail.errors import InvalidInput, reason
from longtail.files import PathName
from longtail.memory import format_bytes
from longtail.store import locked, open_plain

_log = logging.getLogger(__name__)

_FORMAT = 1
_HASHES, _VECTORS = "hashes.bin", "vectors.bin"
_HASH = np.dtype([("start", "<u8"), ("rest", "V24"), ("checksum", "<u4")])
_FOLDER_PREFIX = "vectors-"
# Sorting a large index again takes longer than looking up a few texts, so the newest rows wait in a dict.
_RECENT_ROWS = 1 << 16
DEFAULT_CACHE_BYTES = 2 << 30


class VectorCache:
    """Vectors of one encoder in a folder that several processes may share.

    Parameters
    ----------
    folder : str or path-like
        Created if it does not exist. It may hold the vectors of several encoders, each in a folder of its own.
    identity : sequence of str and int
        What the vectors depend on apart from the text. Other identities never see them.
    width : int
        The length of a vector.
    max_bytes : int
        The cache stops growing at this size; the vectors of all encoders in `folder` count.

    Notes
    -----
    A cache that cannot be written, because the disk is full for example, says so once in the log and is then only read.
    """

    def __init__(
        self, folder: PathName, identity: Sequence[str | int], width: int, max_bytes: int = DEFAULT_CACHE_BYTES
    ) -> None:
        self.folder, self.width, self.max_bytes = Path(folder), width, max_bytes
        self._identity = hashlib.sha256(json.dumps([_FORMAT, width, *identity]).encode()).digest()
        self._home = self.folder / f"{_FOLDER_PREFIX}{self._identity.hex()[:16]}"
        try:
            self._home.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInput(f"cannot use {self.folder} as a cache: {reason(error)}", path=self.folder) from None
        self._grows = True
        self._known = 0
        self._starts: Array = np.empty(0, np.uint64)
        self._rows: Array = np.empty(0, np.int64)
        self._recent: dict[int, int] = {}

    def key(self, text: str) -> bytes:
        """The hash by which the vector of a text is found."""
        return hashlib.sha256(self._identity + text.encode("utf-8", "surrogatepass")).digest()

    def lookup(self, keys: Sequence[bytes]) -> tuple[Array, Array]:
        """Read the vectors of these keys.

        Returns
        -------
        found : bool array of shape (n_keys,)
        vectors : float32 array of shape (n_keys, width)
            Zeros where nothing was found.
        """
        found = np.zeros(len(keys), bool)
        vectors = np.zeros((len(keys), self.width), np.float32)
        try:
            with open_plain(self._home / _HASHES) as hashes, open_plain(self._home / _VECTORS) as stored:
                self._learn_new_rows(hashes, _rows_in(hashes, _HASH.itemsize))
                rows = self._find(keys)
                # Rising rows are read in the order of the file.
                for place in np.argsort(rows, kind="stable"):
                    vector = None if rows[place] < 0 else self._read(hashes, stored, int(rows[place]), keys[place])
                    if vector is not None:
                        found[place], vectors[place] = True, vector
        except OSError:  # there is no cache yet, or it is not ours to read: all vectors are computed again
            pass
        return found, vectors

    def append(self, keys: Sequence[bytes], vectors: Array) -> None:
        """Add vectors at the end, as many as the size limit allows."""
        if not self._grows or not len(keys):
            return
        try:
            with locked(self._home):
                self._append(keys, np.ascontiguousarray(vectors, "<f4"))
        except OSError as error:
            self._stop_growing(f"cannot be written: {reason(error)}")

    def _append(self, keys: Sequence[bytes], vectors: Array) -> None:
        row_bytes = 4 * self.width
        with _appending(self._home / _HASHES) as hashes, _appending(self._home / _VECTORS) as stored:
            # A writer that was killed can leave vectors without hashes, or a part of a row, at the end.
            n_rows = min(_rows_in(hashes, _HASH.itemsize), _rows_in(stored, row_bytes))
            hashes.truncate(n_rows * _HASH.itemsize)
            stored.truncate(n_rows * row_bytes)
            room = max(0, self.max_bytes - _used_bytes(self.folder)) // (row_bytes + _HASH.itemsize)
            if room < len(keys):
                self._stop_growing(f"has reached its limit of {format_bytes(self.max_bytes)}")
            keys, vectors = keys[:room], vectors[:room]
            rows = [key + _checksum(key, vector.tobytes()) for key, vector in zip(keys, vectors, strict=True)]
            stored.write(vectors.tobytes())
            stored.flush()
            hashes.write(b"".join(rows))

    def _stop_growing(self, why: str) -> None:
        self._grows = False
        _log.warning("the cache of vectors in %s %s; further vectors are not kept", self.folder, why)

    def _learn_new_rows(self, hashes: BinaryIO, n_rows: int) -> None:
        """Index the rows that this object or other processes have added."""
        if n_rows < self._known:  # somebody emptied the cache
            self._known, self._starts, self._rows = 0, self._starts[:0], self._rows[:0]
            self._recent.clear()
        hashes.seek(self._known * _HASH.itemsize)
        content = hashes.read((n_rows - self._known) * _HASH.itemsize)
        new = np.frombuffer(content, _HASH, len(content) // _HASH.itemsize)["start"]
        ids = np.arange(self._known, self._known + len(new))
        self._known += len(new)
        if len(self._recent) + len(new) <= _RECENT_ROWS:
            self._recent.update(zip(new.tolist(), ids.tolist(), strict=True))
            return
        recent = list(self._recent.items())
        starts = np.concatenate([self._starts, np.array([start for start, _ in recent], np.uint64), new])
        rows = np.concatenate([self._rows, np.array([row for _, row in recent], np.int64), ids])
        order = np.lexsort((rows, starts))
        self._starts, self._rows = starts[order], rows[order]
        self._recent.clear()

    def _find(self, keys: Sequence[bytes]) -> Array:
        """The newest row of each key, which repairs an older damaged one; -1 where there is none."""
        starts = np.frombuffer(b"".join(key[:8] for key in keys), "<u8").astype(np.uint64)
        rows = np.full(len(keys), -1, np.int64)
        if len(self._starts):
            places = np.searchsorted(self._starts, starts, side="right") - 1
            rows = np.where((places >= 0) & (self._starts[places] == starts), self._rows[places], rows)
        for place, start in enumerate(starts.tolist()):
            rows[place] = self._recent.get(start, rows[place])
        return rows

    def _read(self, hashes: BinaryIO, stored: BinaryIO, row: int, key: bytes) -> Array | None:
        """The vector of a row, or None if the row is damaged or belongs to another key."""
        hashes.seek(row * _HASH.itemsize)
        stored.seek(row * 4 * self.width)
        content = stored.read(4 * self.width)
        if len(content) != 4 * self.width or hashes.read(_HASH.itemsize) != key + _checksum(key, content):
            return None
        vector = np.frombuffer(content, "<f4")
        return vector if np.isfinite(vector).all() else None


def _checksum(key: bytes, content: bytes) -> bytes:
    return zlib.crc32(content, zlib.crc32(key)).to_bytes(4, "little")


def _rows_in(stream: BinaryIO, row_bytes: int) -> int:
    return os.fstat(stream.fileno()).st_size // row_bytes


def _appending(path: Path) -> BinaryIO:
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
        flags |= getattr(os, name, 0)
    return os.fdopen(os.open(path, flags, 0o666), "ab")


def _used_bytes(folder: Path) -> int:
    used = 0
    for name in (_HASHES, _VECTORS):
        for path in folder.glob(f"{_FOLDER_PREFIX}*/{name}"):
            with suppress(OSError):
                used += path.lstat().st_size
    return used
