"""`Rows`: the rows to check, as a stream of texts or of batches of features."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from longtail.checking.finding import Example
from longtail.data import (
    TEXT_FORMATS,
    Batch,
    Corpus,
    Data,
    Record,
    Source,
    format_of,
    iter_batches,
    iter_records,
    sources_of,
)
from longtail.parallel import split

_WITH_LINES = ("jsonl", "delimited")
_ROWS_AT_ONCE = 2**16
# Of several files, the places in each next one are this much larger.
_PLACES = 2**40


@dataclass(frozen=True)
class Rows:
    """Rows of texts or of features; they can be read once.

    Parameters
    ----------
    texts : iterable of Record or None
    features : iterable of Batch or None
        All with the same label names. One of the two is given.
    unit : {"line", "row"}
        What `Record.line` counts.
    files : sequence of str
        The names of the files; empty if the rows are in no file, or merged from several.
    """

    texts: Iterable[Record] | None = None
    features: Iterable[Batch] | None = None
    unit: Literal["line", "row"] = "row"
    files: Sequence[str] = ()

    def located(self, example: Example, always: bool = False) -> Example:
        """The example with the files of its places, if there are several; or `always`, if there are any."""
        if len(self.files) < 2 - always or example.files:
            return example
        found = [divmod(place, _PLACES) for place in example.places]
        return replace(
            example, places=tuple(line for _, line in found), files=tuple(self.files[number] for number, _ in found)
        )

    def named(self, place: int) -> str:
        """A place in words: a line or row, with its file if there are several."""
        number, line = divmod(place, _PLACES)
        return f"{self.files[number]}:{line}" if len(self.files) > 1 else f"{self.unit} {line}"


def rows_of_file(data: Data, format: str | None = None, **options: Any) -> Rows:
    """The rows of a file, or of several files of texts; the parameters are those of `longtail.data.read_corpus`.

    Texts are read one at a time, and features in the repository format some thousands of rows at a time. Rows that are
    merged from several files are counted as they come.
    """
    if not isinstance(data, str | os.PathLike | Source):
        return _rows_of_files(data, format, **options)
    path, chosen = (data.path, data.format) if isinstance(data, Source) else (data, format)
    chosen = format_of(path) if chosen is None else chosen
    files = (Path(path).name,)
    if chosen in TEXT_FORMATS:
        return Rows(iter_records(data, format, **options), unit=_unit(chosen), files=files)
    return Rows(features=iter_batches(data, format, **options), files=files)


def _rows_of_files(data: Data, format: str | None, merge_by: str | None = None, **options: Any) -> Rows:
    sources = sources_of(data, format, options)
    if merge_by is not None:
        merged = enumerate(iter_records(sources, merge_by=merge_by), start=1)
        return Rows(record._replace(line=row) for row, record in merged)
    records = (
        record._replace(line=number * _PLACES + record.line)
        for number, source in enumerate(sources)
        for record in iter_records(source)
    )
    names = [Path(source.path).name for source in sources]
    if len(set(names)) < len(names):
        names = [str(source.path) for source in sources]
    units = {_unit(source.format or format_of(source.path)) for source in sources}
    return Rows(records, unit="row" if "row" in units else "line", files=names)


def _unit(format: str | None) -> Literal["line", "row"]:
    return "line" if format in _WITH_LINES else "row"


def rows_of_corpus(corpus: Corpus) -> Rows:
    """The rows of a corpus: its texts or, if it has none, its features."""
    return Rows(features=_batches(corpus)) if corpus.texts is None else Rows(texts=_records(corpus))


def _records(corpus: Corpus) -> Iterator[Record]:
    names, indptr, indices = corpus.label_names, corpus.labels.indptr, corpus.labels.indices
    for row, text in enumerate(corpus.texts or ()):
        labels = tuple(names[label] for label in indices[indptr[row] : indptr[row + 1]].tolist())
        yield Record(row + 1, text, labels, None if corpus.row_names is None else corpus.row_names[row])


def _batches(corpus: Corpus) -> Iterator[Batch]:
    for block in split(corpus.n_rows, _ROWS_AT_ONCE):
        part = np.arange(block.start, block.stop)
        names = None if corpus.row_names is None else corpus.row_names[block]
        yield Batch(corpus.features[part], corpus.labels[part], corpus.label_names, True, names)
