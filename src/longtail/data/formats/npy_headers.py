"""The header that `numpy.save` writes before an array: its shape and dtype.

The header is text in Python syntax, so a damaged one can fail in any way in which parsing Python can.
"""

from __future__ import annotations

from io import BytesIO
from typing import IO, Any, NamedTuple

import numpy as np

from longtail.errors import DataFormatError
from longtail.files import PathName

_LIMIT = 1000
_LARGEST = np.iinfo(np.int64).max


class Header(NamedTuple):
    """The declared shape and dtype of an array, and the number of bytes before its content."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    n_bytes: int


def read_header(stream: IO[bytes], path: PathName, complaint: str) -> Header:
    """Read the header of the array that `stream` begins with; nothing is allocated for the array.

    Parameters
    ----------
    stream : binary stream
        It is read beyond the header.
    path : str or path-like
    complaint : str
        The start of the message about an unreadable header.

    Examples
    --------
    >>> stored = BytesIO()
    >>> np.save(stored, np.zeros((3, 2)))
    >>> read_header(BytesIO(stored.getvalue()), "zeros.npy", "no sound header")
    Header(shape=(3, 2), dtype=dtype('float64'), n_bytes=128)
    """
    # Read before it is parsed, so that errors of the stream are not reported as errors of the header.
    start = BytesIO(stream.read(_LIMIT))
    try:
        shape, dtype = _parse(start)
    except Exception as error:  # NumPy lets errors of Python's tokenizer, parser and types through
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise DataFormatError(path, None, f"{complaint}: {reason}") from None
    return Header(shape, dtype, start.tell())


def _parse(stream: BytesIO) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(stream, max_header_size=_LIMIT)
    elif version == (2, 0):
        shape, _, dtype = np.lib.format.read_array_header_2_0(stream, max_header_size=_LIMIT)
    else:
        raise ValueError(f"format version {version} is unknown")
    if any(isinstance(length, bool) or not 0 <= length <= _LARGEST for length in shape):
        raise ValueError(f"the shape is {shape}")
    return shape, dtype
