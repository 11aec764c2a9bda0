"""`Spool`: an array that grows in a file, and becomes a file of a model without being read into memory."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from typing import Any, Self

import numpy as np

from longtail.arrays import Array
from longtail.errors import Unavailable
from longtail.store.files import writing
from longtail.store.layout import DTYPES, header
from longtail.store.mapped import map_whole

_HEAD = 128  # bytes of the header of any array of one dimension


@dataclass(frozen=True)
class Spooled:
    """A finished array in a `.npy` file, perhaps with the SHA-256 of the file."""

    path: Path
    dtype: str
    shape: tuple[int, ...]
    known_sha256: str | None = None

    @property
    def values(self) -> Array:
        """The array, mapped from the file."""
        count = math.prod(self.shape)
        if not count:
            return np.zeros(self.shape, DTYPES[self.dtype])
        with open(self.path, "rb") as file:
            mapped = map_whole(file, self.path, os.fstat(file.fileno()).st_size, self)
        return np.frombuffer(mapped, DTYPES[self.dtype], count, _HEAD).reshape(self.shape)

    def sha256(self) -> str:
        """The SHA-256 of the file; it is read if that is not known."""
        return self.known_sha256 or self.read_sha256()

    def read_sha256(self) -> str:
        with open(self.path, "rb") as file:
            return file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True)
class SpooledCsr:
    """The arrays of a CSR matrix in files."""

    data: Spooled
    indices: Spooled
    indptr: Spooled
    shape: tuple[int, int]


class Spool:
    """Appends to an array in a file: values or, if `width` is not None, rows of a matrix of this width.

    Examples
    --------
    >>> import tempfile
    >>> with Spool(Path(tempfile.mkdtemp()) / "counts.npy", np.int64) as spool:
    ...     spool.append([1, 2])
    ...     spool.append([3])
    >>> spool.finished().values.tolist()
    [1, 2, 3]
    """

    def __init__(self, path: Path, dtype: Any, width: int | None = None) -> None:
        self._path, self._dtype = path, np.dtype(dtype).newbyteorder("<").str
        self._length = 0
        self._tail = () if width is None else (width,)

    def __enter__(self) -> Self:
        # A saved model may share the earlier file.
        with writing(self._path):
            self._path.unlink(missing_ok=True)
            self._file = open(self._path, "wb")
            self._file.write(bytes(_HEAD))
        return self

    def append(self, values: Any) -> None:
        array = np.ascontiguousarray(values, DTYPES[self._dtype])
        with writing(self._path):
            self._file.write(array.data)
        self._length += len(array)

    def __len__(self) -> int:
        return self._length

    def __exit__(self, *error: object) -> None:
        try:
            with writing(self._path), self._file:
                if error[0] is None:
                    self._file.seek(0)
                    self._file.write(header(self._dtype, (self._length, *self._tail)))
                    self._file.flush()
                    os.fsync(self._file.fileno())
        except Unavailable:
            if error[0] is None:  # otherwise the first error counts
                raise

    def finished(self) -> Spooled:
        """The array; only after the block of ``with``."""
        return Spooled(self._path, self._dtype, (self._length, *self._tail))
