"""Collectors that build a corpus from rows or groups of texts and label names, one at a time."""

from __future__ import annotations

import warnings
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any

import numpy as np
from scipy import sparse

from longtail.data.corpus import Corpus
from longtail.data.grouped import GroupedCorpus, memberships
from longtail.data.streams import source_name
from longtail.errors import DataFormatError, InvalidInput
from longtail.files import PathName
from longtail.memory import MemoryPlan
from longtail.validation import own


class _LabelCollector:
    """Collects labels and names in flat arrays, with each label name once."""

    _what: str

    def __init__(self, source: PathName | IO[bytes]) -> None:
        self._source = source_name(source)
        self._texts: list[str] = []
        self._names: list[str] = []
        self._ids: dict[str, int] = {}
        self._indices = array("q")
        self._indptr = array("q", [0])
        self._has_names: bool | None = None

    def _add_labels(self, line: int, labels: Iterable[str], name: str | None) -> None:
        if self._has_names is None:
            self._has_names = name is not None
        elif (name is not None) != self._has_names:
            has, others = ("no", "have one") if name is None else ("an", "have none")
            raise DataFormatError(
                self._source,
                line,
                f"the {self._what} has {has} 'id', but earlier ones {others}",
                advice=f"give every {self._what} an id, or none; if 'id' means something else here, rename it",
            )
        ids = self._ids
        self._indices.extend(ids.setdefault(label, len(ids)) for label in labels)
        self._indptr.append(len(self._indices))
        if name is not None:
            self._names.append(name)

    def _counts(self) -> tuple[Any, list[str]]:
        """The count of each label in each row or group, with sorted label names, and these names."""
        names = sorted(self._ids)
        position = np.empty(len(names), dtype=np.int64)
        position[[self._ids[name] for name in names]] = np.arange(len(names))
        indices = position[np.frombuffer(self._indices, dtype=np.int64)] if self._indices else np.zeros(0, np.int64)
        counts: Any = sparse.csr_array(
            (np.ones(len(indices), dtype=np.int64), indices, np.array(self._indptr, dtype=np.int64)),
            shape=(len(self._indptr) - 1, len(names)),
        )
        counts.sum_duplicates()
        return own(counts), names


class RowCollector(_LabelCollector):
    """Collects rows."""

    _what = "row"

    def __init__(self, source: PathName | IO[bytes]) -> None:
        super().__init__(source)
        self._starts = [0]
        self.told_to_merge = False

    def begin(self, source: PathName) -> None:
        """The next rows come from another file; either all rows of a file have an id or none."""
        self._source = source_name(source)
        self._has_names = None
        self._starts.append(len(self._texts))

    def add(self, line: int, text: str, labels: Iterable[str], row_name: str | None) -> None:
        """Add a row; a repeated label counts once."""
        self._add_labels(line, dict.fromkeys(labels), row_name)
        self._texts.append(text)

    def corpus(self, tell: bool = True) -> Corpus:
        """The corpus of all rows, with sorted label names; with `tell`, a warning if rows should be merged."""
        labels, names = self._counts()
        kept = self._names_of_all_files() if self._names else None
        corpus = Corpus(labels=labels, label_names=names, texts=self._texts, row_names=kept)
        self.told_to_merge = tell and _tell_rows_to_merge(self._source, corpus)
        return corpus

    def _names_of_all_files(self) -> list[str] | None:
        """The ids, if all rows have one and no id is in two files."""
        if len(self._names) != len(self._texts):
            warnings.warn("some of the files have no ids; the ids of the others are dropped", stacklevel=4)
            return None
        if self._starts[-1]:
            for first, other in _repeated(self._names):
                owners = np.searchsorted(self._starts, [first, other], side="right")
                if owners[0] != owners[1]:
                    warnings.warn(
                        f"the id {self._names[first]!r:.40} is in several files; ids are dropped. If rows with the "
                        f"same id are one row, set merge_by='id' (--merge-by id on the command line)",
                        stacklevel=4,
                    )
                    return None
        return self._names


def _repeated(names: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Pairs of rows with the same name, by the second one; needs a few numbers per row of memory."""
    hashes = np.fromiter(map(hash, names), np.int64, len(names))
    order = np.argsort(hashes, kind="stable")
    places = np.flatnonzero(hashes[order[1:]] == hashes[order[:-1]])
    for place in places[np.argsort(order[places + 1])].tolist():
        first, other = int(order[place]), int(order[place + 1])
        if names[first] == names[other]:
            yield first, other


def _tell_rows_to_merge(source: str, corpus: Corpus) -> bool:
    """Warn of rows that repeat the id and the text of another row, with other labels, if there are any."""
    names, texts, indptr, indices = corpus.row_names, corpus.texts, corpus.labels.indptr, corpus.labels.indices
    if names is None or texts is None:
        return False
    count, example = 0, ""
    for first, other in _repeated(names):
        labels = [indices[indptr[row] : indptr[row + 1]].tolist() for row in (first, other)]
        if texts[first] == texts[other] and labels[0] != labels[1]:
            count, example = count + 1, example or names[first]
    if count:
        rows = "1 row repeats" if count == 1 else f"{count:,} rows repeat"
        warnings.warn(
            f"{source}: {rows} the id and the text of another row, with other labels, for example {example!r:.40}. If "
            f"the file has a row for each label, set merge_by='id' (--merge-by id on the command line)",
            stacklevel=4,
        )
    return count > 0


class GroupCollector(_LabelCollector):
    """Collects groups of texts."""

    _what = "group"

    def __init__(self, source: PathName | IO[bytes]) -> None:
        super().__init__(source)
        self._groups = array("q")

    def add(self, line: int, texts: Sequence[str], labels: Iterable[str], group_name: str | None) -> None:
        """Add a group; a repeated label counts as often."""
        self._groups.extend([len(self._indptr) - 1] * len(texts))
        self._add_labels(line, labels, group_name)
        self._texts.extend(texts)

    def corpus(self) -> GroupedCorpus:
        """The corpus of all groups, with sorted label names."""
        counts, names = self._counts()
        return GroupedCorpus(
            groups=memberships(np.array(self._groups, dtype=np.int64), counts.shape[0]),
            group_labels=counts,
            label_names=names,
            texts=self._texts,
            group_names=self._names or None,
        )


def corpus_from_file(path: PathName, **parts: Any) -> Corpus:
    """Build a corpus from the content of a file; contradictions become errors of the file."""
    try:
        return Corpus(**parts)
    except InvalidInput as error:
        raise DataFormatError(path, None, str(error)) from None


def check_width(path: PathName, width: int) -> None:
    """Raise `NotEnoughMemory` if one counter per column of a file does not fit into memory.

    A sparse matrix stores nothing for empty columns, so a small file can claim any number of them.
    """
    plan = {"counts": 8 * width}
    MemoryPlan(f"counting {width} columns of {path}", plan, "Is this the right file?").check()
