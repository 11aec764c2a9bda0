"""Python twin of the parser of the repository text format: the same arrays and the same error messages.

A regular expression checks each row; only a faulty row is parsed token by token.
"""

from __future__ import annotations

import re
from array import array
from itertools import pairwise

import numpy as np

from longtail.arrays import Array

_NARROW_LIMIT = 2**31 - 1
_INDEX_DIGITS = 18
_QUOTED_BYTES = 40
_NUMBER = rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_VALUE = re.compile(_NUMBER)
_WHOLE = re.compile(rb"-?[0-9]+")
_SOUND_LABELS = re.compile(rb"[0-9]{1,18}(?:,[0-9]{1,18})*")
_SOUND_FEATURES = re.compile(rb"(?:[ \t]*[0-9]{1,18}:" + _NUMBER + rb"(?=[ \t]|\Z))*")
_SEPARATORS = re.compile(rb"[ \t:]+")


class _FaultError(Exception):
    """An error in a line."""


def _quote(token: bytes) -> str:
    shown = "".join(chr(c) if 0x20 <= c < 0x7F and c not in b"'\\" else f"\\x{c:02x}" for c in token[:_QUOTED_BYTES])
    return f"'{shown}...'" if len(token) > _QUOTED_BYTES else f"'{shown}'"


def _whole(token: bytes, what: str) -> int:
    if not _WHOLE.fullmatch(token):
        raise _FaultError(f"{what} {_quote(token)} is not a whole number")
    if token.startswith(b"-"):
        raise _FaultError(f"{what} {_quote(token)} is negative; numbering starts at 0")
    digits = token.lstrip(b"0")
    if len(digits) > _INDEX_DIGITS:
        raise _FaultError(f"{what} {_quote(token)} is too large")
    return int(digits or b"0")


class _Rows:
    """Row pointers and column indices under construction."""

    def __init__(self) -> None:
        self.starts = array("q", [0])
        self.columns = array("q")
        self.largest = -1

    def end_row(self, row: list[int], what: str) -> list[int] | None:
        """Add a row's columns in ascending order; return the permutation, or None if they were sorted."""
        order = None
        if any(after <= before for before, after in pairwise(row)):
            order = sorted(range(len(row)), key=row.__getitem__)
            row = [row[i] for i in order]
            for before, after in pairwise(row):
                if before == after:
                    raise _FaultError(f"{what} {after} is there twice")
        self.columns.extend(row)
        self.starts.append(len(self.columns))
        if row:
            self.largest = max(self.largest, row[-1])
        return order

    def take(self, columns: int) -> tuple[Array, Array]:
        wide = max(columns, len(self.columns)) > _NARROW_LIMIT
        dtype = np.int64 if wide else np.int32
        return np.array(self.starts, dtype=dtype), np.array(self.columns, dtype=dtype)


class RepositoryText:
    """Parser of the repository text format, which takes blocks of bytes split anywhere.

    Parameters
    ----------
    header : bool
        Whether the first line is ``rows features labels``; without it, sizes follow from the data.
    line_limit : int
        Maximum number of bytes per line.
    """

    def __init__(self, header: bool, line_limit: int) -> None:
        self._header = header
        self._line_limit = line_limit
        self._promised = (0, 0, 0)
        self._line = 0
        self._empty_line = 0
        self._error: tuple[int, str] | None = None
        self._carry: list[bytes] = []
        self._carried = 0
        self._labels = _Rows()
        self._features = _Rows()
        self._values = array("f")

    @property
    def error(self) -> tuple[int, str] | None:
        """The line number and the error in it, or None."""
        return self._error

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, features and labels."""
        rows = len(self._features.starts) - 1
        if self._header:
            return rows, self._promised[1], self._promised[2]
        return rows, self._features.largest + 1, self._labels.largest + 1

    def feed(self, block: bytes) -> bool:
        """Parse a block; return False after an error."""
        start = 0
        while start < len(block) and self._error is None:
            newline = block.find(b"\n", start)
            stop = len(block) if newline < 0 else newline
            if self._carried + stop - start > self._line_limit:
                self._error = self._line + 1, f"the line is longer than {self._line_limit} bytes"
                break
            self._carry.append(block[start:stop])
            self._carried += stop - start
            if newline < 0:
                break
            self._end_line()
            start = newline + 1
        return self._error is None

    def finish(self) -> tuple[Array, Array, Array, Array, Array] | None:
        """Feature indptr, indices and values, label indptr and indices; None after an error."""
        if self._error is None and self._carried:
            self._end_line()
        if self._error is None:
            promised, found = self._promised[0], len(self._features.starts) - 1
            if self._line == 0:
                self._error = 1, "the file is empty"
            elif self._header and found < promised:
                self._error = self._line, f"the header promises {promised} rows, but the file ends after {found}"
        if self._error is not None:
            return None
        _, features, labels = self.shape
        values = np.array(self._values, dtype=np.float32)
        return (*self._features.take(features), values, *self._labels.take(labels))

    def _end_line(self) -> None:
        line = b"".join(self._carry)
        self._carry.clear()
        self._carried = 0
        self._line += 1
        try:
            self._parse_line(line)
        except _FaultError as fault:
            self._error = self._line, str(fault)

    def _parse_line(self, line: bytes) -> None:
        blank_labels = line[:1] in (b" ", b"\t")
        line = line.removesuffix(b"\r").rstrip(b" \t")
        if self._header and self._line == 1:
            self._parse_header(line)
            return
        if self._header and len(self._features.starts) - 1 == self._promised[0]:
            if line:
                raise _FaultError(f"the header promises {self._promised[0]} rows, but there are more")
            return
        if not line and not blank_labels:
            self._empty_line = self._empty_line or self._line
            return
        if self._empty_line:
            self._line = self._empty_line
            raise _FaultError("an empty line between rows; a row without labels and features is a single blank")
        field = b"" if blank_labels else re.split(rb"[ \t]", line, maxsplit=1)[0]
        self._labels.end_row([] if blank_labels else self._parse_labels(field), "label")
        indices, values = self._parse_features(line[len(field) :])
        order = self._features.end_row(indices, "feature")
        self._values.extend(values if order is None else [values[i] for i in order])

    def _parse_header(self, line: bytes) -> None:
        try:
            rows, features, labels = (_whole(token, "") for token in re.findall(rb"[^ \t]+", line))
        except (_FaultError, ValueError):
            raise _FaultError(
                f"expected the header, three whole numbers 'rows features labels', but found {_quote(line)}"
                "; if the file has no header, read it with header=False"
            ) from None
        self._promised = rows, features, labels

    def _parse_labels(self, field: bytes) -> list[int]:
        promised = self._promised[2]
        if _SOUND_LABELS.fullmatch(field):
            labels = [int(token) for token in field.split(b",")]
            if not self._header or max(labels) < promised:
                return labels
        labels = []
        for token in field.split(b","):
            if b":" in token:
                raise _FaultError(
                    f"the first field {_quote(token)} is a feature, expected labels"
                    "; a row without labels starts with a blank"
                )
            label = _whole(token, "label")
            if self._header and label >= promised:
                raise _FaultError(f"label {label} is too large: the header promises {promised} labels, numbered from 0")
            labels.append(label)
        return labels

    def _parse_features(self, text: bytes) -> tuple[list[int], list[float]]:
        promised = self._promised[1]
        if _SOUND_FEATURES.fullmatch(text):
            parts = [part for part in _SEPARATORS.split(text) if part]
            indices = [int(part) for part in parts[::2]]
            values = [float(part) for part in parts[1::2]]
            in_range = not self._header or max(indices, default=-1) < promised
            if in_range and all(map(_fits, values)):
                return indices, values
        indices, values = [], []
        for token in re.findall(rb"[^ \t]+", text):
            written, colon, value = token.partition(b":")
            if not colon:
                raise _FaultError(f"feature {_quote(token)} has no colon; expected index:value")
            index = _whole(written, "feature")
            if self._header and index >= promised:
                raise _FaultError(
                    f"feature {index} is too large: the header promises {promised} features, numbered from 0"
                )
            if not _VALUE.fullmatch(value):
                raise _FaultError(f"value {_quote(value)} of feature {index} is not a finite number")
            if not _fits(float(value)):
                raise _FaultError(f"value {_quote(value)} of feature {index} is too large for 32-bit floats")
            indices.append(index)
            values.append(float(value))
        return indices, values


# The first double that rounds to infinity in 32 bits: half a unit above the largest 32-bit float.
_OVERFLOW = float(2**128 - 2**103)


def _fits(value: float) -> bool:
    return -_OVERFLOW < value < _OVERFLOW
