"""`Ledger`: changes of rows and labels, taken in their order, and what they come to.

Its entries are rows. Each change finds them by the digest of an id or of a text, as these are at that moment.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from longtail.arrays import Array
from longtail.data import Change, LabelDrop, LabelRename, RowChange, RowFeedback, RowRemoval, row_id
from longtail.errors import InvalidInput
from longtail.tagger.kept_rows import digest_of

_GONE = -1


@dataclass(eq=False)
class Row:
    """A row of the model, or a new one, as the changes leave it.

    Parameters
    ----------
    number : int
        Of the row in the model; -1 if it is new.
    id, digest : bytes
        The digests of its id and of its text.
    labels : list of int
        Numbers of labels, see `Labels`.
    text, name : str
        Its text, and how messages name it, if a change has written the row.
    is_written, is_corrected, is_removed : bool
        Whether a change has written the row, whether the last one was feedback, and whether the row is gone.
    """

    number: int
    id: bytes
    digest: bytes
    labels: list[int]
    text: str = ""
    name: str = ""
    is_written: bool = False
    is_corrected: bool = False
    is_removed: bool = False


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
        self._renamed: dict[str, str] = {}
        self._dropped: set[str] = set()
        self.count = self.before = count
        self.names: dict[int, str] = {}  # of new and renamed labels
        self.gone: set[int] = set()
        self.old_names: dict[str, str] = {}  # that later rows use, and the new ones
        self.again: list[str] = []  # dropped labels that later rows give

    def find(self, name: str) -> int:
        """The number of a label, -1 if there is none; the old name of a renamed label stands for it."""
        return self._ids.get(self._new_name(name), _GONE)

    def number(self, name: str) -> int:
        """The number of a label; a name that is not known becomes a new label."""
        name = self._new_name(name)
        found = self._ids.get(name, _GONE)
        if found == _GONE:
            found = self._ids[name] = self.count
            self.names[found] = name
            self.count += 1
            if name in self._dropped:
                self.again.append(name)
        return found

    def _new_name(self, name: str) -> str:
        found = name
        while found in self._renamed:
            found = self._renamed[found]
        if found != name:
            self.old_names[name] = found
        return found

    def rename(self, change: LabelRename) -> None:
        """Give a label another name. Its old name stands for it, unless another label is renamed to that one."""
        old, new = self._found(change.old, change.place), self._ids.get(change.new, _GONE)
        if change.old == change.new:
            return
        self._ids[change.old] = _GONE
        self._renamed.pop(change.new, None)
        self._renamed[change.old] = change.new
        if new == _GONE:
            self._ids[change.new] = old
            self.names[old] = change.new
        else:
            self._into[old] = new
            self.gone.add(old)

    def drop(self, change: LabelDrop) -> None:
        self.gone.add(self._found(change.label, change.place))
        self._ids[change.label] = _GONE
        self._dropped.add(change.label)

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


class Ledger:
    """What changes come to: the same as if each were an update of its own, except for old names of labels.

    Parameters
    ----------
    labels : Labels
    rows : iterable of Row
        All rows of the model that a change can find, see `key_of`.

    Attributes
    ----------
    rows : list of Row
        These, and new ones after them.
    renamed : int
        The number of labels renamed.
    unknown : list of RowRemoval
        Removals that found no row.
    """

    def __init__(self, labels: Labels, rows: Iterable[Row]) -> None:
        self.labels, self.rows, self.renamed = labels, list(rows), 0
        self.unknown: list[RowRemoval] = []
        # Dictionaries as sets that keep the order of their rows.
        self._by_id: dict[bytes, dict[Row, None]] = {}
        self._by_text: dict[bytes, dict[Row, None]] = {}
        for row in self.rows:
            self._enter(row)

    def take(self, change: Change) -> None:
        """Take the next change."""
        match change:
            case RowChange():
                labels, ids = list(map(self.labels.number, change.labels)), set()
                for row in self._rows_of(change):
                    if row.id in ids:
                        self._remove(row)
                    else:
                        self._write(row, change, labels)
                        ids.add(row.id)
            case RowFeedback():
                right = list(map(self.labels.number, (*change.accepted, *change.added)))
                wrong = {_GONE, *map(self.labels.find, change.rejected)}
                for row in self._rows_of(change):
                    labels = list(dict.fromkeys(map(self.labels.now, (*row.labels, *right))))
                    self._write(row, change, [label for label in labels if label not in wrong])
            case RowRemoval():
                if not (found := self._found(change)):
                    self.unknown.append(change)
                for row in found:
                    self._remove(row)
            case LabelRename():
                self.labels.rename(change)
                self.renamed += change.old != change.new
            case LabelDrop():
                self.labels.drop(change)
            case _:
                raise InvalidInput(
                    f"a change is {change!r:.60}; expected a file, a corpus, or RowChange, RowRemoval, RowFeedback, "
                    "LabelRename and LabelDrop of longtail.data"
                )

    def _found(self, change: RowChange | RowFeedback | RowRemoval) -> list[Row]:
        """The rows of the id of a change or, without one, of its text."""
        key, is_text = key_of(change)
        return list((self._by_text if is_text else self._by_id).get(key, ()))

    def _rows_of(self, change: RowChange | RowFeedback) -> list[Row]:
        """The rows of a change; a new one if there is none."""
        found = self._found(change)
        if not found:
            found = [Row(_GONE, key_of(change)[0], digest_of(row_id(change.text)), [])]
            self.rows += found
            self._enter(found[0])
        return found

    def _enter(self, row: Row) -> None:
        self._by_id.setdefault(row.id, {})[row] = None
        self._by_text.setdefault(row.digest, {})[row] = None

    def _write(self, row: Row, change: RowChange | RowFeedback, labels: list[int]) -> None:
        del self._by_text[row.digest][row]
        row.text, row.digest, row.labels = change.text, digest_of(row_id(change.text)), labels
        self._by_text.setdefault(row.digest, {})[row] = None
        row.is_written, row.is_corrected = True, isinstance(change, RowFeedback)
        row.name = name_of(change)

    def _remove(self, row: Row) -> None:
        row.is_removed = True
        del self._by_id[row.id][row], self._by_text[row.digest][row]


def key_of(change: RowChange | RowFeedback | RowRemoval) -> tuple[bytes, bool]:
    """The digest by which a change finds its rows, and whether it is that of a text."""
    if change.id is not None:
        return digest_of(change.id), False
    return digest_of(row_id(change.text)), True


def name_of(change: RowChange | RowFeedback | RowRemoval) -> str:
    """How messages name the row of a change."""
    where = f"{change.place}: " if change.place else ""
    return f"{where}the row with the " + (f"text {change.text!r:.40}" if change.id is None else f"id {change.id!r}")


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
