"""Comma- or tab-separated files: a column of texts, and a column of label names joined by a separator."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from longtail.data.corpus import Corpus
from longtail.data.formats.cells import kept_apart, restored
from longtail.data.formats.rows import RowCollector
from longtail.data.streams import LINE_LIMIT, read_text_lines, suffix_of
from longtail.errors import DataFormatError, InvalidInput
from longtail.files import PathName, writing

_ID_COLUMN = "id"
_LABELS_COLUMN, _LABEL_COLUMN = "labels", "label"
_BY_EXTENSION = {".tsv": "\t", ".tab": "\t"}
_CANDIDATES = ",\t;|"
_ROWS_WRITTEN_AT_ONCE = 1000
_NUMBER = re.compile(r"[0-9]{1,9}")

Column = str | int


def read_delimited(
    path: PathName,
    *,
    text: Column = "text",
    labels: Column | None = "labels",
    delimiter: str | None = None,
    label_separator: str = ";",
    header: bool = True,
    field_limit: int = LINE_LIMIT,
) -> Corpus:
    """Read texts and their labels from a comma- or tab-separated file, plain or gzipped.

    Parameters
    ----------
    path : str or path-like
    text, labels : str or int
        The columns of the text and of the label names, by name or by number from 0. A string such as ``"3"`` is a
        number if no column has that name. ``labels=None`` reads no labels. If there is a column ``label`` instead of
        ``labels``, each of its cells is one label.
    delimiter : str or None
        The character between columns. The default is a tab for ``.tsv`` and ``.tab``, else the most frequent of comma,
        tab, semicolon and bar in the first line.
    label_separator : str
        The separator between the labels of a row. Blanks around labels and empty labels are dropped.
    header : bool
        Whether the first line names the columns; a column named ``id`` then names the rows.
    field_limit : int
        Maximum number of characters of a field.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "notes.csv"
    >>> _ = path.write_text("text,labels\\na red apple,fruit; red\\na blue sky,sky\\n")
    >>> read_delimited(path).label_names
    ('fruit', 'red', 'sky')
    """
    rows = RowCollector(path)
    for row in iter_delimited(
        path,
        text=text,
        labels=labels,
        delimiter=delimiter,
        label_separator=label_separator,
        header=header,
        field_limit=field_limit,
    ):
        rows.add(row.line, row.text, row.labels, row.row_name)
    corpus = rows.corpus()
    doubt_separator(path, corpus.labels, corpus.label_names, label_separator)
    return corpus


class DelimitedRow(NamedTuple):
    """One record of a delimited file, the line on which it starts, and its fields as they are."""

    line: int
    text: str
    labels: list[str]
    row_name: str | None
    group: str | None
    fields: list[str]


def iter_delimited(
    path: PathName,
    *,
    text: Column = "text",
    labels: Column | None = "labels",
    group: Column | None = None,
    delimiter: str | None = None,
    label_separator: str = ";",
    header: bool = True,
    field_limit: int = LINE_LIMIT,
) -> Iterator[DelimitedRow]:
    """Yield the rows of a delimited file; `group` is a column, the other parameters are those of `read_delimited`."""
    _check_separators(delimiter, label_separator)
    if not header and not all(_is_number(column) for column in (text, labels, group) if column is not None):
        raise InvalidInput("without a header, columns have no names: give the numbers of the text and labels columns")
    columns: _Columns | None = None
    width = 0
    with fields_up_to(field_limit):
        for line, fields in records(path, delimiter, field_limit):
            if columns is None:
                width = len(fields)
                columns = _find_columns(path, line, fields if header else None, width, text, labels, group)
                if header:
                    continue
            if len(fields) != width:
                raise DataFormatError(path, line, f"{len(fields)} columns, expected {width} as in the first line")
            found = columns.labels_in(fields, label_separator)
            row_name = None if columns.row_name is None else fields[columns.row_name]
            owner = None if columns.group is None else fields[columns.group].strip()
            yield DelimitedRow(line, fields[columns.text], found, row_name, owner, fields)
    if columns is None:
        raise DataFormatError(path, 1, "the file is empty")


def doubt_separator(path: PathName, labels: Any, names: Sequence[str], separator: str) -> None:
    """Warn if no row has more than one label and most names look like lists with another separator."""
    if np.diff(labels.indptr).max(initial=0) > 1:
        return
    for other in {",", "|", ";", " / "} - {separator}:
        if 2 * sum(other in name for name in names) > len(names):
            warnings.warn(
                f"{path}: the label column has no {separator!r}, but most labels contain {other!r}. If it separates "
                f"labels, set label_separator={other!r} (--label-separator {other!r} on the command line)",
                stacklevel=3,
            )


def _check_separators(delimiter: str | None, label_separator: str) -> None:
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise InvalidInput(f"delimiter is {delimiter!r}; expected one character that is neither a quote nor a line end")
    if not label_separator:
        raise InvalidInput("label_separator is empty; give the character between the labels of a row")


def _split_labels(field: str, separator: str) -> list[str]:
    return [name for part in field.split(separator) if (name := part.strip())]


@contextmanager
def fields_up_to(limit: int) -> Iterator[None]:
    """Allow fields of `limit` characters; the csv module has one limit for the whole process."""
    before = csv.field_size_limit()
    csv.field_size_limit(max(before, limit))
    try:
        yield
    finally:
        csv.field_size_limit(before)


def records(path: PathName, delimiter: str | None, field_limit: int) -> Iterator[tuple[int, list[str]]]:
    """Records that are not blank, with the line on which each starts; disarmed cells as they were."""
    lines = (line for _, line in read_text_lines(path, field_limit))
    first = next(lines, None)
    if first is None:
        return

    def all_lines() -> Iterator[str]:
        yield first
        yield from lines

    reader = csv.reader(all_lines(), delimiter=delimiter or _guess_delimiter(path, first), strict=True)
    start = 1
    try:
        for fields in reader:
            if fields:
                yield start, [restored(field) for field in fields]
            start = reader.line_num + 1
    except csv.Error as error:
        raise DataFormatError(path, start, f"{error}; check the quotes of the row that starts here") from None


def _guess_delimiter(path: PathName, line: str) -> str:
    return _BY_EXTENSION.get(suffix_of(path)) or max(_CANDIDATES, key=line.count)


def _is_number(column: Column) -> bool:
    """Whether a column is given by its number, in ASCII digits."""
    return isinstance(column, Integral) or (isinstance(column, str) and _NUMBER.fullmatch(column) is not None)


class _Columns(NamedTuple):
    text: int
    labels: int | None
    group: int | None
    row_name: int | None
    one_label: bool  # the column of labels holds one label, which may contain the separator

    def labels_in(self, fields: list[str], separator: str) -> list[str]:
        """The labels of a row."""
        if self.labels is None:
            return []
        if self.one_label:
            return [name] if (name := fields[self.labels].strip()) else []
        return _split_labels(fields[self.labels], separator)


def _find_columns(
    path: PathName,
    line: int,
    names: list[str] | None,
    width: int,
    text: Column,
    labels: Column | None,
    group: Column | None,
) -> _Columns:
    def find(column: Column) -> int:
        places = [place for place, name in enumerate(names or []) if name.strip() == column]
        listed = ", ".join(repr(name) for name in names or [])
        if len(places) != 1 and _is_number(column):
            if not 0 <= int(column) < width:
                known = f": {listed}" if listed else ""
                raise DataFormatError(
                    path,
                    line,
                    f"no column {column}: there are {width}, numbered from 0{known}",
                    code="column_out_of_range",
                    column=column,
                )
            return int(column)
        if len(places) != 1:
            fault = f"{len(places)} columns are named" if places else "no column is named"
            raise DataFormatError(
                path,
                line,
                f"{fault} {column!r}; the columns are {listed}",
                code="ambiguous_column" if places else "missing_column",
                column=column,
                found=names or (),
                advice="choose the columns of text and labels",
            )
        return places[0]

    one_label = labels == _LABELS_COLUMN and _holds(names, _LABEL_COLUMN)
    if one_label and _holds(names, _LABELS_COLUMN):
        raise DataFormatError(
            path,
            line,
            f"there are the columns {_LABEL_COLUMN!r} and {_LABELS_COLUMN!r}; choose one by its number",
            code="label_and_labels",
        )
    if one_label:
        labels = _LABEL_COLUMN
    chosen = find(text), None if labels is None else find(labels), None if group is None else find(group)
    has_id = names is not None and _ID_COLUMN in names and names.index(_ID_COLUMN) not in chosen
    return _Columns(*chosen, find(_ID_COLUMN) if has_id else None, one_label)


def _holds(names: list[str] | None, column: str) -> bool:
    return any(name.strip() == column for name in names or ())


def write_delimited(
    corpus: Corpus,
    path: PathName,
    *,
    text: str = "text",
    labels: str = "labels",
    delimiter: str | None = None,
    label_separator: str = ";",
) -> None:
    """Write texts and label names (and row names as ``id``) as columns, gzipped if the name ends in ``.gz``."""
    if corpus.texts is None:
        raise InvalidInput("a delimited file needs texts, but the corpus has only features; use the repository format")
    _check_separators(delimiter, label_separator)
    for name in corpus.label_names:
        if label_separator in name or name != name.strip() or not name:
            raise InvalidInput(f"the label {name!r} would not be read back unchanged; choose another label_separator")
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, delimiter=delimiter or _guess_delimiter(path, ","), lineterminator="\r\n")
    row_names = corpus.row_names
    writer.writerow([text, labels] if row_names is None else [_ID_COLUMN, text, labels])
    indptr, indices = corpus.labels.indptr, corpus.labels.indices
    with writing(path) as stream:
        for row, content in enumerate(corpus.texts):
            joined = label_separator.join(corpus.label_names[i] for i in indices[indptr[row] : indptr[row + 1]])
            cells = [content, joined] if row_names is None else [row_names[row], content, joined]
            writer.writerow([kept_apart(cell) for cell in cells])
            if row % _ROWS_WRITTEN_AT_ONCE == 0:
                stream.write(buffer.getvalue().encode("utf-8"))
                buffer.seek(0)
                buffer.truncate()
        stream.write(buffer.getvalue().encode("utf-8"))
