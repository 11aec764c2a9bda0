"""`segments`: a text cut into pieces, each with what its words contribute to the score of a label."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from longtail.text.tokens import word_spans


class Segment(NamedTuple):
    """A piece of a text and what it contributes to the margin of a label."""

    text: str
    contribution: float


def segments(text: str, contributions: Iterable[tuple[str, float]], min_length: int = 2) -> list[Segment]:
    """Cut `text` so that each word with a contribution is a piece of its own; the pieces joined are the text.

    A feature of several words divides its contribution evenly among them. A feature that occurs several times divides
    it among its occurrences.

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
    """
    words = word_spans(text, min_length)
    by_length: dict[int, dict[str, float]] = defaultdict(dict)
    for feature, contribution in contributions:
        by_length[feature.count(" ") + 1][feature] = contribution
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
    pieces: list[Segment] = []
    end = 0
    for word, share in zip(words, shares, strict=True):
        if share:
            if word.start > end:
                pieces.append(Segment(text[end : word.start], 0.0))
            pieces.append(Segment(text[word.start : word.end], share))
            end = word.end
    if end < len(text):
        pieces.append(Segment(text[end:], 0.0))
    return pieces
