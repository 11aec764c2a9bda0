"""Read weights from ``.npz`` files, never through pickle. Sizes are checked before anything is allocated."""

from __future__ import annotations

import math
import zipfile
import zlib
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from longtail.arrays import Array
from longtail.audit.models.tensors import Stored
from longtail.data import read_header, read_matrix
from longtail.errors import DataFormatError
from longtail.memory import MemoryPlan

_MOST_MEMBERS = 10_000
_EXPECTED = "expected an archive of arrays as numpy.savez writes it"
_SPARSE = {"format", "shape", "data", "indices", "indptr"}


def read_npz(path: Path) -> dict[str, Stored] | Any:
    """The arrays of an archive, not yet read; or the sparse matrix that SciPy saved in it."""
    try:
        with zipfile.ZipFile(path) as archive:
            infos = archive.infolist()
            if len(infos) > _MOST_MEMBERS:
                raise DataFormatError(path, None, f"{len(infos):,} arrays; the maximum is {_MOST_MEMBERS:,}")
            if {info.filename.removesuffix(".npy") for info in infos} >= _SPARSE:
                return read_matrix(path)
            found = {}
            for info in infos:
                name = info.filename.removesuffix(".npy")
                with archive.open(info) as stream:
                    header = read_header(stream, path, f"the array {name[:100]!r} has no valid header")
                if header.dtype.kind in "iuf":
                    size = math.prod(header.shape, start=header.dtype.itemsize)
                    if size != info.file_size - header.n_bytes:
                        raise DataFormatError(path, None, f"the array {name[:100]!r} has another size than it declares")
                    found[name] = Stored(header.shape, partial(_read, path, info.filename, math.prod(header.shape)))
            return found
    except FileNotFoundError:
        raise DataFormatError(path, None, "cannot be opened: no such file") from None
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        OSError,
        NotImplementedError,
        RuntimeError,
        UnicodeDecodeError,
    ) as error:
        raise DataFormatError(path, None, f"{_EXPECTED}: {error}") from None


def _read(path: Path, member: str, size: int) -> Array:
    MemoryPlan("reading an array", {str(path): 16 * size}, "Give a smaller matrix.").check()
    try:
        with zipfile.ZipFile(path) as archive, archive.open(member) as stream:
            numbers: Array = np.lib.format.read_array(stream, allow_pickle=False).astype(np.float64)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
        raise DataFormatError(path, None, f"{_EXPECTED}: {error}") from None
    if not np.isfinite(numbers).all():
        raise DataFormatError(path, None, "the array contains NaN or infinity")
    return numbers
