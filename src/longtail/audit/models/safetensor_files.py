"""Read arrays from ``.safetensors`` files: a header in JSON, then the numbers. The whole header is checked first."""

from __future__ import annotations

import json
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from longtail.arrays import Array
from longtail.audit.models.tensors import Stored
from longtail.errors import DataFormatError
from longtail.memory import MemoryPlan

_TYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "i1",
    "U8": "u1",
}
_LONGEST_HEADER = 100_000_000
_MOST_DIMENSIONS = 16


def read_safetensors(path: Path) -> dict[str, Stored]:
    """The arrays of numbers in a file, not yet read; other types are left out.

    Raises
    ------
    DataFormatError
        If the file is damaged.
    """
    try:
        size = path.stat().st_size
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            fits = 8 + length <= min(size, _LONGEST_HEADER)
            content = file.read(length) if fits else b""
    except OSError as error:
        raise DataFormatError(path, None, f"cannot be opened: {error.strerror or error}") from None
    if not fits:
        raise DataFormatError(
            path, None, f"the header is longer than the file or {_LONGEST_HEADER:,} bytes; expected a .safetensors file"
        )
    try:
        header = json.loads(content)
    except (ValueError, RecursionError):
        raise DataFormatError(path, None, "the header is no JSON; expected a .safetensors file") from None
    if not isinstance(header, dict):
        raise DataFormatError(path, None, "the header is no JSON object; expected a .safetensors file")
    found = {name: _stored(path, name, facts, 8 + length, size) for name, facts in header.items() if name[:2] != "__"}
    return {name: stored for name, stored in found.items() if stored is not None}


def _stored(path: Path, name: str, facts: Any, start: int, size: int) -> Stored | None:
    """One array, if its type is known; its place must lie in the file and have the size of its shape."""
    facts = facts if isinstance(facts, dict) else {}
    shape, offsets, kind = facts.get("shape"), facts.get("data_offsets"), facts.get("dtype")
    sound = isinstance(kind, str) and _are_counts(shape, _MOST_DIMENSIONS) and _are_counts(offsets, 2)
    if not sound or len(offsets) != 2 or not offsets[0] <= offsets[1] <= size - start:
        raise DataFormatError(path, None, f"the array {name[:100]!r} has no sound type, shape or place in the file")
    if kind not in _TYPES:
        return None
    if math.prod(shape, start=np.dtype(_TYPES[kind]).itemsize) != offsets[1] - offsets[0]:
        raise DataFormatError(path, None, f"the array {name[:100]!r} takes more or fewer bytes than its shape says")
    return Stored(tuple(shape), partial(_read, path, kind, tuple(shape), start + offsets[0]))


def _are_counts(values: Any, most: int) -> bool:
    return (
        isinstance(values, list)
        and len(values) <= most
        and all(isinstance(each, int) and not isinstance(each, bool) and 0 <= each < 2**62 for each in values)
    )


def _read(path: Path, kind: str, shape: tuple[int, ...], place: int) -> Array:
    MemoryPlan("reading an array", {str(path): 16 * math.prod(shape)}, "Give a smaller matrix.").check()
    stored = np.fromfile(path, dtype=_TYPES[kind], count=math.prod(shape), offset=place).reshape(shape)
    if kind == "BF16":  # the upper half of a 32-bit float
        stored = (stored.astype(np.uint32) << 16).view(np.float32)
    numbers: Array = stored.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise DataFormatError(path, None, "the array contains NaN or infinity")
    return numbers
