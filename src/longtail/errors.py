"""The errors of the package, all subclasses of `LongtailError`.

The text is for people: what was found, where, what was expected, and what to do. Programs look at `code` and the other
facts, never at the text.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable
from copy import copy
from os import PathLike
from typing import Any, ClassVar, Self

# The disk is full, or a quota or the maximum file size is reached.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class LongtailError(Exception):
    """Base class of every error that the package raises on purpose.

    Parameters
    ----------
    message : str
        What is wrong.
    code : str or None
        A short stable name of what went wrong, such as ``missing_key``; the default is the code of the class.
        `docs/errors.md` lists all codes.
    path : str, path-like or None
        The file or folder.
    line : int or None
        The line, counted from 1.
    column : str, int or None
        The column of a table, by name or by number.
    name : str or None
        The key, label, parameter or package that the message is about.
    found : iterable of str
        What was there instead, such as the keys of an object without the key `name`.
    advice : str
        What to do about it; the last part of the text of the error.

    Examples
    --------
    >>> error = InvalidInput("the model has no label 'pears'", code="unknown_label", name="pears")
    >>> error.code, error.name, error.line
    ('unknown_label', 'pears', None)
    >>> print(error.advised("see `longtail info`"))
    the model has no label 'pears'; see `longtail info`
    """

    default_code: ClassVar[str] = "error"

    def __init__(
        self,
        message: str = "",
        *,
        code: str | None = None,
        path: str | PathLike[str] | None = None,
        line: int | None = None,
        column: str | int | None = None,
        name: str | None = None,
        found: Iterable[str] = (),
        advice: str = "",
    ) -> None:
        super().__init__(_joined(message, advice))
        self.code = code or self.default_code
        self.path = None if path is None else str(path)
        self.line = line
        self.column = column
        self.name = name
        self.found = tuple(found)
        self.problem = message
        self.advice = advice

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.args), self.__dict__

    def advised(self, advice: str) -> Self:
        """The same error with other advice, for callers who know better what the user can do."""
        error = copy(self)
        error.args = (_joined(self.problem, advice),)
        error.advice = advice
        return error


def _joined(problem: str, advice: str) -> str:
    return f"{problem}; {advice}" if advice else problem


def _restored(kind: type[LongtailError], args: tuple[Any, ...]) -> LongtailError:
    """An error as pickle and copy make it: without calling `__init__`, whose arguments differ between classes."""
    return LongtailError.__new__(kind, *args)


class InvalidInput(LongtailError, ValueError):
    """Arguments or arrays that contradict each other or the contract of an estimator."""

    default_code = "invalid_input"


class WrongType(InvalidInput, TypeError):
    """Values that are not numbers where numbers are needed."""

    default_code = "wrong_type"


class DataFormatError(LongtailError, ValueError):
    """A data file that cannot be read.

    Parameters
    ----------
    path : str or path-like
        The file.
    line : int or None
        The line where reading stopped, or None if the problem is not in a particular line.
    reason : str
        What was found and what was expected; the text of the error puts the file and the line in front of it.
    **facts
        Those of `LongtailError`.
    """

    default_code = "data_format"
    path: str

    def __init__(self, path: str | PathLike[str], line: int | None, reason: str, **facts: Any) -> None:
        place = str(path) if line is None else f"{path}:{line}"
        super().__init__(f"{place}: {reason}", path=path, line=line, **facts)


class ModelFormatError(LongtailError, ValueError):
    """A model directory that is damaged, unsafe, or of an unknown format."""

    default_code = "model_format"


class NotEnoughMemory(LongtailError, MemoryError):
    """Work whose memory plan does not fit; raised before any allocation."""

    default_code = "not_enough_memory"


class Unavailable(LongtailError, RuntimeError):
    """A data set, the network or an optional dependency that is not available."""

    default_code = "unavailable"


class Diverged(LongtailError, ArithmeticError):
    """Training whose loss or weights are no longer finite."""

    default_code = "diverged"


def no_room(error: OSError) -> bool:
    """Whether a file could not be written because the disk or a quota is full."""
    return error.errno in _NO_ROOM


def reason(error: OSError) -> str:
    """The message of the system and, if there is no space left, what to do.

    >>> reason(OSError(28, "No space left on device"))
    'No space left on device; make room, or write elsewhere'
    """
    advice = "; make room, or write elsewhere" if no_room(error) else ""
    return f"{error.strerror or error}{advice}"
