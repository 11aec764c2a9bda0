"""The groups file: a header ``groups rows labels``, then a line ``l1:c1,l2 r1 r2 r3`` per group.

It groups the rows of another file: the labels of a group with their counts (1 if there is none), then its rows. Numbers
start at 0. A group without labels starts with a blank.
"""

from __future__ import annotations

import re
from array import array
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.data.corpus import Corpus
from longtail.data.formats.label_names import LabelNames, resolve_label_names, write_label_names
from longtail.data.grouped import GroupedCorpus
from longtail.data.streams import read_lines, shown
from longtail.errors import DataFormatError
from longtail.files import PathName, writing
from longtail.progress import task

# A group can have a million rows.
_LINE_LIMIT = 2**28
_NUMBER = rb"[0-9]{1,18}"
_HEADER = re.compile(rb"(%b) (%b) (%b)[ \t]*\r?\n?" % (_NUMBER, _NUMBER, _NUMBER))
# Possessive, so that no line can make the search backtrack.
_LABEL = re.compile(rb"%b(?::%b)?+" % (_NUMBER, _NUMBER))
_LABELS = re.compile(rb"(?:%b(?:,%b)*+)?+" % (_LABEL.pattern, _LABEL.pattern))
_ROWS = re.compile(rb"(?: ++%b)*+ *+" % _NUMBER)


def read_groups(path: PathName, rows: Corpus, *, label_names: LabelNames = None) -> GroupedCorpus:
    """Read a groups file, plain or gzipped, and put rows into its groups.

    Parameters
    ----------
    path : str or path-like
    rows : Corpus
        The rows that the file refers to by number. Its labels are ignored.
    label_names : sequence of str, path-like or None
        See `read_repository`.

    Returns
    -------
    corpus : GroupedCorpus

    Raises
    ------
    DataFormatError
        If the file contradicts the format, its header or the rows.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "groups.txt"
    >>> _ = path.write_text("2 3 2\\n0,1:2 0 1\\n1 2\\n")
    >>> rows = Corpus(labels=[[], [], []], label_names=[], features=[[1.0], [2.0], [3.0]])
    >>> corpus = read_groups(path, rows)
    >>> corpus.groups.toarray().astype(int).tolist(), corpus.group_labels.toarray().tolist()
    ([[1, 0], [1, 0], [0, 1]], [[1, 2], [0, 1]])
    """
    reader = _Reader(path)
    for number, line in read_lines(path, _LINE_LIMIT):
        reader.feed(number, line)
    memberships, counts = reader.finish(rows.n_rows)
    return GroupedCorpus(
        groups=memberships,
        group_labels=counts,
        label_names=resolve_label_names(label_names, path, counts.shape[1]),
        texts=rows.texts,
        features=rows.features,
        row_names=rows.row_names,
    )


def looks_like_groups(path: PathName) -> bool:
    """Whether a file starts like a groups file: with a header, then labels and at least one row."""
    try:
        first = list(islice(read_lines(path, _LINE_LIMIT), 2))
    except DataFormatError:
        return False
    if len(first) < 2 or not _HEADER.fullmatch(first[0][1]):
        return False
    labels, _, rows = first[1][1].rstrip(b"\r\n").partition(b" ")
    return bool(rows.strip() and _LABELS.fullmatch(labels) and _ROWS.fullmatch(b" " + rows))


class _Reader:
    """Reads the header and the groups line by line; checks of all groups at once come at the end."""

    def __init__(self, path: PathName) -> None:
        self.path = path
        self.sizes: tuple[int, int, int] | None = None
        self.ended: int | None = None
        self.members, self.labels, self.counts = array("q"), array("q"), array("q")
        self.member_ends, self.label_ends = array("q", [0]), array("q", [0])

    def fail(self, line: int | None, reason: str) -> NoReturn:
        raise DataFormatError(self.path, line, reason)

    def feed(self, number: int, line: bytes) -> None:
        if self.sizes is None:
            found = _HEADER.fullmatch(line)
            if found is None:
                self.fail(number, f"expected the header 'groups rows labels', found {shown(line)}")
            self.sizes = int(found[1]), int(found[2]), int(found[3])
            return
        content = line.rstrip(b"\r\n")
        if not content:
            self.ended = self.ended or number
            return
        if self.ended is not None:
            self.fail(self.ended, "an empty line; write a group without labels and rows as a line with one blank")
        if len(self.label_ends) > self.sizes[0]:
            self.fail(number, f"too many lines: the header says {self.sizes[0]} groups")
        self._group(number, content)

    def _group(self, number: int, content: bytes) -> None:
        labels, _, _ = content.partition(b" ")
        rest = content[len(labels) :]
        if not _LABELS.fullmatch(labels):
            bad = next(label for label in labels.split(b",") if not _LABEL.fullmatch(label))
            self.fail(number, f"{shown(bad)} is not a label; expected labels such as 3 or 3:2, separated by commas")
        if not _ROWS.fullmatch(rest):
            bad = next(row for row in rest.split(b" ") if row and not re.fullmatch(_NUMBER, row))
            hint = "; is it a file of rows rather than of groups?" if b":" in bad else ""
            self.fail(number, f"{shown(bad)} is not a row; expected row numbers, separated by blanks{hint}")
        if labels:
            parts = [label.partition(b":") for label in labels.split(b",")]
            self.labels.extend(int(label) for label, _, _ in parts)
            self.counts.extend(int(count or b"1") for _, _, count in parts)
        self.members.extend(map(int, rest.split()))
        self.label_ends.append(len(self.labels))
        self.member_ends.append(len(self.members))

    def finish(self, n_rows: int) -> tuple[Any, Any]:
        """The memberships of rows and the labels of groups."""
        if self.sizes is None:
            self.fail(1, "the file is empty; expected the header 'groups rows labels'")
        n_groups, declared, n_labels = self.sizes
        if declared != n_rows:
            self.fail(
                1, f"the header says {declared} rows, but there are {n_rows}; is this the groups file of other data?"
            )
        found = len(self.label_ends) - 1
        if found != n_groups:
            self.fail(None, f"the header says {n_groups} groups, but the file has {found}; is it truncated?")
        labels = self._matrix(self.labels, self.label_ends, self.counts, n_labels, "label")
        members = self._matrix(self.members, self.member_ends, None, n_rows, "row")
        return sparse.csr_array(members.T), labels

    def _matrix(self, columns: array[int], ends: array[int], counts: array[int] | None, width: int, what: str) -> Any:
        indices, indptr = np.array(columns, dtype=np.int64), np.array(ends, dtype=np.int64)
        outside = np.flatnonzero(indices >= width)
        if len(outside):
            self.fail(
                _line(indptr, outside[0]),
                f"{what} {indices[outside[0]]} is too large: there are {width} {what}s, numbered from 0",
            )
        values = np.ones(len(indices), dtype=np.int64) if counts is None else np.array(counts, dtype=np.int64)
        none = np.flatnonzero(values == 0)
        if len(none):
            self.fail(_line(indptr, none[0]), f"{what} {indices[none[0]]} has the count 0; leave it out")
        matrix: Any = sparse.csr_array((values, indices, indptr), shape=(len(indptr) - 1, width))
        matrix.sort_indices()
        again = np.flatnonzero(matrix.indices[1:] == matrix.indices[:-1]) + 1
        again = again[~np.isin(again, indptr)]
        if len(again):
            hint = "" if counts is None else "; write its count as label:count"
            self.fail(_line(indptr, again[0]), f"{what} {matrix.indices[again[0]]} appears twice{hint}")
        return matrix


def _line(indptr: Array, entry: Any) -> int:
    """The line of an entry, which is that of its group."""
    return int(np.searchsorted(indptr, entry, side="right")) + 1


def write_groups(corpus: GroupedCorpus, path: PathName) -> None:
    """Write the rows and the labels of each group; gzipped if the name ends in ``.gz``.

    Label names that are not just the ids go to ``labels.txt`` beside it; if a different ``labels.txt`` exists, nothing
    is written. The format has no place for the rows themselves or for names of rows and groups.
    """
    write_label_names(corpus.label_names, path)
    members, counts = sparse.csr_array(corpus.groups.T), corpus.group_labels
    with writing(path) as stream, task(f"writing {Path(path).name}", total=corpus.n_groups) as advance:
        stream.write(f"{corpus.n_groups} {corpus.n_rows} {corpus.n_labels}\n".encode())
        for group in range(corpus.n_groups):
            pairs = slice(*counts.indptr[group : group + 2])
            labels = ",".join(map(_pair, counts.indices[pairs].tolist(), counts.data[pairs].tolist()))
            rows = members.indices[slice(*members.indptr[group : group + 2])].tolist()
            stream.write(f"{labels} {' '.join(map(str, rows))}\n".encode())
            advance(1)


def _pair(label: int, count: int) -> str:
    return str(label) if count == 1 else f"{label}:{count}"
