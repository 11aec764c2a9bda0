"""The `.npy` files of a model: one header for each dtype and shape, so that reading compares and never parses."""

from __future__ import annotations

import math

import numpy as np

DTYPES = {
    name: np.dtype(name)
    for name in ("|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8")
}
MAX_DIMENSIONS = 3
_ADDRESSABLE = 2**63 - 1


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
    """Bytes of the whole file; `ValueError` where no machine could address the array."""
    itemsize = DTYPES[dtype].itemsize
    if math.prod(max(length, 1) for length in shape) * itemsize > _ADDRESSABLE:
        raise ValueError(f"an array of shape {shape} is larger than any memory")
    return len(header(dtype, shape)) + math.prod(shape) * itemsize
