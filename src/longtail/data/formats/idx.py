"""Arrays in the IDX format of MNIST: a magic number, the shape, then the bytes."""

from __future__ import annotations

import gzip
import zlib
from math import prod
from pathlib import Path

import numpy as np

from longtail.arrays import Array
from longtail.errors import DataFormatError
from longtail.files import PathName

_SIZE_LIMIT = 2**30
_UNSIGNED_BYTE = 0x08


def read_idx(path: PathName) -> Array:
    """Read an IDX file of unsigned bytes, plain or gzipped.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "two-by-two"
    >>> _ = file.write_bytes(bytes([0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 2, 1, 2, 3, 4]))
    >>> read_idx(file).tolist()
    [[1, 2], [3, 4]]
    """
    path = Path(path)
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            start = file.read(4)
            if len(start) < 4 or start[:2] != b"\0\0" or start[2] != _UNSIGNED_BYTE or not 1 <= start[3] <= 4:
                raise DataFormatError(path, None, f"starts with {start!r}; expected an IDX file of unsigned bytes")
            sizes = file.read(4 * start[3])
            if len(sizes) != 4 * start[3]:
                raise DataFormatError(path, None, "ends inside its header")
            shape = tuple(int(size) for size in np.frombuffer(sizes, dtype=">u4"))
            if prod(shape) > _SIZE_LIMIT:
                raise DataFormatError(path, None, f"declares the shape {shape}; the limit is {_SIZE_LIMIT} bytes")
            content = file.read(prod(shape) + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DataFormatError(path, None, f"cannot be read: {error}") from None
    if len(content) != prod(shape):
        found = "more" if len(content) > prod(shape) else str(len(content))
        raise DataFormatError(path, None, f"has the shape {shape}, so {prod(shape)} bytes, but holds {found}")
    return np.frombuffer(content, dtype=np.uint8).reshape(shape)
