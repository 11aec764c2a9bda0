"""`StringTable`: many strings in one array of UTF-8 bytes, decoded on access.

A million label names would be a million Python objects; a loaded model creates only those it needs.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Self, overload

import numpy as np

from longtail.arrays import Array
from longtail.errors import ModelFormatError
from longtail.store.invariants import check_monotone
from longtail.store.lookup import StringIndex, places_containing, places_with_prefix
from longtail.store.similar import most_similar, places_of_candidates

_BLOCK = 1 << 16


class StringTable(Sequence[str]):
    """A read-only sequence of strings that equals the tuple of them.

    Parameters
    ----------
    text : array of uint8
        The strings one after another, in UTF-8.
    offsets : array of int64
        The start of each string, and the end of the last. Neither array is trusted: a damaged string raises
        `ModelFormatError` on access, and `check` checks all of them.

    Examples
    --------
    >>> table = StringTable.from_strings(("apple", "pear"))
    >>> table[1], len(table), table == ("apple", "pear")
    ('pear', 2, True)
    """

    __slots__ = ("_index", "offsets", "text")

    def __init__(self, text: Array, offsets: Array) -> None:
        self.text = text
        self.offsets = offsets
        self._index: StringIndex | None = None

    @classmethod
    def from_strings(cls, strings: Sequence[str]) -> Self:
        """The table of `strings`; `ValueError` if one is not valid Unicode."""
        encoded = [text.encode("utf-8") for text in strings]
        offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
        np.cumsum(np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded)), out=offsets[1:])
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets)

    def check(self) -> None:
        """Raise `ValueError` unless the offsets rise from 0 to the end of the text and every string is UTF-8."""
        check_monotone(self.offsets, len(self.text), "offsets")
        for start in range(0, len(self), _BLOCK):
            edges = self.offsets[start : start + _BLOCK + 1]
            # The strings are valid if the whole is valid and no offset splits a character.
            block = self.text[edges[0] : edges[-1]]
            str(block.data, "utf-8")
            inner = edges[edges < edges[-1]] - edges[0]
            if ((block[inner] & 0xC0) == 0x80).any():
                raise ValueError(f"an offset after position {start} points into the middle of a character")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        if isinstance(index, slice):
            return tuple(self[position] for position in range(*index.indices(len(self))))
        position = operator.index(index)
        if position < 0:
            position += len(self)
        if not 0 <= position < len(self):
            raise IndexError(f"index {index} is out of range for a table of {len(self)} strings")
        begin, end = self.offsets[position : position + 2].tolist()
        if not 0 <= begin <= end <= len(self.text):
            raise _damaged(position, position + 1)
        try:
            return str(self.text.data[begin:end], "utf-8")
        except UnicodeDecodeError:
            raise _damaged(position, position + 1) from None

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), _BLOCK):
            yield from self._pieces(start, min(start + _BLOCK, len(self)))

    def _pieces(self, start: int, stop: int) -> list[str]:
        edges: list[int] = self.offsets[start : stop + 1].tolist()
        if edges[0] < 0 or edges[-1] > len(self.text) or any(end < begin for begin, end in pairwise(edges)):
            raise _damaged(start, stop)
        view = self.text.data
        try:
            return [str(view[begin:end], "utf-8") for begin, end in pairwise(edges)]
        except UnicodeDecodeError:
            raise _damaged(start, stop) from None

    def find(self, strings: Sequence[str]) -> Array:
        """Return the position of each of `strings`, -1 if it is not here; `ModelFormatError` if strings repeat.

        The first call builds an index of sixteen bytes per string.

        Examples
        --------
        >>> StringTable.from_strings(("apple", "pear")).find(["pear", "plum"]).tolist()
        [1, -1]
        """
        index = self._index
        if index is None:
            try:
                index = StringIndex(self.text, self.offsets)
            except ValueError:
                raise _damaged(0, len(self)) from None
            if index.repeats():
                raise ModelFormatError("the strings of a table repeat, so they cannot be looked up")
            self._index = index
        return index.find(strings)

    def with_prefix(self, prefix: str) -> Array:
        """Return the positions of the strings that begin with `prefix`, ascending; ASCII letters match in both cases.

        Examples
        --------
        >>> StringTable.from_strings(("Apple", "pear", "apricot")).with_prefix("ap").tolist()
        [0, 2]
        """
        try:
            return places_with_prefix(self.text, self.offsets, prefix.encode("utf-8", "surrogatepass"))
        except ValueError:
            raise _damaged(0, len(self)) from None

    def containing(self, part: str) -> Array:
        """Return the positions of the strings that contain `part`, ascending; ASCII letters match in both cases.

        Examples
        --------
        >>> StringTable.from_strings(("Apple", "pear", "pineapple")).containing("app").tolist()
        [0, 2]
        """
        try:
            return places_containing(self.text, self.offsets, part.encode("utf-8", "surrogatepass"))
        except ValueError:
            raise _damaged(0, len(self)) from None

    def similar(self, sought: str, limit: int = 3, counts: Array | None = None) -> list[int]:
        """Return the positions of the strings that are most like `sought`, best first; none if no string is like it.

        The work is bounded: of very many strings of about the same length, only those with the same first letter or,
        if these are too many, the largest `counts` are compared.

        Examples
        --------
        >>> StringTable.from_strings(("apple", "pear", "pineapple")).similar("aple")
        [0]
        """
        try:
            places = places_of_candidates(self.text, self.offsets, sought.encode("utf-8", "surrogatepass"), counts)
        except ValueError:
            raise _damaged(0, len(self)) from None
        names = [self[place] for place in places.tolist()]
        return [int(places[number]) for number in most_similar(sought, names, limit)]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, StringTable):
            return np.array_equal(self.offsets, other.offsets) and np.array_equal(self.text, other.text)
        if isinstance(other, tuple):
            return len(self) == len(other) and all(map(operator.eq, self, other))
        return NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self[:3]))
        return f"<StringTable of {len(self)}: {shown}{', ...' if len(self) > 3 else ''}>"


def similar_names(sought: str, names: Sequence[str], limit: int = 3) -> list[str]:
    """Those of `names` that are most like `sought`, best first; names that are not valid Unicode are left out.

    >>> similar_names("note.jsonl", ["notes.jsonl", "model"])
    ['notes.jsonl']
    """
    valid = [name for name in names if name.isascii() or name.encode("utf-8", "ignore").decode() == name]
    return [valid[place] for place in StringTable.from_strings(valid).similar(sought, limit)]


def _damaged(start: int, stop: int) -> ModelFormatError:
    where = f"string {start}" if stop == start + 1 else f"one of the strings {start} to {stop - 1}"
    return ModelFormatError(f"{where} of a table is damaged; load the model with verify=True to find the damaged file")
