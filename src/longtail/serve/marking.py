"""Where in a text the words of an explanation stand: the text cut into segments, each with what it adds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from longtail.text import word_spans


class Segment(NamedTuple):
    """A piece of a text and what it adds to the margin of a label."""

    text: str
    adds: float


def segments(text: str, contributions: Iterable[tuple[str, float]], min_length: int = 2) -> list[Segment]:
    """Cut `text` so that the words with a contribution stand alone; the pieces together are the text.

    A feature of several words shares its contribution evenly among them, and one that stands in several places among
    the places.

    Parameters
    ----------
    text : str
    contributions : pairs of a feature and what it adds
    min_length : int
        That of the `TextFeatures` that made the features.

    Examples
    --------
    >>> segments("Fit a line.", [("fit line", 0.5), ("line", 0.25)])
    [Segment(text='Fit', adds=0.25), Segment(text=' a ', adds=0.0), Segment(text='line', adds=0.5), Segment(text='.', adds=0.0)]
    """  # noqa: E501
    words = word_spans(text, min_length)
    by_length: dict[int, dict[str, float]] = defaultdict(dict)
    for feature, adds in contributions:
        by_length[feature.count(" ") + 1][feature] = adds
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
