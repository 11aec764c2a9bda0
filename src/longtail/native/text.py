"""Python twin of the text kernels: tokens, counts by a fixed or growing vocabulary, and tf-idf weights.

Texts are a list of ASCII `str` or UTF-8 `bytes`, in which lone surrogates are allowed. A string table is the
concatenated UTF-8 bytes and their offsets, as in a saved model.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, pairwise

import numpy as np

from longtail.arrays import Array
from longtail.parallel import check_stop

Text = str | bytes

PAGE_SIZE = 256
STANDS_ALONE = 0x80000000


class CodePoints(dict[int, str]):
    """Maps each code point to its replacement; pages are computed when a code point is first met.

    ``page(number)`` returns the replacements of the 256 code points from ``256 * number`` as uint32: 0 for a blank,
    else a code point, plus `STANDS_ALONE` if it is a token by itself.
    """

    def __init__(self, page: Callable[[int], Array]) -> None:
        super().__init__()
        self._page = page

    def __missing__(self, point: int) -> str:
        first = point - point % PAGE_SIZE
        for offset, becomes in enumerate(self._page(point // PAGE_SIZE).tolist()):
            character = chr(becomes & ~STANDS_ALONE) if becomes else " "
            self[first + offset] = f" {character} " if becomes & STANDS_ALONE else character
        return self[point]

    def tokens(self, text: Text, min_length: int) -> list[str]:
        """The lower-case tokens of a text; single-character tokens that stand alone are always kept."""
        if isinstance(text, bytes):
            text = text.decode("utf-8", "surrogatepass")
        tokens = text.translate(self).split()
        return [token for token in tokens if len(token) >= min_length or self[ord(token[0])][0] == " "]


def word_ngrams(tokens: list[str], shortest: int, longest: int) -> Iterator[str]:
    """All n-grams of `shortest` to `longest` tokens, joined by blanks.

    >>> list(word_ngrams(["new", "york", "city"], 1, 2))
    ['new', 'york', 'city', 'new york', 'york city']
    """
    for length in range(shortest, min(longest, len(tokens)) + 1):
        if length == 1:
            yield from tokens
        else:
            yield from map(" ".join, zip(*(tokens[start:] for start in range(length)), strict=False))


def token_subwords(tokens: list[str], length: int) -> Iterator[str]:
    """The runs of `length` code points of each token with ``<`` in front; none if `length` is 0.

    The other runs get ``~`` in front, so that no run equals a word.

    >>> list(token_subwords(["sea", "seaside"], 5))
    ['<seas', '~seasi', '~easid', '~aside']
    """
    if length == 0:
        return
    for token in tokens:
        if len(token) >= length - 1:
            yield f"<{token[: length - 1]}"
            for start in range(len(token) - length + 1):
                yield f"~{token[start : start + length]}"


def _features(
    texts: list[Text], code_points: CodePoints, min_length: int, shortest: int, longest: int, subwords: int
) -> Iterator[Iterator[str]]:
    for text in texts:
        check_stop()
        tokens = code_points.tokens(text, min_length)
        yield chain(word_ngrams(tokens, shortest, longest), token_subwords(tokens, subwords))


class _Counts:
    """Rows of counts under construction, in flat arrays."""

    def __init__(self) -> None:
        self._columns = array("i")
        self._values = array("f")
        self._ends = array("q", [0])

    def add(self, counts: Iterable[tuple[int, int]]) -> None:
        for column, value in counts:
            self._columns.append(column)
            self._values.append(value)
        self._ends.append(len(self._columns))

    def arrays(self) -> tuple[Array, Array, Array]:
        """Row ends (int64, with a leading 0), columns (int32) and counts (float32)."""
        return (
            np.array(self._ends, dtype=np.int64),
            np.array(self._columns, dtype=np.int32),
            np.array(self._values, dtype=np.float32),
        )


class Vocabulary:
    """A fixed vocabulary. Several threads may count with it at the same time."""

    def __init__(self, text: Array, offsets: Array) -> None:
        self._positions = {name: position for position, name in enumerate(strings(text, offsets))}

    def count(
        self, texts: list[Text], code_points: CodePoints, min_length: int, shortest: int, longest: int, subwords: int
    ) -> tuple[Array, Array, Array]:
        """Rows of counts of the known features, with ascending columns."""
        found = _Counts()
        for features in _features(texts, code_points, min_length, shortest, longest, subwords):
            counts = Counter(map(self._positions.get, features))
            found.add(sorted((column, times) for column, times in counts.items() if column is not None))
        return found.arrays()


class GrowingVocabulary:
    """A vocabulary that adds every feature it meets and counts its texts. For one thread at a time."""

    def __init__(self) -> None:
        self._positions: defaultdict[str, int] = defaultdict()
        self._positions.default_factory = self._positions.__len__
        self._frequencies: Counter[int] = Counter()

    def count(
        self,
        texts: list[Text],
        code_points: CodePoints,
        min_length: int,
        shortest: int,
        longest: int,
        subwords: int,
        keep: bool,
    ) -> tuple[Array, Array, Array]:
        """Rows of counts by feature ids, which are given in the order of first occurrence; empty rows unless `keep`."""
        found = _Counts()
        for features in _features(texts, code_points, min_length, shortest, longest, subwords):
            counts = Counter(map(self._positions.__getitem__, features))
            self._frequencies.update(counts.keys())
            found.add(counts.items() if keep else ())
        return found.arrays()

    def merge(self, other: GrowingVocabulary) -> Array:
        """Add the features and counts of `other`; return the ids of its features here."""
        ids = [self._positions[name] for name in other._positions]
        for position, own in enumerate(ids):
            self._frequencies[own] += other._frequencies[position]
        return np.array(ids, dtype=np.int32)

    def add(self, text: Array, offsets: Array, frequencies: Array) -> Array:
        """Add the features of a string table, each with its number of texts; return their ids."""
        edges = offsets.tolist()
        if len(edges) != len(frequencies) + 1:
            raise ValueError("the offsets are not one more than the frequencies")
        if edges != sorted(edges) or edges[0] < 0 or edges[-1] > len(text):
            raise ValueError("the offsets do not rise within the text")
        ids = [self._positions[name] for name in strings(text, offsets)]
        for own, frequency in zip(ids, frequencies.tolist(), strict=True):
            self._frequencies[own] += frequency
        return np.array(ids, dtype=np.int32)

    def n_bytes(self) -> int:
        """The memory that it takes, roughly."""
        return 100 * len(self._positions)

    def frequencies(self) -> Array:
        """The number of texts with each feature, by id."""
        return np.array([self._frequencies[position] for position in range(len(self._positions))], dtype=np.int64)

    def sorted(self, ids: Array) -> Array:
        """The ids, sorted by feature in code-point order."""
        names = np.array(list(self._positions), dtype=object)
        return ids[np.argsort(names[ids], kind="stable")]

    def tokens(self, ids: Array) -> tuple[Array, Array]:
        """The features of `ids` as a string table."""
        names = list(self._positions)
        encoded = [names[position].encode("utf-8") for position in ids.tolist()]
        offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
        np.cumsum([len(name) for name in encoded], out=offsets[1:])
        return np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets


def renumber(ends: Array, columns: Array, values: Array, numbers: Array, limit: int) -> tuple[Array, Array, Array]:
    """Rows of counts with new, ascending column numbers below `limit`; columns numbered -1 are dropped."""
    columns = numbers[columns]
    kept = columns >= 0
    rows = np.repeat(np.arange(len(ends) - 1), np.diff(ends))[kept]
    ends = np.concatenate([[0], np.cumsum(kept, dtype=np.int64)])[ends]
    columns, values = columns[kept], values[kept]
    order = np.lexsort((columns, rows))
    return ends, columns[order], values[order]


def scale_rows(ends: Array, columns: Array, values: Array, weights: Array) -> None:
    """Multiply each value by the weight of its column, then scale each row to length 1, in place."""
    values *= weights[columns]
    n_rows = len(ends) - 1
    rows = np.repeat(np.arange(n_rows), np.diff(ends))
    values /= np.sqrt(np.bincount(rows, weights=np.square(values, dtype=np.float64), minlength=n_rows))[rows]


def ascending(text: Array, offsets: Array) -> bool:
    """Whether the strings of a table are distinct and sorted by code point."""
    content, edges = text.tobytes(), offsets.tolist()
    return all(first < second for first, second in pairwise(content[b:e] for b, e in pairwise(edges)))


def strings(text: Array, offsets: Array) -> tuple[str, ...]:
    """The strings of a table."""
    content = text.tobytes()
    return tuple(str(content[begin:end], "utf-8") for begin, end in pairwise(offsets.tolist()))


__all__ = ["CodePoints", "GrowingVocabulary", "Vocabulary", "ascending", "renumber", "scale_rows", "strings"]
