"""`LabelTable`: the labels of the rows seen so far, how often each occurs, and where first; and what is wrong there."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from longtail.arrays import Array
from longtail.checking.finding import Example, Finding
from longtail.printable import counted

_RARE = 5
_ON_MOST = 0.95
_ENOUGH_ROWS = 20


class LabelTable:
    """Labels by id, with the number of rows of each, and the line or row where it is first.

    Parameters
    ----------
    names : sequence of str or None
        The names, if the rows give labels by number. Their labels can have no rows.
    """

    def __init__(self, names: Sequence[str] | None = None) -> None:
        self._ids: dict[str, int] = {}
        self._counts = array("q")
        self._first = array("q")
        self._names = names
        if names is not None:
            self._counts = array("q", bytes(8 * len(names)))
            self._first = array("q", bytes(8 * len(names)))

    @property
    def names(self) -> Sequence[str]:
        return list(self._ids) if self._names is None else self._names

    @property
    def counts(self) -> Array:
        return np.frombuffer(self._counts, dtype=np.int64) if self._counts else np.zeros(0, np.int64)

    @property
    def first(self) -> Array:
        """The place of the first row of each label; 0 if there is none."""
        return np.frombuffer(self._first, dtype=np.int64) if self._first else np.zeros(0, np.int64)

    def __contains__(self, name: str) -> bool:
        return name in self._ids

    def add(self, place: int, labels: Sequence[str]) -> None:
        """Count the labels of a row."""
        ids, counts = self._ids, self._counts
        for label in labels:
            known = ids.get(label)
            if known is None:
                ids[label] = len(counts)
                counts.append(1)
                self._first.append(place)
            else:
                counts[known] += 1

    def add_rows(self, first_place: int, labels: Any) -> None:
        """Count the labels of rows of a CSR matrix, which stand at consecutive places."""
        counts, first = self.counts, self.first
        columns, entries = np.unique(labels.indices, return_index=True)
        rows = np.searchsorted(labels.indptr, entries, side="right") - 1
        new = counts[columns] == 0
        first[columns[new]] = first_place + rows[new]
        counts += np.bincount(labels.indices, minlength=len(counts))

    def described(self, label: int, name: str) -> str:
        """A label with the number of its rows."""
        return f"{name!r} ({counted(int(self.counts[label]), 'row')})"


def frequency_findings(labels: LabelTable, n_rows: int, n_labels_of_rows: Array, most: int) -> Iterator[Finding]:
    """What is wrong with how often labels occur.

    `n_labels_of_rows[i]` is the number of rows with i labels.
    """
    counts, names = labels.counts, labels.names
    used = counts > 0
    n_labels = int(used.sum())
    unlabelled = int(n_labels_of_rows[:1].sum())
    if n_labels == 1 and unlabelled == 0:
        yield Finding(
            "one_class",
            "error",
            n_rows,
            "all rows have one and the same label" if n_rows > 1 else "there is only one row",
            "There is nothing to learn; add rows with other labels.",
            _examples(labels, np.flatnonzero(used), names, most),
        )
    elif n_rows >= _ENOUGH_ROWS:
        common = np.flatnonzero(counts >= _ON_MOST * n_rows)
        if len(common):
            yield Finding(
                "label_on_most_rows",
                "warning",
                len(common),
                f"{counted(len(common), 'label')} stand{'s' * (len(common) == 1)} on at least {_ON_MOST:.0%} of rows",
                "Leave out such labels; they say nothing about a row, and make metrics look good.",
                _examples(labels, common, names, most),
            )
    if n_labels > 1 and unlabelled < n_rows and n_labels_of_rows[2:].sum() == 0:
        yield Finding(
            "single_label",
            "note",
            n_rows - unlabelled,
            "every labelled row has exactly one label" if unlabelled else "every row has exactly one label",
            "This is right for classes. If rows should have several labels, look at how they are separated.",
        )
    single = np.flatnonzero(counts == 1)
    if len(single):
        yield Finding(
            "labels_with_one_row",
            "note",
            len(single),
            f"{len(single):,} of {counted(n_labels, 'label')} ha{'s' if len(single) == 1 else 've'} only one row",
            "A label can hardly be learned from one row; add rows, merge such labels, or give label texts.",
            _examples(labels, single, names, most, with_counts=False),
        )
    rare, very_rare = int((used & (counts < _RARE)).sum()), int((used & (counts < 3)).sum())
    if rare > len(single):
        yield Finding(
            "rare_labels",
            "note",
            rare,
            f"{rare:,} of {counted(n_labels, 'label')} ha{'s' if rare == 1 else 've'} fewer than {_RARE} rows, "
            f"{very_rare:,} fewer than 3",
            "Expect weak predictions for them; `longtail report` shows quality by label frequency.",
        )
    idle = len(counts) - n_labels
    if idle:
        yield Finding(
            "labels_without_rows",
            "note",
            idle,
            f"{idle:,} of {counted(len(counts), 'label')} ha{'s' if idle == 1 else 've'} no row",
            "Training leaves them out.",
            [Example((), names[label]) for label in np.flatnonzero(~used)[:most].tolist()],
        )


def _examples(
    labels: LabelTable, chosen: Array, names: Sequence[str], most: int, with_counts: bool = True
) -> list[Example]:
    return [
        Example((int(labels.first[label]),), labels.described(label, names[label]) if with_counts else names[label])
        for label in chosen[:most].tolist()
    ]
