"""Rows of texts and label names, gathered one at a time into a corpus."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import sparse

from longtail.data.corpus import Corpus
from longtail.data.streams import PathName
from longtail.errors import DataFormatError, InvalidInput


class RowCollector:
    """Gathers rows; holds a number per label of a row and each name once, never lists of lists."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._row_names: list[str] = []
        self._ids: dict[str, int] = {}
        self._indices = array("q")
        self._indptr = array("q", [0])

    def add(self, text: str, labels: Iterable[str], row_name: str | None) -> str | None:
        """Add a row; a label given twice counts once. Returns what is wrong with the row's name, if anything is."""
        named = row_name is not None
        if self._texts and named != bool(self._row_names):
            return "the row has a name, but earlier rows have none" if named else "the row has no name; earlier rows do"
        ids = self._ids
        self._indices.extend(dict.fromkeys(ids.setdefault(name, len(ids)) for name in labels))
        self._indptr.append(len(self._indices))
        self._texts.append(text)
        if row_name is not None:
            self._row_names.append(row_name)
        return None

    def corpus(self) -> Corpus:
        """The corpus of all rows, its labels in the order of their names."""
        names = sorted(self._ids)
        position = np.empty(len(names), dtype=np.int64)
        position[[self._ids[name] for name in names]] = np.arange(len(names))
        indices = position[np.frombuffer(self._indices, dtype=np.int64)] if self._indices else np.zeros(0, np.int64)
        labels: Any = sparse.csr_array(
            (np.ones(len(indices), dtype=np.float32), indices, np.array(self._indptr, dtype=np.int64)),
            shape=(len(self._texts), len(names)),
        )
        labels.sort_indices()
        return Corpus(labels=labels, label_names=names, texts=self._texts, row_names=self._row_names or None)


def corpus_from_file(path: PathName, **parts: Any) -> Corpus:
    """Build a corpus of what a file holds; contradictions in it are the file's."""
    try:
        return Corpus(**parts)
    except InvalidInput as error:
        raise DataFormatError(path, None, str(error)) from None
