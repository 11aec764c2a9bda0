"""`iter_batches`: the rows of files of any size, some thousands at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from longtail.data.corpus import Corpus
from longtail.data.files import format_of, read_corpus
from longtail.data.formats.delimited import iter_delimited
from longtail.data.formats.jsonl import Record, iter_jsonl
from longtail.data.formats.repository import iter_repository
from longtail.data.formats.rows import RowCollector
from longtail.errors import InvalidInput
from longtail.files import PathName
from longtail.parallel import split

_CHARACTERS = 2**25  # of the texts of a batch, at least
_WITH_TEXTS = ("jsonl", "delimited")


class Batch(NamedTuple):
    """Some rows of a file.

    Parameters
    ----------
    rows : list of str, or csr_array
        Texts or features.
    labels : csr_array
        A column for each of `label_names`.
    label_names : sequence of str
        Those of these rows, sorted; or, if the labels are numbered, those of the whole file.
    numbered : bool
        Whether the file gives each label a number, its column.
    row_names : sequence of str or None
    """

    rows: Any
    labels: Any
    label_names: Sequence[str]
    numbered: bool
    row_names: Sequence[str] | None


def iter_batches(path: PathName, format: str | None = None, n_rows: int = 2**16, **options: Any) -> Iterator[Batch]:
    """Yield the rows of a file in batches of at most `n_rows`; the parameters are those of `read_corpus`.

    JSON lines, delimited files and the repository text format are streamed; other files are read whole.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "notes.csv"
    >>> _ = path.write_text("text,labels\\na red apple,fruit\\na blue sky,sky\\n")
    >>> [(batch.rows, batch.label_names) for batch in iter_batches(path, n_rows=1)]
    [(['a red apple'], ('fruit',)), (['a blue sky'], ('sky',))]
    """
    chosen = format_of(path) if format is None else format
    if chosen in _WITH_TEXTS:
        yield from _collected(path, iter_records(path, chosen, **options), n_rows)
    elif chosen == "repository":
        for features, labels, names in iter_repository(path, **options):
            for block in split(features.shape[0], n_rows):
                yield Batch(features[block], labels[block], names, True, None)
    else:
        corpus = read_corpus(path, format, **options)
        for block in split(corpus.n_rows, n_rows):
            part = corpus.select(np.arange(block.start, block.stop))
            yield Batch(part.features, part.labels, corpus.label_names, True, part.row_names)


def iter_records(path: PathName, format: str | None = None, **options: Any) -> Iterator[Record]:
    """Yield the rows of a file of texts one at a time; the parameters are those of `read_corpus`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "notes.csv"
    >>> _ = path.write_text("text,labels\\na red apple,fruit\\n")
    >>> list(iter_records(path))
    [Record(line=2, text='a red apple', labels=('fruit',), row_name=None)]
    """
    chosen = format_of(path) if format is None else format
    if chosen == "jsonl":
        return iter_jsonl(path, **options)
    if chosen == "delimited":
        rows = iter_delimited(path, **options)
        return (Record(row.line, row.text, tuple(row.labels), row.row_name) for row in rows)
    raise InvalidInput(f"{path} is not a file of texts; its format is {chosen}")


def _collected(path: PathName, records: Iterable[Record], n_rows: int) -> Iterator[Batch]:
    rows, count, characters = RowCollector(path), 0, 0
    for line, text, labels, row_name in records:
        rows.add(line, text, labels, row_name)
        count, characters = count + 1, characters + len(text)
        if count == n_rows or characters >= _CHARACTERS:
            yield _texts(rows.corpus())
            rows, count, characters = RowCollector(path), 0, 0
    if count:
        yield _texts(rows.corpus())


def _texts(corpus: Corpus) -> Batch:
    return Batch(corpus.texts, corpus.labels, corpus.label_names, False, corpus.row_names)
