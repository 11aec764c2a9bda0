"""`Rows`: the rows to check, as a stream of texts or of batches of features."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from longtail.data import Batch, Corpus, Record, format_of, iter_batches, iter_records
from longtail.files import PathName
from longtail.parallel import split

_WITH_TEXTS = ("jsonl", "delimited")
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


def rows_of_file(path: PathName, format: str | None = None, **options: Any) -> Rows:
    """The rows of a file; the parameters are those of `longtail.data.read_corpus`.

    Texts are read one at a time, and features in the repository format some thousands of rows at a time.
    """
    chosen = format_of(path) if format is None else format
    if chosen in _WITH_TEXTS:
        return Rows(texts=iter_records(path, chosen, **options), unit="line")
    return Rows(features=iter_batches(path, format, **options))


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
