"""What a model directory may hold: names, limits, JSON values, `.npy` files, and the description of a model.

Parameters and facts are checked alike when a model is written and when it is read. A `.npy` file has exactly one
header for its dtype and shape, so reading compares the header and never parses it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

VERSION = 1
MAX_BYTES = 4 * 2**20
MAX_PARTS_DEPTH = 8
MAX_FILES = 10_000
MAX_DIMENSIONS = 3
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
DTYPES = {
    name: np.dtype(name)
    for name in ("|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8")
}
_ADDRESSABLE = 2**63 - 1
_DEEPEST = 32
_LARGEST = 2**64


@dataclass(frozen=True)
class StoredFile:
    """One `.npy` file."""

    name: str
    sha256: str
    length: int
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class StoredArray:
    """A named array, sparse matrix or table of strings, and the files it is made of."""

    type: str
    shape: tuple[int, ...]
    files: Mapping[str, StoredFile]


@dataclass(frozen=True)
class StoredModel:
    """A `State` whose arrays are still on disk."""

    kind: str
    params: Mapping[str, Any]
    facts: Mapping[str, Any]
    arrays: Mapping[str, StoredArray]
    parts: Mapping[str, StoredModel]

    def walk(self, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], StoredModel]]:
        """This model and every part below it, with the path of names to each."""
        yield path, self
        for name, part in self.parts.items():
            yield from part.walk((*path, name))

    def files(self) -> Iterator[StoredFile]:
        """Every file of the model and its parts."""
        for _, model in self.walk():
            for array in model.arrays.values():
                yield from array.files.values()


@dataclass(frozen=True)
class Manifest:
    """The whole manifest: the model, and the versions of the software that wrote it."""

    written_by: Mapping[str, str]
    model: StoredModel
    version: int = VERSION


def header(dtype: str, shape: tuple[int, ...]) -> bytes:
    """The bytes before the values: NumPy's format 1.0, C order, padded with spaces to a multiple of 64.

    Examples
    --------
    >>> header("<f4", (2, 3)).rstrip()[10:]
    b"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"
    >>> len(header("<f4", (2, 3)))
    128
    """
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape!r}, }}".encode("ascii")
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def file_length(dtype: str, shape: tuple[int, ...]) -> int:
    """Bytes of the whole file; `ValueError` if no machine could address the array."""
    itemsize = DTYPES[dtype].itemsize
    if math.prod(max(length, 1) for length in shape) * itemsize > _ADDRESSABLE:
        raise ValueError(f"an array of shape {shape} is larger than any memory")
    return len(header(dtype, shape)) + math.prod(shape) * itemsize


def plain_value(value: Any, where: str, depth: int = 0) -> Any:
    """Return `value` as plain JSON (NumPy scalars become Python numbers, tuples lists), or raise `ValueError`.

    Examples
    --------
    >>> import numpy as np
    >>> plain_value({"alpha": np.float64(0.5), "counts": (1, 2)}, "facts")
    {'alpha': 0.5, 'counts': [1, 2]}
    """
    if depth > _DEEPEST:
        raise ValueError(f"{where} is nested more than {_DEEPEST} levels deep")
    if isinstance(value, list | tuple):
        return [plain_value(item, f"{where}[{position}]", depth + 1) for position, item in enumerate(value)]
    if isinstance(value, Mapping):
        return {_key(key, where): plain_value(item, f"{where}.{key}", depth + 1) for key, item in value.items()}
    return plain_scalar(value, where)


def plain_scalar(value: Any, where: str) -> Any:
    """Return `value` as None, bool, int, float or str, or raise `ValueError`."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool):
        return value
    if type(value) is int:
        if abs(value) >= _LARGEST:
            raise ValueError(f"{where} is a whole number beyond 64 bits")
        return value
    if type(value) is float:
        if not math.isfinite(value):
            raise ValueError(f"{where} is {value}; only finite numbers can be stored")
        return value
    if type(value) is str:
        return _text(value, where)
    raise ValueError(f"{where} is of type {type(value).__name__}, which cannot be stored")


def _key(key: Any, where: str) -> str:
    if type(key) is not str:
        raise ValueError(f"{where} has the key {key!r}; keys are strings")
    return _text(key, f"a key of {where}")


def _text(text: str, where: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(f"{where} holds an unpaired surrogate and is not valid Unicode") from None
    return text
