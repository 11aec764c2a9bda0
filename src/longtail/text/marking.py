"""`segments`: a text cut into pieces, each with what its words contribute to the score of a label."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import NamedTuple

from longtail.native import token_subwords
from longtail.text.subwords import is_subword
from longtail.text.tokens import WordSpan, word_spans


class Segment(NamedTuple):
    """A piece of a text and what it contributes to the margin of a label."""

    text: str
    contribution: float


def segments(text: str, contributions: Iterable[tuple[str, float]], min_length: int = 2) -> list[Segment]:
    """Cut `text` so that each word with a contribution is a piece of its own; the pieces joined are the text.

    A feature of several words divides its contribution evenly among them, and a subword among its letters. A feature
    that occurs several times divides it among its occurrences. A word with subwords is cut where its letters change
    between counting for the label, against it, and not at all.

    Parameters
    ----------
    text : str
    contributions : pairs of a feature and its contribution
    min_length : int
        The parameter of the `TextFeatures` that made the features.

    Examples
    --------
    >>> for piece in segments("Fit a line.", [("fit line", 0.5), ("line", 0.25)]):
    ...     print(piece)
    Segment(text='Fit', contribution=0.25)
    Segment(text=' a ', contribution=0.0)
    Segment(text='line', contribution=0.5)
    Segment(text='.', contribution=0.0)
    >>> segments("Seaside", [("<sea", 0.75)])
    [Segment(text='Sea', contribution=0.75), Segment(text='side', contribution=0.0)]
    """
    words = word_spans(text, min_length)
    by_length: dict[int, dict[str, float]] = defaultdict(dict)
    subwords: dict[str, float] = {}
    for feature, contribution in contributions:
        if is_subword(feature):
            subwords[feature] = contribution
        else:
            by_length[feature.count(" ") + 1][feature] = contribution
    shares = _shares_of_words(words, by_length)
    letters = _shares_of_letters(words, subwords)
    pieces: list[Segment] = []
    end = 0
    for number, (word, share) in enumerate(zip(words, shares, strict=True)):
        for part, part_end, adds in _parts(word, share, letters.get(number)):
            if not adds:
                continue
            if part > end:
                pieces.append(Segment(text[end:part], 0.0))
            pieces.append(Segment(text[part:part_end], adds))
            end = part_end
    if end < len(text):
        pieces.append(Segment(text[end:], 0.0))
    return pieces


def _shares_of_words(words: list[WordSpan], by_length: Mapping[int, Mapping[str, float]]) -> list[float]:
    """What each word gets from the features of whole words, which are given by their number of words."""
    shares = [0.0] * len(words)
    for length, features in by_length.items():
        places: dict[str, list[int]] = defaultdict(list)
        for first in range(len(words) - length + 1):
            run = " ".join(word.token for word in words[first : first + length])
            if run in features:
                places[run].append(first)
        for run, firsts in places.items():
            share = features[run] / (len(firsts) * length)
            for first in firsts:
                for position in range(first, first + length):
                    shares[position] += share
    return shares


def _shares_of_letters(words: list[WordSpan], subwords: Mapping[str, float]) -> dict[int, list[float]]:
    """What each letter of a word gets from subwords, by the number of the word; words without subwords are left out."""
    places: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for length in {len(subword.removeprefix("~")) for subword in subwords}:
        for number, word in enumerate(words):
            for position, subword in enumerate(token_subwords([word.token], length)):
                if subword in subwords:
                    places[subword].append((number, max(position - 1, 0)))
    shares: dict[int, list[float]] = {}
    for subword, found in places.items():
        covered = len(subword) - 1
        share = subwords[subword] / (len(found) * covered)
        for number, first in found:
            letters = shares.setdefault(number, [0.0] * len(words[number].token))
            for letter in range(first, first + covered):
                letters[letter] += share
    return shares


def _parts(word: WordSpan, share: float, letters: list[float] | None) -> Iterator[tuple[int, int, float]]:
    """The parts of a word as start, end and contribution: letters of one sign, or all if no subword marks any."""
    if letters is None:
        yield word.start, word.end, share
        return
    each = share / len(letters)
    start = word.start
    for _, group in groupby((each + letter for letter in letters), key=lambda adds: (adds > 0) - (adds < 0)):
        part = list(group)
        yield start, start + len(part), sum(part)
        start += len(part)
