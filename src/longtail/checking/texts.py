"""`TextRows`: what one pass over labelled texts leaves to know of them."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator

import numpy as np

from longtail.checking.contents import Digests, Seen, TextContents, excerpt, id_findings, unlabelled
from longtail.checking.finding import Example, Finding
from longtail.checking.labels import LabelTable
from longtail.checking.leakage import Leakage
from longtail.data import Record
from longtail.printable import counted
from longtail.text import tokenize

_SHORT = 5
_LONG_SHARE = 20
_LONG_LEAST = 500


class TextRows:
    """Collects what a check needs to know of texts.

    Parameters
    ----------
    most : int
        The number of examples to keep of each finding.
    """

    def __init__(self, most: int) -> None:
        self.labels = LabelTable()
        self.n_rows = 0
        self.n_words: Counter[int] = Counter()
        self.n_labels: Counter[int] = Counter()
        self.contents = TextContents(most)
        self.ids = Digests()
        self.leakage = Leakage(most)
        self._most = most
        self._unlabelled, self._wordless, self._short, self._nameless = (Seen(most) for _ in range(4))
        self._longest: list[tuple[int, int, str]] = []

    def add(self, record: Record) -> None:
        """Look at a row."""
        place, text, labels, row_name = record
        self.n_rows += 1
        self.n_labels[len(labels)] += 1
        self.labels.add(place, labels)
        if not labels:
            self._unlabelled.add(place, excerpt(text))
        if row_name is None:
            self._nameless.add(place)
        else:
            self.ids.add(place, row_name)
        folded = self.contents.add(place, text, hash(frozenset(labels)))
        if not folded:
            return
        words = tokenize(text, 1)
        self.n_words[len(words)] += 1
        if not words:
            self._wordless.add(place, excerpt(text))
        elif len(words) == 1 and len(folded) < _SHORT:
            self._short.add(place, excerpt(text))
        self._keep_long(len(words), place, text)
        self.leakage.add(place, words, labels)

    def _keep_long(self, length: int, place: int, text: str) -> None:
        if length < _LONG_LEAST:
            return
        if len(self._longest) < self._most:
            heapq.heappush(self._longest, (length, -place, excerpt(text)))
        elif self._longest and length > self._longest[0][0]:
            heapq.heapreplace(self._longest, (length, -place, excerpt(text)))

    def findings(self) -> Iterator[Finding]:
        """What is wrong with the texts, their labels and their ids, apart from the labels' names and frequencies."""
        yield from unlabelled(self._unlabelled.count, self.n_rows, self._unlabelled.examples)
        yield from self.contents.findings()
        yield from id_findings(self.ids, self._nameless.count, self._nameless.examples, self._most)
        yield from self.leakage.findings()
        yield from self._about_lengths()

    def _about_lengths(self) -> Iterator[Finding]:
        for code, seen, what in (
            ("texts_without_words", self._wordless, "no letter or digit"),
            ("short_texts", self._short, f"fewer than {_SHORT} characters"),
        ):
            if seen.count:
                yield Finding(
                    code,
                    "note",
                    seen.count,
                    f"{counted(seen.count, 'text')} ha{'s' if seen.count == 1 else 've'} {what}",
                    "Little can be learned from these rows; leave them out, or add text.",
                    seen.examples,
                )
        if not self.n_words:
            return
        lengths = np.array(sorted(self.n_words), dtype=np.int64)
        times = np.array([self.n_words[length] for length in lengths.tolist()])
        median = int(lengths[np.searchsorted(np.cumsum(times), times.sum() / 2)])
        least = max(_LONG_LEAST, _LONG_SHARE * median)
        count = int(times[lengths >= least].sum())
        if count:
            yield Finding(
                "long_texts",
                "note",
                count,
                f"{counted(count, 'text')} ha{'s' if count == 1 else 've'} at least {least:,} words; "
                f"the median is {median:,}",
                "Look whether several documents were joined, for example by a quote that is never closed.",
                [
                    Example((-place,), f"{counted(length, 'word')}: {text}")
                    for length, place, text in sorted(self._longest, reverse=True)
                    if length >= least
                ],
            )
