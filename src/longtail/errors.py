"""The errors a user can meet, all children of `LongtailError`.

A message says what was found, where, what was expected, and what to do about it.
"""

from __future__ import annotations

import errno
from os import PathLike

# How systems say that a disk is full, or that a user or a file may have no more of it.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class LongtailError(Exception):
    """Base of every error the package raises on purpose."""


class InvalidInput(LongtailError, ValueError):
    """Arguments or arrays that contradict each other or the contract of an estimator."""


class WrongType(InvalidInput, TypeError):
    """Values that are not numbers where numbers are needed."""


class DataFormatError(LongtailError, ValueError):
    """A data file that cannot be read, with the place where reading stopped.

    Parameters
    ----------
    path : str or path-like
        The file.
    line : int or None
        The line, counted from 1, or None where the fault belongs to no line.
    reason : str
        What was found and what was expected.
    """

    def __init__(self, path: str | PathLike[str], line: int | None, reason: str) -> None:
        self.path = str(path)
        self.line = line
        self.reason = reason
        place = self.path if line is None else f"{self.path}:{line}"
        super().__init__(f"{place}: {reason}")


class ModelFormatError(LongtailError, ValueError):
    """A model directory that is damaged, unsafe, or of an unknown format."""


class NotEnoughMemory(LongtailError, MemoryError):
    """Work whose memory plan does not fit; raised before anything is allocated."""


class Unavailable(LongtailError, RuntimeError):
    """Something asked for is not here: a data set, a network, an optional dependency."""


class Diverged(LongtailError, ArithmeticError):
    """A training whose loss or weights are no longer finite numbers."""


def no_room(error: OSError) -> bool:
    """Whether something could not be written because there is no room left for it."""
    return error.errno in _NO_ROOM


def reason(error: OSError) -> str:
    """What the system says and, where there is no room left, what to do about it.

    >>> reason(OSError(28, "No space left on device"))
    'No space left on device; make room, or write elsewhere'
    """
    advice = "; make room, or write elsewhere" if no_room(error) else ""
    return f"{error.strerror or error}{advice}"
