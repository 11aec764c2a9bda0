"""`Rows`: the rows to check, as a stream of texts or of batches of features."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from longtail.data import TEXT_FORMATS, Batch, Corpus, Data, Record, Source, format_of, iter_batches, iter_records
from longtail.parallel import split

_WITH_LINES = ("jsonl", "delimited")
_ROWS_AT_ONCE = 2**16


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
    """

    texts: Iterable[Record] | None = None
    features: Iterable[Batch] | None = None
    unit: Literal["line", "row"] = "row"


def rows_of_file(data: Data, format: str | None = None, **options: Any) -> Rows:
    """The rows of a file, or of several files of texts; the parameters are those of `longtail.data.read_corpus`.

    Texts are read one at a time, and features in the repository format some thousands of rows at a time. Rows of
    several files are counted from the first row of the first file.
    """
    if not isinstance(data, str | os.PathLike | Source):
        records = iter_records(data, format, **options)
        return Rows(texts=(record._replace(line=row) for row, record in enumerate(records, start=1)))
    path, chosen = (data.path, data.format) if isinstance(data, Source) else (data, format)
    chosen = format_of(path) if chosen is None else chosen
    if chosen in TEXT_FORMATS:
        return Rows(texts=iter_records(data, format, **options), unit="line" if chosen in _WITH_LINES else "row")
    return Rows(features=iter_batches(data, format, **options))


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
