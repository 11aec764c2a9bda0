"""JSON lines: one object per line, ``{"text": "...", "labels": ["...", "..."]}``.

An ``id`` (text or whole number) names the row. A row with one label may have ``"label": "..."`` instead of ``labels``.
Blank lines are skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any, NamedTuple

from longtail.data.corpus import Corpus
from longtail.data.formats.json_records import (
    ID_KEY,
    LABEL_KEY,
    LABELS_KEY,
    Unknown,
    as_line,
    check_unknown,
    id_of,
    joined_text_of,
    labels_of,
    read_records,
    text_of,
)
from longtail.data.formats.rows import RowCollector
from longtail.data.formats.tables import columns_in
from longtail.data.streams import LINE_LIMIT
from longtail.errors import InvalidInput
from longtail.files import PathName, writing


class Record(NamedTuple):
    """One line of a JSON lines file.

    Parameters
    ----------
    line : int
        The line number, counted from 1.
    text : str
    labels : tuple of str
        Without repetitions, in the order of the file.
    row_name : str or None
        The line's ``id``.
    """

    line: int
    text: str
    labels: tuple[str, ...]
    row_name: str | None


def iter_jsonl(
    source: PathName | IO[bytes],
    *,
    text_key: str | Sequence[str] = "text",
    labels_key: str | None = "labels",
    id_key: str | None = None,
    unknown: Unknown = "report",
    require_labels: bool = True,
    encoding: str | None = None,
    line_limit: int = LINE_LIMIT,
) -> Iterator[Record]:
    """Yield the records of a JSON lines file one at a time; for the parameters see `read_jsonl`.

    Examples
    --------
    >>> import io
    >>> [record] = iter_jsonl(io.BytesIO(b'{"text": "a red apple"}'), require_labels=False)
    >>> record.text, record.labels
    ('a red apple', ())
    """
    return (
        record
        for record, _ in iter_jsonl_objects(
            source,
            text_key=text_key,
            labels_key=labels_key,
            id_key=id_key,
            unknown=unknown,
            require_labels=require_labels,
            encoding=encoding,
            line_limit=line_limit,
        )
    )


def iter_jsonl_objects(
    source: PathName | IO[bytes],
    *,
    text_key: str | Sequence[str] = "text",
    labels_key: str | None = "labels",
    id_key: str | None = None,
    unknown: Unknown = "report",
    require_labels: bool = True,
    encoding: str | None = None,
    line_limit: int = LINE_LIMIT,
) -> Iterator[tuple[Record, dict[str, Any]]]:
    """Like `iter_jsonl`, with the object of each line as it is."""
    check_unknown(unknown)
    keys, text_in = text_reader(text_key)

    def build(number: int, found: dict[str, Any]) -> tuple[Record, dict[str, Any]]:
        labels = [] if labels_key is None else labels_of(found, labels_key, require_labels)
        return Record(number, text_in(found), tuple(dict.fromkeys(labels)), id_of(found, id_key)), found

    of_labels = {LABELS_KEY, LABEL_KEY} if labels_key in (None, LABELS_KEY) else {labels_key}
    known = {*keys, id_key or ID_KEY, *filter(None, of_labels)}
    return read_records(source, build, known, unknown, line_limit, encoding)


def text_reader(text_key: str | Sequence[str]) -> tuple[set[str], Callable[[dict[str, Any]], str]]:
    """The keys that a text can be under, and what reads the text of a line: of one key, or of several joined."""
    keys = [str(key) for key in columns_in(text_key)]
    whole = text_key if isinstance(text_key, str) else keys[0]

    def text_in(found: dict[str, Any]) -> str:
        return joined_text_of(found, keys) if len(keys) > 1 and whole not in found else text_of(found, whole)

    return {*keys, whole}, text_in


def read_jsonl(
    source: PathName | IO[bytes],
    *,
    text_key: str | Sequence[str] = "text",
    labels_key: str | None = "labels",
    id_key: str | None = None,
    unknown: Unknown = "report",
    require_labels: bool = True,
    encoding: str | None = None,
    line_limit: int = LINE_LIMIT,
) -> Corpus:
    """Read texts and their labels from JSON lines, plain or gzipped.

    Parameters
    ----------
    source : str, path-like or binary stream
        ``sys.stdin.buffer`` for standard input.
    text_key, labels_key : str
        The keys of the text and of the list of label names; ``labels_key=None`` reads no labels, for texts to be
        tagged. A list of keys, or a string such as ``"title,abstract"``, joins several texts by line ends; those that
        are missing, null or empty are left out. Instead of ``labels``, a line may have ``label``: one name or whole
        number. Under another key, too, a label may stand by itself.
    id_key : str or None
        The key of the id; the default is ``id``, which can be missing.
    unknown : {"report", "ignore", "error"}
        What to do about keys other than these and ``id``: warn once at the end, ignore them, or stop.
    require_labels : bool
        Whether a line without labels is an error.
    encoding : str or None
        For example ``"cp1252"``; the default is UTF-8. A byte-order mark in the file counts more.
    line_limit : int
        Maximum number of bytes of a line.

    Returns
    -------
    corpus : Corpus
        With sorted label names.

    Examples
    --------
    >>> import io
    >>> corpus = read_jsonl(io.BytesIO(b'{"text": "a red apple", "labels": ["fruit", "red"], "id": 7}'))
    >>> corpus.texts, corpus.label_names, corpus.row_names
    (['a red apple'], ('fruit', 'red'), ['7'])
    """
    rows = RowCollector(source)
    records = iter_jsonl(
        source,
        text_key=text_key,
        labels_key=labels_key,
        id_key=id_key,
        unknown=unknown,
        require_labels=require_labels,
        encoding=encoding,
        line_limit=line_limit,
    )
    for record in records:
        rows.add(*record)
    return rows.corpus()


def write_jsonl(corpus: Corpus, path: PathName, *, text_key: str = "text", labels_key: str = "labels") -> None:
    """Write texts, label names and row names as JSON lines, gzipped if the name ends in ``.gz``."""
    if corpus.texts is None:
        raise InvalidInput("JSON lines need texts, but the corpus has only features; use the repository text format")
    names, indptr, indices = corpus.label_names, corpus.labels.indptr, corpus.labels.indices
    with writing(path) as stream:
        for row, text in enumerate(corpus.texts):
            record: dict[str, Any] = {} if corpus.row_names is None else {ID_KEY: corpus.row_names[row]}
            record[text_key] = text
            record[labels_key] = [names[label] for label in indices[indptr[row] : indptr[row + 1]]]
            stream.write(as_line(record))
