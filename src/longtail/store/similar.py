"""Names that are like a mistyped one, among millions: candidates by their letters, then compared one by one."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import numpy as np

from longtail.arrays import Array
from longtail.store.lookup import check_rise

_CUTOFF = 0.75  # of difflib's ratio
_MOST_COUNTED = 2**16  # strings whose letters are counted
_MOST_BYTES = 2**22  # in all of these
_MOST_COMPARED = 100  # strings that are compared letter by letter, which is slow
_LONGEST = 200  # bytes of what is sought, and of what is compared
_LOWER = np.arange(256, dtype=np.uint8)
_LOWER[ord("A") : ord("Z") + 1] += 32


def places_of_candidates(text: Array, offsets: Array, sought: bytes, counts: Array | None = None) -> Array:
    """The positions of the strings that have the most letters and pairs of letters in common with `sought`.

    Parameters
    ----------
    text, offsets : arrays
        As in a `StringTable`; `ValueError` if the offsets do not rise.
    sought : bytes
    counts : array or None
        How often each string is used; if too many come into question, the others are left out.
    """
    check_rise(text, offsets)
    lengths = np.diff(offsets)
    size = len(sought)
    if not 0 < size <= _LONGEST:
        return np.zeros(0, dtype=np.int64)
    # difflib's ratio cannot reach the cutoff if the lengths differ by more.
    least, most = int(np.ceil(size * _CUTOFF / (2 - _CUTOFF))), int(size * (2 - _CUTOFF) / _CUTOFF)
    places = np.flatnonzero((lengths >= least) & (lengths <= most))
    if _too_many(lengths, places):
        first = _LOWER[sought[0]]
        places = places[_LOWER[text[offsets[places]]] == first]
    if _too_many(lengths, places):
        largest = np.arange(len(places)) if counts is None else np.argsort(-counts[places], kind="stable")
        enough = min(_MOST_COUNTED, int(np.searchsorted(np.cumsum(lengths[places[largest]]), _MOST_BYTES, "right")))
        places = np.sort(places[largest[:enough]])
    if not len(places):
        return places
    shared = _shared(text, offsets[places], lengths[places], np.frombuffer(sought, dtype=np.uint8))
    likeness = shared / (size + lengths[places])
    best = np.argsort(-likeness, kind="stable")[:_MOST_COMPARED]
    return np.sort(places[best])


def most_similar(sought: str, names: Sequence[str], limit: int) -> list[int]:
    """The positions of at most `limit` names that are like `sought`, best first, ignoring case.

    >>> most_similar("Chess", ["cheese", "chess", "draughts", "ches"], 3)
    [1, 3]
    """
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(sought.casefold())
    found = []
    for number, name in enumerate(names):
        matcher.set_seq1(name.casefold())
        if matcher.real_quick_ratio() >= _CUTOFF and matcher.quick_ratio() >= _CUTOFF:
            ratio = matcher.ratio()
            if ratio >= _CUTOFF:
                found.append((-ratio, number))
    return [number for _, number in sorted(found)[:limit]]


def _too_many(lengths: Array, places: Array) -> bool:
    return len(places) > _MOST_COUNTED or int(lengths[places].sum()) > _MOST_BYTES


def _shared(text: Array, starts: Array, lengths: Array, sought: Array) -> Array:
    """How many letters and pairs of letters each string has in common with `sought`."""
    owner = np.repeat(np.arange(len(starts)), lengths)
    ends = np.cumsum(lengths)
    letters = _LOWER[text[np.arange(ends[-1]) - np.repeat(ends - lengths - starts, lengths)]]
    wanted = _LOWER[sought]
    pairs = letters[:-1].astype(np.uint16) << 8 | letters[1:]
    inside = owner[:-1] == owner[1:]
    wanted_pairs = wanted[:-1].astype(np.uint16) << 8 | wanted[1:]
    n = len(starts)
    return _in_common(letters, owner, wanted, 2**8, n) + _in_common(
        pairs[inside], owner[:-1][inside], wanted_pairs, 2**16, n
    )


def _in_common(found: Array, owner: Array, wanted: Array, n_codes: int, n_strings: int) -> Array:
    """For each string, the size of the intersection of its codes, with repetitions, and those wanted."""
    codes, times = np.unique(wanted, return_counts=True)
    if not len(codes):
        return np.zeros(n_strings, dtype=np.int64)
    number = np.full(n_codes, -1, dtype=np.int64)
    number[codes] = np.arange(len(codes))
    numbered = number[found]
    known = numbered >= 0
    counts = np.bincount(owner[known] * len(codes) + numbered[known], minlength=n_strings * len(codes))
    return np.minimum(counts.reshape(n_strings, len(codes)), times).sum(axis=1)
