"""JSON lines of groups: one object per line, ``{"texts": ["...", "..."], "labels": ["...", "..."]}``.

A label that is listed c times counts c times. An ``id`` (text or whole number) names the group.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any, NamedTuple

import numpy as np
from scipy import sparse

from longtail.data.formats.json_records import (
    ID_KEY,
    FaultError,
    Unknown,
    as_line,
    check_unknown,
    id_of,
    labels_of,
    parse_object,
    read_records,
    texts_of,
)
from longtail.data.formats.rows import GroupCollector
from longtail.data.grouped import GroupedCorpus
from longtail.data.streams import LINE_LIMIT, read_text_lines
from longtail.errors import DataFormatError, InvalidInput
from longtail.files import PathName, writing

LISTED_LIMIT = 2**20  # maximum number of labels of a group, with repetitions


class GroupRecord(NamedTuple):
    """One line of a JSON lines file of groups.

    Parameters
    ----------
    line : int
        The line number, counted from 1.
    texts : tuple of str
        The members of the group.
    labels : tuple of str
        In the order of the file, with repetitions.
    group_name : str or None
        The line's ``id``.
    """

    line: int
    texts: tuple[str, ...]
    labels: tuple[str, ...]
    group_name: str | None


def iter_grouped_jsonl(
    source: PathName | IO[bytes],
    *,
    texts_key: str = "texts",
    labels_key: str = "labels",
    unknown: Unknown = "report",
    line_limit: int = LINE_LIMIT,
) -> Iterator[GroupRecord]:
    """Yield the groups of a JSON lines file one at a time; for the parameters see `read_grouped_jsonl`.

    Examples
    --------
    >>> import io
    >>> [group] = iter_grouped_jsonl(io.BytesIO(b'{"texts": ["a red apple", "grey sky"], "labels": ["fruit"]}'))
    >>> group.texts, group.labels
    (('a red apple', 'grey sky'), ('fruit',))
    """
    check_unknown(unknown)

    def build(number: int, found: dict[str, Any]) -> GroupRecord:
        texts, labels = texts_of(found, texts_key), labels_of(found, labels_key, required=True)
        return GroupRecord(number, tuple(texts), tuple(labels), id_of(found))

    return read_records(source, build, {texts_key, labels_key, ID_KEY}, unknown, line_limit)


def read_grouped_jsonl(
    source: PathName | IO[bytes],
    *,
    texts_key: str = "texts",
    labels_key: str = "labels",
    unknown: Unknown = "report",
    line_limit: int = LINE_LIMIT,
) -> GroupedCorpus:
    """Read groups of texts and their labels from JSON lines, plain or gzipped.

    Parameters
    ----------
    source : str, path-like or binary stream
        ``sys.stdin.buffer`` for standard input.
    texts_key, labels_key : str
        The keys of the list of texts and of the list of label names. Both are required; the lists can be empty.
    unknown : {"report", "ignore", "error"}
        What to do about keys other than these and ``id``: warn once at the end, ignore them, or stop.
    line_limit : int
        Maximum number of bytes of a line, which is a whole group.

    Returns
    -------
    corpus : GroupedCorpus
        Rows in the order of the file, with sorted label names.

    Examples
    --------
    >>> import io
    >>> corpus = read_grouped_jsonl(io.BytesIO(b'{"texts": ["red sky", "red rose"], "labels": ["red", "red"]}'))
    >>> corpus.texts, corpus.group_labels.toarray().tolist()
    (['red sky', 'red rose'], [[2]])
    """
    groups = GroupCollector(source)
    for record in iter_grouped_jsonl(
        source, texts_key=texts_key, labels_key=labels_key, unknown=unknown, line_limit=line_limit
    ):
        groups.add(*record)
    return groups.corpus()


def holds_groups(path: PathName, texts_key: str | None = None) -> bool:
    """Whether the first object of a JSON lines file is a group rather than a row.

    A group has the key ``texts`` and no key ``text`` or, if you name another key, a list under that key. An unreadable
    line is not a group; the reader of rows reports what is wrong with it.
    """
    try:
        found = parse_object(next((line for _, line in read_text_lines(path) if not line.isspace()), ""))
    except (FaultError, DataFormatError):
        return False
    if texts_key is None:
        return "texts" in found and "text" not in found
    return isinstance(found.get(texts_key), list)


def write_grouped_jsonl(
    corpus: GroupedCorpus, path: PathName, *, texts_key: str = "texts", labels_key: str = "labels"
) -> None:
    """Write groups as JSON lines, gzipped if the name ends in ``.gz``; a label with count c is listed c times.

    Every text must be in exactly one group. Row names are not written.
    """
    if corpus.texts is None:
        raise InvalidInput("JSON lines need texts, but the corpus has only features; use a groups file: write_groups")
    homes = np.diff(corpus.groups.indptr)
    if (homes != 1).any():
        row = int(np.argmax(homes != 1))
        raise InvalidInput(
            f"row {row} is in {homes[row]} groups, but JSON lines have each text once; use a groups file: write_groups"
        )
    members, counts = sparse.csr_array(corpus.groups.T), corpus.group_labels
    few = np.minimum(counts.data, LISTED_LIMIT + 1)  # so that sums cannot overflow
    listed = np.diff(np.concatenate([[0], np.cumsum(few)])[counts.indptr])
    if (listed > LISTED_LIMIT).any():
        group = int(np.argmax(listed > LISTED_LIMIT))
        raise InvalidInput(
            f"{corpus.describe_group(group)} has more labels, with repetitions, than the {LISTED_LIMIT:,} that a line "
            f"can list; use a groups file: write_groups"
        )
    with writing(path) as stream:
        for group in range(corpus.n_groups):
            record: dict[str, Any] = {} if corpus.group_names is None else {ID_KEY: corpus.group_names[group]}
            record[texts_key] = [
                corpus.texts[row] for row in members.indices[slice(*members.indptr[group : group + 2])]
            ]
            pairs = slice(*counts.indptr[group : group + 2])
            record[labels_key] = [
                corpus.label_names[label] for label in np.repeat(counts.indices[pairs], counts.data[pairs]).tolist()
            ]
            stream.write(as_line(record))
