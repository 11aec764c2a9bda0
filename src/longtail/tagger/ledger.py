"""`Ledger`: changes of rows and labels, taken in their order, and what they come to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from longtail.arrays import Array
from longtail.data import Change, LabelDrop, LabelRename, RowChange, RowFeedback, RowRemoval, row_id
from longtail.errors import InvalidInput
from longtail.tagger.kept_rows import digest_of

_GONE = -1


@dataclass
class Row:
    """What became of the row of an id.

    Parameters
    ----------
    text : str
    labels : list of int
        Numbers of labels, see `Labels`.
    by_text : bool
        Whether the row has no id of its own but is known by its text.
    name : str
        How messages name the row.
    """

    text: str
    labels: list[int]
    by_text: bool
    name: str


class Labels:
    """The labels of a model by name while they are renamed, dropped and added; each keeps its number.

    Parameters
    ----------
    count : int
        The labels of the model have the numbers up to this.
    known : mapping of str to int
        Those that the changes name; -1 if the model has no such label.
    """

    def __init__(self, count: int, known: dict[str, int]) -> None:
        self._ids = dict(known)
        self._into: dict[int, int] = {}
        self.count = self.before = count
        self.names: dict[int, str] = {}  # of new and renamed labels
        self.gone: set[int] = set()

    def number(self, name: str) -> int:
        """The number of a label; a name that is not known becomes a new label."""
        found = self._ids.get(name, _GONE)
        if found == _GONE:
            found = self._ids[name] = self.count
            self.names[found] = name
            self.count += 1
        return found

    def rename(self, change: LabelRename) -> None:
        old, new = self._found(change.old, change.place), self._ids.get(change.new, _GONE)
        if change.old == change.new:
            return
        self._ids[change.old] = _GONE
        if new == _GONE:
            self._ids[change.new] = old
            self.names[old] = change.new
        else:
            self._into[old] = new
            self.gone.add(old)

    def drop(self, change: LabelDrop) -> None:
        self.gone.add(self._found(change.label, change.place))
        self._ids[change.label] = _GONE

    def now(self, number: int) -> int:
        """The label that a label became, or -1 if it is dropped."""
        while number in self._into:
            number = self._into[number]
        return _GONE if number in self.gone else number

    def _found(self, name: str, place: str) -> int:
        found = self._ids.get(name, _GONE)
        if found == _GONE:
            where = f"{place}: " if place else ""
            raise InvalidInput(f"{where}there is no label {name!r}", code="unknown_label", name=name)
        return found


@dataclass
class Ledger:
    """What changes come to.

    Parameters
    ----------
    labels : Labels
    rows : dict of bytes to Row or None
        By the digest of an id; None if the row is removed.
    renamed, corrections : int
        The number of labels renamed, and of rows with feedback.
    """

    labels: Labels
    rows: dict[bytes, Row | None] = field(default_factory=dict)
    renamed: int = 0
    corrected: set[bytes] = field(default_factory=set)

    @classmethod
    def of(
        cls,
        changes: Sequence[Change],
        count: int,
        known: dict[str, int],
        labels_of: Callable[[bytes, bool], Iterable[int]],
    ) -> Ledger:
        """Take changes in their order.

        Parameters
        ----------
        changes : sequence of changes
        count, known
            As for `Labels`.
        labels_of : callable
            The labels that the rows of a digest have in the model; the flag says that it is the digest of a text.
        """
        ledger = cls(Labels(count, known))
        for change in changes:
            ledger._take(change, labels_of)
        return ledger

    def _take(self, change: Change, labels_of: Callable[[bytes, bool], Iterable[int]]) -> None:
        match change:
            case RowChange():
                key = key_of(change)
                self.rows[key] = _row(change, list(map(self.labels.number, change.labels)))
            case RowRemoval():
                self.rows[digest_of(change.id)] = None
            case RowFeedback():
                key = key_of(change)
                pending = self.rows.get(key)
                had = labels_of(key, change.id is None) if key not in self.rows else pending.labels if pending else ()
                wrong = set(map(self.labels.number, change.rejected))
                labels = [*had, *map(self.labels.number, (*change.accepted, *change.added))]
                kept = [label for label in dict.fromkeys(map(self.labels.now, labels)) if label not in wrong | {_GONE}]
                self.rows[key] = _row(change, kept)
                self.corrected.add(key)
            case LabelRename():
                self.labels.rename(change)
                self.renamed += 1
            case LabelDrop():
                self.labels.drop(change)
            case _:
                raise InvalidInput(
                    f"a change is {change!r:.60}; expected a file, a corpus, or RowChange, RowRemoval, RowFeedback, "
                    "LabelRename and LabelDrop of longtail.data"
                )


def _row(change: RowChange | RowFeedback, labels: list[int]) -> Row:
    where = f"{change.place}: " if change.place else ""
    what = f"the row with the text {change.text!r:.40}" if change.id is None else f"the row with the id {change.id!r}"
    return Row(change.text, labels, change.id is None, f"{where}{what}")


def key_of(change: RowChange | RowFeedback) -> bytes:
    """The digest of the id of a row."""
    return digest_of(row_id(change.text) if change.id is None else change.id)


def names_in(changes: Iterable[Change]) -> list[str]:
    """All label names that changes mention."""
    found: dict[str, None] = {}
    for change in changes:
        match change:
            case RowChange():
                found.update(dict.fromkeys(change.labels))
            case RowFeedback():
                found.update(dict.fromkeys((*change.accepted, *change.rejected, *change.added)))
            case LabelRename():
                found.update(dict.fromkeys((change.old, change.new)))
            case LabelDrop():
                found[change.label] = None
            case RowRemoval():
                pass
    return list(found)


def numbers_now(labels: Labels) -> Array:
    """What each label became, by its number; -1 if it is dropped."""
    now = np.arange(labels.count, dtype=np.int64)
    for number in labels.gone:
        now[number] = labels.now(number)
    return now
