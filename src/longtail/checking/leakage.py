"""`Leakage`: how often the name of a label stands in the text of its row, and how often by chance in other rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from longtail.checking.finding import Example, Finding
from longtail.printable import counted
from longtail.text import tokenize

# Other rows to compare with: few, and renewed all the time.
_KEPT = 256
_SHORTEST = 3
_ENOUGH = 20
_HIGH, _TIMES = 0.5, 5.0
_NEARLY_ALWAYS = 0.95


class Leakage:
    """Counts pairs of a row and one of its labels whose name stands in the text, as whole words.

    Parameters
    ----------
    most : int
        The number of examples to keep.
    """

    def __init__(self, most: int) -> None:
        self.n_pairs = 0
        self.n_named = 0
        self.n_by_chance = 0
        self._n_compared = 0
        self._n_rows = 0
        self._others: list[tuple[str, Sequence[str]]] = []
        self._names: dict[str, str] = {}
        self._most = most
        self._examples: list[Example] = []

    def add(self, place: int, words: Sequence[str], labels: Sequence[str]) -> None:
        """Look for the names of the labels of a row in its words, and in those of a row without these labels."""
        text = f" {' '.join(words)} "
        other, labels_of_other = self._other(text, labels)
        for label in labels:
            name = self._names.get(label)
            if name is None:
                found = " ".join(tokenize(label, 1))
                # Numbers and single letters stand in texts without meaning the label.
                name = f" {found} " if len(found) >= _SHORTEST and not found.isdigit() else ""
                self._names[label] = name
            if not name:
                continue
            self.n_pairs += 1
            if name in text:
                self.n_named += 1
                if len(self._examples) < self._most:
                    self._examples.append(Example((place,), label))
            if other and label not in labels_of_other:
                self._n_compared += 1
                self.n_by_chance += name in other

    def _other(self, text: str, labels: Sequence[str]) -> tuple[str, Sequence[str]]:
        """The text and the labels of an earlier row; which one is as good as random, and the same in every run."""
        self._n_rows += 1
        place = (self._n_rows * 0x9E3779B1 >> 7) % _KEPT
        if len(self._others) < _KEPT:
            self._others.append((text, labels))
            return self._others[place % len(self._others)] if self._n_rows > 1 else ("", ())
        other, self._others[place] = self._others[place], (text, labels)
        return other

    @property
    def share(self) -> float:
        """The share of pairs whose name stands in the text."""
        return self.n_named / max(1, self.n_pairs)

    @property
    def chance(self) -> float:
        """The share of pairs whose name stands in the text of a row without the label."""
        return self.n_by_chance / max(1, self._n_compared)

    def findings(self) -> Iterator[Finding]:
        """A note if names stand in texts much more often than by chance, a warning if they nearly always do."""
        if self.n_pairs < _ENOUGH or self.share < max(_HIGH, _TIMES * self.chance):
            return
        always = self.share >= _NEARLY_ALWAYS
        yield Finding(
            "labels_in_texts",
            "warning" if always else "note",
            self.n_named,
            f"the name of the label stands in the text for {self.share:.0%} of {counted(self.n_pairs, 'pair')} "
            f"of a row and a label, and by chance for {self.chance:.0%}",
            "If the texts that you want to tag will not contain the names of their labels, remove these names from "
            "the texts; otherwise metrics are too good.",
            self._examples,
        )
