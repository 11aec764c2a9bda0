"""`TextContents`: empty, duplicate and damaged texts; texts are hashed, not kept."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence

import numpy as np

from longtail.arrays import Array
from longtail.checking.counting import Groups, differing, equal_groups
from longtail.checking.damage import DAMAGE, damages
from longtail.checking.finding import Example, Finding
from longtail.printable import counted

_EXCERPT = 60


def fold_text(text: str) -> str:
    """A text without case and with single blanks; texts that are the same then count as duplicates.

    >>> fold_text(" A  red\\napple ")
    'a red apple'
    """
    return " ".join(text.casefold().split())


def excerpt(text: str) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(text[: 4 * _EXCERPT].split())
    return line if len(line) <= _EXCERPT else line[:_EXCERPT].rstrip() + "…"


class Digests:
    """Places of things, and the hash of each: 16 bytes per row. Hashes are those of this process."""

    def __init__(self) -> None:
        self._hashes = array("q")
        self._places = array("q")

    def add(self, place: int, text: str) -> None:
        self._hashes.append(hash(text))
        self._places.append(place)

    def __len__(self) -> int:
        return len(self._places)

    @property
    def hashes(self) -> Array:
        return np.frombuffer(self._hashes, dtype=np.int64) if self._hashes else np.zeros(0, np.int64)

    @property
    def places(self) -> Array:
        return np.frombuffer(self._places, dtype=np.int64) if self._places else np.zeros(0, np.int64)


class Seen:
    """How often something was seen, and the first examples."""

    def __init__(self, most: int) -> None:
        self.count = 0
        self.examples: list[Example] = []
        self._most = most

    def add(self, place: int, what: str = "") -> None:
        self.count += 1
        if len(self.examples) < self._most:
            self.examples.append(Example((place,), what))


class TextContents:
    """Collects what the texts alone tell.

    Parameters
    ----------
    most : int
        The number of examples to keep of each finding.
    """

    def __init__(self, most: int) -> None:
        self.n_rows = 0
        self.texts = Digests()
        self._label_sets = array("q")
        self._most = most
        self._empty = Seen(most)
        self._damaged = {code: Seen(most) for code in DAMAGE}

    def add(self, place: int, text: str, label_set: int) -> str:
        """Look at a text, given the hash of its labels; returns the folded text."""
        self.n_rows += 1
        folded = fold_text(text)
        if not folded:
            self._empty.add(place)
            return folded
        self.texts.add(place, folded)
        self._label_sets.append(label_set)
        for damage in damages(text):
            self._damaged[damage.code].add(place, excerpt(damage.excerpt))
        return folded

    def findings(self) -> Iterator[Finding]:
        """The findings about empty, duplicate and damaged texts."""
        if self._empty.count:
            yield Finding(
                "empty_texts",
                "error" if self._empty.count == self.n_rows else "warning",
                self._empty.count,
                f"{counted(self._empty.count, 'text')} {'is' if self._empty.count == 1 else 'are'} empty",
                "Leave out these rows, or look whether the texts are in another column.",
                self._empty.examples,
            )
        groups, label_sets = equal_groups(self.texts.hashes), np.array(self._label_sets, dtype=np.int64)
        yield from duplicate_findings(groups, label_sets, self.texts.places, self._most, "text")
        for code, (what, advice) in DAMAGE.items():
            seen = self._damaged[code]
            if seen.count:
                says = f"{counted(seen.count, 'text')} contain{'s' * (seen.count == 1)} {what}"
                yield Finding(code, "warning", seen.count, says, advice, seen.examples)


def id_findings(ids: Digests, nameless: int, examples: Sequence[Example], most: int) -> Iterator[Finding]:
    """The findings about rows whose id another row has, or which have none although others have one."""
    if len(ids) and nameless:
        yield Finding(
            "missing_ids",
            "error",
            nameless,
            f"{counted(nameless, 'row')} ha{'s' if nameless == 1 else 've'} no id, but others have one",
            "Give every row an id, or none; training refuses the mixture.",
            examples,
        )
    groups = equal_groups(ids.hashes)
    if len(groups.starts):
        count = int((groups.sizes() - 1).sum())
        yield Finding(
            "duplicate_ids",
            "warning",
            count,
            f"{counted(count, 'row')} ha{'s' if count == 1 else 've'} the id of another row",
            "An id should name one row. If each row holds one label of a document, merge the rows of each document: "
            "--merge-by id.",
            _places(groups, ids.places, most),
        )


def unlabelled(count: int, n_rows: int, examples: Sequence[Example]) -> Iterator[Finding]:
    """The finding about rows without labels, if there are any."""
    if not count:
        return
    if count == n_rows:
        yield Finding(
            "no_labels", "error", count, "no row has a label", "Name the key or column of the labels: --label-column."
        )
        return
    yield Finding(
        "rows_without_labels",
        "warning",
        count,
        f"{counted(count, 'row')} ha{'s' if count == 1 else 've'} no label",
        "Training takes them as rows where no label is right; leave them out if their labels are just not known.",
        examples,
    )


def duplicate_findings(groups: Groups, label_sets: Array, places: Array, most: int, what: str) -> Iterator[Finding]:
    """The findings about rows with the same text or the same features."""
    if not len(groups.starts):
        return
    conflicting = differing(groups, label_sets)
    for code, chosen, labels, advice in (
        (
            "conflicting_duplicates",
            groups.chosen(conflicting),
            "other labels",
            "Merge their labels into one row, or keep the row that is right.",
        ),
        (
            "duplicates",
            groups.chosen(~conflicting),
            "the same labels",
            "Keep one of each; a copy among held-out rows makes metrics look good.",
        ),
    ):
        if not len(chosen.starts):
            continue
        count = int((chosen.sizes() - 1).sum())
        yield Finding(
            code,
            "warning",
            count,
            f"{counted(count, 'row')} repeat{'s' * (count == 1)} the {what} of another row, with {labels}",
            advice,
            _places(chosen, places, most),
        )


def _places(groups: Groups, places: Array, most: int) -> list[Example]:
    return [Example(tuple(places[members].tolist())) for members in groups.largest(most)]
