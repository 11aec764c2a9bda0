"""`iter_batches`: the rows of files of any size, some thousands at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from longtail.data.corpus import Corpus
from longtail.data.files import read_corpus
from longtail.data.formats.jsonl import Record
from longtail.data.formats.repository import iter_repository
from longtail.data.formats.rows import RowCollector
from longtail.data.merging import check_merge_by, merge_records
from longtail.data.sources import TEXT_FORMATS, Data, Source, format_of, records_of, sources_of
from longtail.files import PathName
from longtail.parallel import split

_CHARACTERS = 2**25  # of the texts of a batch, at least


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


def iter_batches(
    data: Data, format: str | None = None, n_rows: int = 2**16, *, merge_by: str | None = None, **options: Any
) -> Iterator[Batch]:
    """Yield the rows of files in batches of at most `n_rows`; the other parameters are those of `read_corpus`.

    Files of texts and the repository text format are streamed; other files are read whole. A batch has rows of one
    file, except where rows are merged.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "notes.csv"
    >>> _ = path.write_text("text,labels\\na red apple,fruit\\na blue sky,sky\\n")
    >>> [(batch.rows, batch.label_names) for batch in iter_batches(path, n_rows=1)]
    [(['a red apple'], ('fruit',)), (['a blue sky'], ('sky',))]
    """
    sources = sources_of(data, format, options)
    if merge_by is not None:
        yield from _collected(sources[0].path, iter_records(sources, merge_by=merge_by), n_rows)
        return
    for source in sources:
        yield from _batches_of(source, n_rows)


def _batches_of(source: Source, n_rows: int) -> Iterator[Batch]:
    chosen = format_of(source.path) if source.format is None else source.format
    if chosen in TEXT_FORMATS:
        yield from _collected(source.path, records_of(source), n_rows)
    elif chosen == "repository":
        for features, labels, names in iter_repository(source.path, **source.options):
            for block in split(features.shape[0], n_rows):
                yield Batch(features[block], labels[block], names, True, None)
    else:
        corpus = read_corpus(source)
        for block in split(corpus.n_rows, n_rows):
            part = corpus.select(np.arange(block.start, block.stop))
            yield Batch(part.features, part.labels, corpus.label_names, True, part.row_names)


def iter_records(
    data: Data, format: str | None = None, *, merge_by: str | None = None, **options: Any
) -> Iterator[Record]:
    """Yield the rows of files of texts one at a time; the parameters are those of `read_corpus`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "notes.csv"
    >>> _ = path.write_text("text,labels\\na red apple,fruit\\n")
    >>> list(iter_records(path))
    [Record(line=2, text='a red apple', labels=('fruit',), row_name=None)]
    """
    check_merge_by(merge_by)
    sources = sources_of(data, format, options)
    if merge_by is not None:
        return merge_records((str(source.path), record) for source in sources for record in records_of(source))
    return records_of(sources[0]) if len(sources) == 1 else chain.from_iterable(map(records_of, sources))


def _collected(path: PathName, records: Iterable[Record], n_rows: int) -> Iterator[Batch]:
    rows, count, characters, told = RowCollector(path), 0, 0, False
    for line, text, labels, row_name in records:
        rows.add(line, text, labels, row_name)
        count, characters = count + 1, characters + len(text)
        if count == n_rows or characters >= _CHARACTERS:
            yield _texts(rows.corpus(tell=not told))
            told = told or rows.told_to_merge
            rows, count, characters = RowCollector(path), 0, 0
    if count:
        yield _texts(rows.corpus(tell=not told))


def _texts(corpus: Corpus) -> Batch:
    return Batch(corpus.texts, corpus.labels, corpus.label_names, False, corpus.row_names)
