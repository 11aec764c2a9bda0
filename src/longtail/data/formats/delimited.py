"""Comma- or tab-separated files: a column of texts, and a column of label names joined by a separator."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice, repeat
from typing import Any

import numpy as np

from longtail.data.corpus import Corpus
from longtail.data.formats.cells import as_labels, looks_like_list
from longtail.data.formats.formulas import kept_apart, restored
from longtail.data.formats.json_records import LABELS_KEY
from longtail.data.formats.rows import RowCollector
from longtail.data.formats.tables import (
    ID_COLUMN,
    Column,
    Columns,
    Places,
    TableRow,
    columns_in,
    find_columns,
    is_number,
    table_rows,
)
from longtail.data.streams import LINE_LIMIT, read_text_lines, suffix_of
from longtail.errors import DataFormatError, InvalidInput
from longtail.files import PathName, writing

_BY_EXTENSION = {".tsv": "\t", ".tab": "\t"}
_CANDIDATES = ",\t;|"
_ROWS_WRITTEN_AT_ONCE = 1000
# Excel takes the delimiter of a file from such a first line.
_SEPARATOR_LINE = re.compile(r"\"?sep=(.)\"?[\s,;]*", re.IGNORECASE)
_OTHER_LINE_END = re.compile(r"\r[^\r\n]")
_QUOTED = re.compile(r'"[^"]*"')
# Names of columns are rarely longer.
_LONG_NAME = 60
_MANY_WORDS = 5
_SHOWN = 40
_NAMES_SHOWN = 5


def read_delimited(
    path: PathName,
    *,
    text: Columns = "text",
    labels: Column | None = "labels",
    id: Column | None = None,
    delimiter: str | None = None,
    label_separator: str = ";",
    header: bool = True,
    encoding: str | None = None,
    field_limit: int = LINE_LIMIT,
) -> Corpus:
    """Read texts and their labels from a comma- or tab-separated file, plain or gzipped.

    Parameters
    ----------
    path : str or path-like
    text, labels : str or int
        The columns of the text and of the label names, by name or by number from 0. A string such as ``"3"`` is a
        number if no column has that name. A list of columns, or a string such as ``"title,abstract"``, joins several
        columns of text by line ends. ``labels=None`` reads no labels. If there is a column ``label`` instead of
        ``labels``, each of its cells is one label.
    id : str, int or None
        The column that names the rows. The default is a column called ``id``, if there is one.
    delimiter : str or None
        The character between columns. The default is that of a first line such as ``sep=;``, a tab for ``.tsv`` and
        ``.tab``, else the most frequent of comma, tab, semicolon and bar in the first line.
    label_separator : str
        The separator between the labels of a row. Blanks around labels and empty labels are dropped. If most cells
        look like lists, such as ``["red", "fruit"]`` or ``['red', 'fruit']``, they are read as lists.
    header : bool
        Whether the first line names the columns.
    encoding : str or None
        For example ``"cp1252"``; the default is UTF-8. A byte-order mark in the file counts more.
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
        id=id,
        delimiter=delimiter,
        label_separator=label_separator,
        header=header,
        encoding=encoding,
        field_limit=field_limit,
    ):
        rows.add(row.line, row.text, row.labels, row.row_name)
    corpus = rows.corpus()
    doubt_separator(path, corpus.labels, corpus.label_names, label_separator)
    return corpus


def iter_delimited(
    path: PathName,
    *,
    text: Columns = "text",
    labels: Column | None = "labels",
    id: Column | None = None,
    group: Column | None = None,
    delimiter: str | None = None,
    label_separator: str = ";",
    header: bool = True,
    encoding: str | None = None,
    field_limit: int = LINE_LIMIT,
) -> Iterator[TableRow]:
    """Yield the rows of a delimited file; `group` is a column, the other parameters are those of `read_delimited`."""
    _check_separators(delimiter, label_separator)
    if not header:
        check_numbers(*columns_in(text), labels, id, group)
    with fields_up_to(field_limit):
        lines = records(path, delimiter, field_limit, encoding)
        first = next(lines, None)
        if first is None:
            raise DataFormatError(path, 1, "the file is empty")
        line, names = first
        width = len(names)
        if header:
            places = find_named(path, line, names, text, labels, id, group)
            # Spreadsheets write delimiters after the last column if a cell there was ever filled.
            named = max((place for place, name in enumerate(names, 1) if name.strip()), default=width)
            needed = max(named, places.used()[-1] + 1)
        else:
            places, needed = find_columns(path, line, None, width, text, labels, id, group), width
        rows = lines if header else chain([first], lines)
        # Without ids, an empty text without labels is a row.
        blank = needed if places.row_name is None else 0
        found = table_rows(path, _even(path, rows, needed, width, blank), places, label_separator)
        yield from doubt_header(path, found, names, places, label_separator, text) if header else found


def _even(
    path: PathName, rows: Iterable[tuple[int, list[str]]], needed: int, width: int, blank: int
) -> Iterator[tuple[int, list[str]]]:
    """The rows, of `width` fields or of at least `needed`; further fields must be empty.

    Blank rows of more than `blank` fields are left out.
    """
    for line, fields in rows:
        if len(fields) != width and (len(fields) < needed or any(field.strip() for field in fields[needed:])):
            raise DataFormatError(
                path,
                line,
                f"{len(fields)} columns, expected {needed} as in the first line; a field with the delimiter or a "
                f"line end in it needs quotes",
                code="ragged_row",
            )
        if len(fields) > blank and not any(field.strip() for field in fields):
            continue
        yield line, fields


def check_numbers(*columns: Column | None) -> None:
    """Refuse names of columns in a table without a header."""
    if not all(is_number(column) for column in columns if column is not None):
        raise InvalidInput("without a header, columns have no names: give the numbers of the text and labels columns")


def find_named(
    path: object,
    line: int | None,
    names: Sequence[str],
    text: Columns,
    labels: Column | None,
    id: Column | None = None,
    group: Column | None = None,
) -> Places:
    """The places of columns below a header; an error says so if the header looks like something else."""
    try:
        return find_columns(path, line, names, len(names), text, labels, id, group)
    except DataFormatError as error:
        if error.code != "missing_column":
            raise
        if advice := _other_format(path, names):
            raise DataFormatError(
                str(path), line, f"no column is named {error.column!r}", code="other_format", advice=advice
            ) from None
        longest = max(range(len(names)), key=lambda place: len(names[place]), default=0)
        if not _looks_like_data(names[longest] if names else ""):
            raise
        others = (place for place in reversed(range(len(names))) if place != longest and names[place].strip())
        raise DataFormatError(
            str(path),
            line,
            f"no column is named {error.column!r}, and the first line looks like data: {names[longest][:_SHOWN]!r}",
            code="headerless",
            column=error.column,
            found=[str(longest), *map(str, islice(others, 1))],
            advice=f"without a line of names, give columns by number, such as text={longest}, and header=False",
        ) from None


def doubt_header(
    path: PathName, rows: Iterator[TableRow], names: Sequence[str], places: Places, separator: str, text: Columns
) -> Iterator[TableRow]:
    """The same rows; a warning if columns are given by number, and the header looks like a row that is lost."""
    if not all(is_number(column) and str(column) not in names for column in columns_in(text, names)):
        yield from rows
        return
    doubtful = any(_looks_like_data(names[place]) or names[place].isdigit() for place in places.used())
    labels = set() if places.labels is None else set(as_labels(names[places.labels], separator, False, LABELS_KEY))
    for row in rows:
        doubtful = doubtful or not labels.isdisjoint(row.labels)
        yield row
    if doubtful:
        listed = ", ".join(repr(name[:_SHOWN]) for name in names[:_NAMES_SHOWN])
        warnings.warn(
            f"{path}: the first line is taken for names of columns ({listed}) and not for a row; if it is one, set "
            f"header=False (--no-header on the command line)",
            stacklevel=1,
        )


def _other_format(path: object, names: Sequence[str]) -> str:
    """What to do if the first line looks like JSON, or like a line with another delimiter."""
    filled = [name.strip() for name in names if name.strip()]
    if filled and filled[0].startswith(('{"', '[{"')):
        return "the first line looks like JSON; if each line is an object, name the file .jsonl"
    other = max(_CANDIDATES, key=filled[0].count) if len(filled) == 1 else ""
    if other and other in filled[0]:
        mend = "name the file .csv" if suffix_of(str(path)) in _BY_EXTENSION else "leave out the quotes around lines"
        return f"there is only the column {filled[0][:_SHOWN]!r}; if {other!r} separates columns, {mend}"
    return ""


def _looks_like_data(name: str) -> bool:
    return len(name) > _LONG_NAME or len(name.split()) > _MANY_WORDS


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


@contextmanager
def fields_up_to(limit: int) -> Iterator[None]:
    """Allow fields of `limit` characters; the csv module has one limit for the whole process."""
    before = csv.field_size_limit()
    csv.field_size_limit(max(before, limit))
    try:
        yield
    finally:
        csv.field_size_limit(before)


def records(
    path: PathName, delimiter: str | None, field_limit: int, encoding: str | None = None
) -> Iterator[tuple[int, list[str]]]:
    """Records that are not blank, with the line on which each starts; disarmed cells as they were."""
    lines = (line for _, line in read_text_lines(path, field_limit, encoding=encoding))
    blank = 0
    for first in lines:
        if not first.isspace():
            break
        blank += 1
    else:
        return
    told = _SEPARATOR_LINE.fullmatch(first)
    if told is not None:
        delimiter = delimiter or told[1]
    elif _OTHER_LINE_END.search(first):
        raise DataFormatError(
            path, 1, "the lines end in carriage returns only; save the file with other line ends, such as 'CSV UTF-8'"
        )
    chosen = delimiter or _guess_delimiter(path, first)

    def all_lines() -> Iterator[str]:
        yield from repeat("\n", blank)
        yield "\n" if told is not None else first
        yield from lines

    reader = csv.reader(all_lines(), delimiter=chosen, strict=True)
    start = 1
    try:
        for fields in reader:
            if fields:
                yield start, [restored(field) for field in fields]
            start = reader.line_num + 1
    except csv.Error as error:
        raise DataFormatError(path, start, f"{error}; check the quotes of the row that starts here") from None


def _guess_delimiter(path: PathName, line: str) -> str:
    unquoted = _QUOTED.sub("", line)
    return _BY_EXTENSION.get(suffix_of(path)) or max(_CANDIDATES, key=unquoted.count)


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
    writer.writerow([text, labels] if row_names is None else [ID_COLUMN, text, labels])
    indptr, indices = corpus.labels.indptr, corpus.labels.indices
    with writing(path) as stream:
        for row, content in enumerate(corpus.texts):
            joined = label_separator.join(corpus.label_names[i] for i in indices[indptr[row] : indptr[row + 1]])
            if joined and looks_like_list(joined):
                raise InvalidInput(
                    f"the label {joined!r} looks like a list and would be read back as one; use JSON lines"
                )
            cells = [content, joined] if row_names is None else [row_names[row], content, joined]
            writer.writerow([kept_apart(cell) for cell in cells])
            if row % _ROWS_WRITTEN_AT_ONCE == 0:
                stream.write(buffer.getvalue().encode("utf-8"))
                buffer.seek(0)
                buffer.truncate()
        stream.write(buffer.getvalue().encode("utf-8"))
