"""`StringIndex`: find the positions of names in a table of strings without creating the strings.

A dict of a million names takes a second and hundreds of megabytes. The index takes sixteen bytes per name: a 64-bit
hash and a position. Strings with equal hashes are compared byte by byte, so a collision costs time, never correctness.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from longtail.arrays import Array

_BLOCK_BYTES = 1 << 20
# Odd, so that every byte counts; the mixing constants are those of SplitMix64.
_BASE = 0x9E3779B97F4A7C15
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


class StringIndex:
    """The positions of strings in a table, which must not change.

    Parameters
    ----------
    text : array of uint8
    offsets : array of int64
        As in a `StringTable`; `ValueError` if they are not offsets into `text`.
    """

    __slots__ = ("_hashes", "_offsets", "_places", "_text")

    def __init__(self, text: Array, offsets: Array) -> None:
        check_rise(text, offsets)
        self._text = text
        self._offsets = offsets
        hashes = _hashes(text, offsets)
        self._places = np.argsort(hashes, kind="stable")
        self._hashes = hashes[self._places]

    def find(self, strings: Sequence[str]) -> Array:
        """The first position of each string, or -1 if it is not in the table."""
        encoded = [string.encode("utf-8", "surrogatepass") for string in strings]
        lengths = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))
        offsets = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
        hashes = _hashes(np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets)
        first = np.searchsorted(self._hashes, hashes, side="left")
        last = np.searchsorted(self._hashes, hashes, side="right")
        found = np.full(len(encoded), -1, dtype=np.int64)
        for number in np.flatnonzero(last - first == 1).tolist():
            place = int(self._places[first[number]])
            if self._bytes(place) == encoded[number]:
                found[number] = place
        # Each run is read once, so that names crafted to have one hash do not cost a search for every string.
        runs: dict[int, dict[bytes, int]] = {}
        for number in np.flatnonzero(last - first > 1).tolist():
            start = int(first[number])
            if start not in runs:
                runs[start] = self._run(start, int(last[number]))
            found[number] = runs[start].get(encoded[number], -1)
        return found

    def repeats(self) -> bool:
        """Whether any string occurs twice."""
        alike = np.concatenate([[False], self._hashes[1:] == self._hashes[:-1], [False]])
        starts = np.flatnonzero(alike[1:] & ~alike[:-1])
        stops = np.flatnonzero(alike[:-1] & ~alike[1:]) + 1
        return any(
            len(self._run(start, stop)) < stop - start
            for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)
        )

    def _run(self, start: int, stop: int) -> dict[bytes, int]:
        """The strings of a run of equal hashes, each with its first position."""
        return {self._bytes(place): place for place in reversed(self._places[start:stop].tolist())}

    def _bytes(self, place: int) -> bytes:
        begin, end = self._offsets[place : place + 2].tolist()
        return self._text[begin:end].tobytes()


def places_with_prefix(text: Array, offsets: Array, prefix: bytes) -> Array:
    """The positions of the strings that begin with `prefix`; ASCII letters match in both cases.

    Each byte narrows the candidates, so most strings are visited once.
    """
    check_rise(text, offsets)
    starts = offsets[:-1]
    found = np.flatnonzero(np.diff(offsets) >= len(prefix))
    for position, byte in enumerate(prefix.lower()):
        found = found[_are(text[starts[found] + position], byte)]
    return found


def places_containing(text: Array, offsets: Array, part: bytes) -> Array:
    """The positions of the strings that contain `part`; ASCII letters match in both cases.

    The strings of a block are searched as one; matches across two strings do not count.
    """
    check_rise(text, offsets)
    if not part:
        return np.arange(len(offsets) - 1)
    contains = np.zeros(len(offsets) - 1, dtype=bool)
    for start, stop in _blocks(offsets):
        found = _occurrences(text[offsets[start] : offsets[stop]], part.lower())
        if len(found):
            place_of_byte = np.repeat(np.arange(start, stop, dtype=np.int32), np.diff(offsets[start : stop + 1]))
            places = place_of_byte[found]
            contains[places[places == place_of_byte[found + len(part) - 1]]] = True
    return np.flatnonzero(contains)


def _occurrences(text: Array, part: bytes) -> Array:
    """The ascending positions in the text where `part`, in lower case, begins."""
    count = max(0, len(text) - len(part) + 1)
    same = np.ones(count, dtype=bool)
    # Two bytes together are rare enough to continue with positions.
    for position, byte in enumerate(part[:2]):
        same &= _are(text[position : position + count], byte)
    found = np.flatnonzero(same)
    for position, byte in enumerate(part[2:], start=2):
        found = found[_are(text[found + position], byte)]
    return found


def _are(found: Array, byte: int) -> Array:
    """Which bytes are this one, or its upper case if it is a letter."""
    same: Array = found == byte
    if ord("a") <= byte <= ord("z"):
        same |= found == byte - 32
    return same


def check_rise(text: Array, offsets: Array) -> None:
    """Raise `ValueError` unless the offsets rise within the text."""
    if len(offsets) < 1 or offsets[0] < 0 or offsets[-1] > len(text) or (offsets[1:] < offsets[:-1]).any():
        raise ValueError("the offsets do not rise within the text")


def _hashes(text: Array, offsets: Array) -> Array:
    """A hash of each string: its bytes times powers of a base, summed modulo 2^64 and mixed with the length."""
    lengths = np.diff(offsets)
    hashes = np.empty(len(lengths), dtype=np.uint64)
    for start, stop in _blocks(offsets):
        hashes[start:stop] = _block_hashes(text, offsets[start : stop + 1], lengths[start:stop])
    hashes += lengths.astype(np.uint64)
    for shift, factor in zip((np.uint64(30), np.uint64(27)), _MIX, strict=True):
        hashes ^= hashes >> shift
        hashes *= factor
    hashes ^= hashes >> np.uint64(31)
    return hashes


def _blocks(offsets: Array) -> Iterator[tuple[int, int]]:
    """The first string of each block of about a megabyte, and the end of the block."""
    start, count = 0, len(offsets) - 1
    while start < count:
        stop = int(np.searchsorted(offsets, offsets[start] + _BLOCK_BYTES, side="right")) - 1
        stop = min(max(stop, start + 1), count)
        yield start, stop
        start = stop


def _block_hashes(text: Array, offsets: Array, lengths: Array) -> Array:
    begin, end = int(offsets[0]), int(offsets[-1])
    powers = _powers(int(lengths.max(initial=0)))
    within = np.arange(end - begin) - np.repeat(offsets[:-1] - begin, lengths)
    # Sums that overflow are right modulo 2^64, and so are their differences.
    sums = np.zeros(end - begin + 1, dtype=np.uint64)
    np.cumsum((text[begin:end].astype(np.uint64) + np.uint64(1)) * powers[within], out=sums[1:])
    return sums[offsets[1:] - begin] - sums[offsets[:-1] - begin]


def _powers(count: int) -> Array:
    powers = np.full(max(1, count), _BASE, dtype=np.uint64)
    powers[0] = 1
    return np.multiply.accumulate(powers)
