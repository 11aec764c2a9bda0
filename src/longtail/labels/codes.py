"""Labels as short codes: one digit per output head, where one output per label would be too wide.

`MixedRadix` encodes one label as digits of a mixed-radix number, `BitChunks` a set of labels as one number per chunk of
labels. Both follow Eq. 10 of the paper on multi-head encoding: the first digit is the most significant.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.errors import InvalidInput, WrongType
from longtail.validation import as_labels, check_whole, is_whole

_LARGEST_RADIX = 2**63
_MOST_BITS = 63


@dataclass(frozen=True)
class MixedRadix:
    """Labels as digits, one per head; the first head is the most significant.

    Parameters
    ----------
    radices : tuple of int
        The length of each head, at least 1. Their product is the number of codes.

    Examples
    --------
    >>> codes = MixedRadix((4, 3))
    >>> codes.size, codes.strides
    (12, (3, 1))
    >>> codes.encode([0, 5, 11]).tolist()
    [[0, 0], [1, 2], [3, 2]]
    >>> codes.decode([[1, 2]]).tolist()
    [5]

    Labels too large for a machine word are Python integers:

    >>> sets = MixedRadix((32,) * 16)
    >>> sets.decode(sets.encode([2**79 + 1])).tolist() == [2**79 + 1]
    True
    """

    radices: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "radices", check_radices(self.radices))

    @property
    def size(self) -> int:
        """The number of codes."""
        return math.prod(self.radices)

    @property
    def strides(self) -> tuple[int, ...]:
        """The place value of each digit: the product of the radices after it."""
        after = accumulate(reversed(self.radices[1:]), lambda stride, radix: stride * radix, initial=1)
        return tuple(after)[::-1]

    @property
    def _number(self) -> type:
        """A type that can hold labels and all intermediate results."""
        return np.int64 if self.size <= np.iinfo(np.int64).max else object

    def encode(self, labels: Any) -> Array:
        """The digits of each label.

        Parameters
        ----------
        labels : array-like of n whole numbers from 0 to ``size - 1``

        Returns
        -------
        int64 array of shape (n, n_heads)
        """
        rest = _as_integers(labels, "labels", 1)
        _check_range(rest, [self.size], "label")
        rest = rest.astype(self._number, copy=False)
        codes = np.empty((len(rest), len(self.radices)), dtype=np.int64)
        for head in range(len(self.radices) - 1, 0, -1):
            codes[:, head] = rest % self.radices[head]
            rest = rest // self.radices[head]
        codes[:, 0] = rest
        return codes

    def decode(self, codes: Any) -> Array:
        """The label of each row of digits.

        Padding codes of a plan decode to numbers of at least its ``n_labels``.

        Parameters
        ----------
        codes : array-like of shape (n, n_heads)

        Returns
        -------
        int64 array of n labels
            An array of Python integers if `size` is 2^63 or more.
        """
        digits = _as_codes(codes, self.radices)
        labels: Array = np.zeros(len(digits), dtype=self._number)
        for head, radix in enumerate(self.radices):
            labels = labels * radix + digits[:, head].astype(self._number, copy=False)
        return labels


@dataclass(frozen=True)
class BitChunks:
    """Sets of labels as digits: one head for every `bits` labels, with one output per subset of them.

    A row of the label matrix is read as a binary number, label 0 first, and cut into chunks from the left. `MixedRadix`
    with the same `radices` decodes the digits to the number of the set among all 2^n_labels.

    Parameters
    ----------
    n_labels : int
    bits : int
        Labels per chunk, from 1 to 63; the last chunk has the remaining labels.

    Examples
    --------
    >>> chunks = BitChunks(n_labels=5, bits=2)
    >>> chunks.radices
    (4, 4, 2)
    >>> chunks.encode([[1, 0, 1, 1, 0], [0, 0, 0, 0, 1]]).tolist()
    [[2, 3, 0], [0, 0, 1]]
    >>> chunks.decode([[2, 3, 0]]).toarray().astype(int).tolist()
    [[1, 0, 1, 1, 0]]
    >>> chunks.to_integers([[1, 0, 1, 1, 0]]) == [0b10110]
    True
    """

    n_labels: int
    bits: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_labels", check_whole("n_labels", self.n_labels))
        object.__setattr__(self, "bits", check_whole("bits", self.bits, 1, _MOST_BITS))

    @property
    def radices(self) -> tuple[int, ...]:
        """The length of each head: 2 to the power of the number of labels in its chunk."""
        return tuple(1 << width for width in self._widths.tolist())

    @property
    def _widths(self) -> Array:
        """The number of labels in each chunk."""
        starts = np.arange(0, self.n_labels, self.bits)
        return np.minimum(self.bits, self.n_labels - starts)

    def encode(self, Y: Any) -> Array:
        """The digits of each row's label set.

        Parameters
        ----------
        Y : sparse or dense 0/1 matrix of shape (n, n_labels)

        Returns
        -------
        int64 array of shape (n, n_heads)
        """
        Y = as_labels(Y)
        if Y.shape[1] != self.n_labels:
            raise InvalidInput(f"Y has {Y.shape[1]} labels; expected {self.n_labels}, the n_labels of BitChunks")
        widths = self._widths
        chunks, places = np.divmod(Y.indices, self.bits)
        worth = np.int64(1) << (widths[chunks] - 1 - places).astype(np.int64)
        # Converting to dense sums the duplicates, which are the labels of one chunk.
        return sparse.csr_array((worth, chunks, Y.indptr), shape=(Y.shape[0], len(widths))).toarray()

    def decode(self, codes: Any) -> Any:
        """The label sets of rows of digits, as a 0/1 csr_array of shape (n, n_labels)."""
        digits = _as_codes(codes, self.radices)
        rows, chunks = np.nonzero(digits)
        n_bytes = -(-self.bits // 8)
        octets = digits[rows, chunks].astype(">u8").view(np.uint8).reshape(-1, 8)[:, 8 - n_bytes :]
        entries, places = np.nonzero(np.unpackbits(octets, axis=1))
        rows, chunks = rows[entries], chunks[entries]
        labels = chunks * self.bits + places - 8 * n_bytes + self._widths[chunks]
        indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(digits)))])
        return sparse.csr_array((np.ones(len(labels), np.float32), labels, indptr), shape=(len(digits), self.n_labels))

    def to_integers(self, Y: Any) -> list[int]:
        """The number of each row's label set among all 2^n_labels: the row read as a binary number."""
        return [int(number) for number in MixedRadix(self.radices).decode(self.encode(Y))]

    def from_integers(self, numbers: Any) -> Any:
        """The label sets with these numbers, as a csr_array of shape (n, n_labels)."""
        return self.decode(MixedRadix(self.radices).encode(numbers))


def check_radices(radices: Any) -> tuple[int, ...]:
    """The lengths of heads as a tuple of Python integers, or `InvalidInput`."""
    if isinstance(radices, str | bytes) or not isinstance(radices, Iterable):
        raise InvalidInput(f"radices is {radices!r}; expected the length of each head, such as (172, 23)")
    lengths = tuple(radices)
    if not lengths:
        raise InvalidInput("radices is empty; expected the length of at least one head")
    return tuple(check_whole(f"radices[{head}]", length, 1, _LARGEST_RADIX) for head, length in enumerate(lengths))


def _as_integers(values: Any, name: str, n_dimensions: int) -> Array:
    """An array of integers; values of a list stay Python objects, since NumPy would convert True to 1."""
    array = np.asarray(values, dtype=object if isinstance(values, list | tuple) else None)
    if array.ndim != n_dimensions and not (array.size == 0 and array.ndim == 1):
        raise InvalidInput(f"{name} has shape {array.shape}; expected {n_dimensions} dimension(s)")
    if array.dtype.kind == "O":
        for value in array.flat:
            if not is_whole(value):
                raise WrongType(f"{name} contains {value!r}, a {type(value).__name__}; expected whole numbers")
    elif array.dtype.kind not in "iu" and array.size:
        raise WrongType(f"{name} has dtype {array.dtype}; expected whole numbers, such as int64")
    return array


def _as_codes(codes: Any, radices: tuple[int, ...]) -> Array:
    digits = _as_integers(codes, "codes", 2)
    if digits.size == 0 and digits.ndim == 1:
        digits = digits.reshape(0, len(radices))
    if digits.shape[1] != len(radices):
        raise InvalidInput(f"codes has {digits.shape[1]} columns; expected {len(radices)}, one for each head")
    _check_range(digits, radices, "digit")
    return digits.astype(np.int64, copy=False)


def _check_range(array: Array, sizes: Iterable[int], what: str) -> None:
    """Raise unless all numbers of each column are at least 0 and below its size."""
    if not array.size:
        return
    columns = array.reshape(len(array), -1).T
    for column, (values, size) in enumerate(zip(columns, sizes, strict=True)):
        if values.min() < 0 or int(values.max()) >= size:
            row = int(np.argmax((values < 0) | (values > size - 1)))
            place = f"row {row}" if array.ndim == 1 else f"row {row}, column {column}"
            raise InvalidInput(
                f"{place}: the {what} is {int(values[row])}; expected a whole number from 0 to {size - 1}"
            )
