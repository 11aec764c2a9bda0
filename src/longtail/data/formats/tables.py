"""Rows of any table: which columns hold the texts, labels and ids, and what their cells say."""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from numbers import Integral
from typing import Any, NamedTuple

from longtail.data.formats.cells import as_label, as_labels, as_text, is_missing, looks_like_list
from longtail.data.formats.json_records import LABEL_KEY, LABELS_KEY, FaultError
from longtail.errors import DataFormatError, InvalidInput
from longtail.printable import counted

Column = str | int
Columns = Column | Sequence[Column]

ID_COLUMN = "id"
_NUMBER = re.compile(r"[0-9]{1,9}")
# How many rows, and characters of labels, are read ahead to see whether the labels are lists.
_ROWS_AHEAD = 1000
_CHARACTERS_AHEAD = 2**24


class TableRow(NamedTuple):
    """One row of a table, the line on which it starts, and its cells as they are, with those that are not read."""

    line: int
    text: str
    labels: list[str]
    row_name: str | None
    group: str | None
    fields: Sequence[Any]


class Places(NamedTuple):
    """Where the columns of a table are, counted from 0; and whether a cell of labels is one label."""

    text: tuple[int, ...]
    labels: int | None
    row_name: int | None
    group: int | None
    one_label: bool = False

    def used(self) -> list[int]:
        """The numbers of the columns that are read."""
        others = self.labels, self.row_name, self.group
        return sorted({*self.text, *(place for place in others if place is not None)})

    def among(self, columns: Sequence[int]) -> Places:
        """The places in a table of only the given columns."""
        at = {column: place for place, column in enumerate(columns)}
        others = self.labels, self.row_name, self.group
        labels, row_name, group = (None if place is None else at[place] for place in others)
        return Places(tuple(at[place] for place in self.text), labels, row_name, group, self.one_label)


def is_number(column: object) -> bool:
    """Whether a column is given by its number, in ASCII digits."""
    return isinstance(column, Integral) or (isinstance(column, str) and _NUMBER.fullmatch(column) is not None)


def columns_in(given: Columns, names: Iterable[str] = ()) -> list[Column]:
    """The columns that are asked for: one, a list, or names joined by commas that are no name of a column together.

    >>> columns_in("title,abstract"), columns_in("title,abstract", ["title,abstract"]), columns_in('"a, b",c')
    (['title', 'abstract'], ['title,abstract'], ['a, b', 'c'])
    """
    if not isinstance(given, str):
        columns: list[Column] = list(given) if isinstance(given, Sequence) else [given]
        if not columns:
            raise InvalidInput("the list of text columns is empty")
        return columns
    if "," not in given or given in {name.strip() for name in names}:
        return [given]
    parts = next(csv.reader([given], skipinitialspace=True))
    return [name for part in parts if (name := part.strip())]


def find_columns(
    path: object,
    line: int | None,
    names: Sequence[str] | None,
    width: int,
    text: Columns,
    labels: Column | None,
    id: Column | None = None,
    group: Column | None = None,
) -> Places:
    """The places of columns among the names of all columns; without names, columns are numbers.

    A name is a column of that name or, if there is none, of that name in other case; or the number of a column.
    Without `id`, a column called ``id``, in any case, names the rows if there is one. If there is a column ``label``
    instead of ``labels``, each of its cells is one label.
    """
    known = [name.strip() for name in names or ()]

    def find(column: Column) -> int:
        wanted = str(column).strip()
        places = [place for place, name in enumerate(known) if name == wanted and isinstance(column, str)]
        if not places and isinstance(column, str):
            places = [place for place, name in enumerate(known) if name.casefold() == wanted.casefold()]
        listed = ", ".join(repr(name) for name in names or [])
        if len(places) != 1 and is_number(column):
            if not 0 <= int(column) < width:
                found = f": {listed}" if listed else ""
                raise DataFormatError(
                    str(path),
                    line,
                    f"no column {column}: there are {width}, numbered from 0{found}",
                    code="column_out_of_range",
                    column=column,
                )
            return int(column)
        if len(places) != 1:
            fault = f"{len(places)} columns are named" if places else "no column is named"
            raise DataFormatError(
                str(path),
                line,
                f"{fault} {column!r}; the columns are {listed}",
                code="ambiguous_column" if places else "missing_column",
                column=column,
                found=names or (),
                advice="choose one by its number, counted from 0"
                if places
                else "choose the columns of text and labels",
            )
        return places[0]

    one_label = labels == LABELS_KEY and _holds(known, LABEL_KEY)
    if one_label and _holds(known, LABELS_KEY):
        raise DataFormatError(
            str(path),
            line,
            f"there are the columns {LABEL_KEY!r} and {LABELS_KEY!r}; choose one by its number",
            code="label_and_labels",
        )
    if one_label:
        labels = LABEL_KEY
    texts = tuple(find(column) for column in columns_in(text, known))
    chosen = None if labels is None else find(labels), None if group is None else find(group)
    if id is not None:
        return Places(texts, chosen[0], find(id), chosen[1], one_label)
    has_id = ID_COLUMN in known or [name.casefold() for name in known].count(ID_COLUMN) == 1
    row_name = find(ID_COLUMN) if has_id else None
    return Places(texts, chosen[0], None if row_name in (*texts, *chosen) else row_name, chosen[1], one_label)


def _holds(names: Sequence[str], column: str) -> bool:
    return any(name.casefold() == column for name in names)


def table_rows(
    path: object,
    rows: Iterable[tuple[int, Sequence[Any]]],
    places: Places,
    label_separator: str,
    *,
    tell_missing: bool = False,
) -> Iterator[TableRow]:
    """Yield the rows of a table, given with their lines as sequences of cells.

    Several columns of text are joined by line ends, without the empty ones. If most labels look like lists that have
    been written as texts, they are lists. `tell_missing` warns of the number of texts and labels that are missing.
    """
    ahead: list[tuple[int, Sequence[Any]]] = []
    rows, lists = iter(rows), False
    if places.labels is not None and not places.one_label:
        lists = _read_ahead(rows, places.labels, ahead)
    missing = [0, 0]
    for line, cells in chain(ahead, rows):
        try:
            row = _row(line, cells, places, label_separator, lists)
        except FaultError as fault:
            raise DataFormatError(str(path), line, str(fault), **fault.facts) from None
        if tell_missing:
            missing[0] += all(is_missing(cells[place]) for place in places.text)
            missing[1] += places.labels is not None and is_missing(cells[places.labels])
        yield row
    if any(missing):
        kinds = (("text", "texts"), ("cell of labels", "cells of labels"))
        told = [counted(count, *kind) for count, kind in zip(missing, kinds, strict=True) if count]
        warnings.warn(
            f"{path}: {' and '.join(told)} {'is' if sum(missing) == 1 else 'are'} missing (null, None or NaN); these "
            f"rows are kept, with an empty text or no labels",
            stacklevel=3,
        )


def _read_ahead(rows: Iterator[Any], labels: int, ahead: list[tuple[int, Sequence[Any]]]) -> bool:
    """Whether most of the first labels are lists; the rows that were read for that go to `ahead`."""
    filled = lists = characters = 0
    for each in rows:
        ahead.append(each)
        cell = each[1][labels]
        if isinstance(cell, str) and not cell.isspace() and cell:
            filled += 1
            lists += looks_like_list(cell)
        characters += sum(len(cell) for cell in each[1] if isinstance(cell, str))
        if len(ahead) >= _ROWS_AHEAD or characters >= _CHARACTERS_AHEAD:
            break
    return 2 * lists > filled


def _row(line: int, cells: Sequence[Any], places: Places, separator: str, lists: bool) -> TableRow:
    if len(places.text) == 1:
        text = as_text(cells[places.text[0]], "text")
    else:
        parts = (as_text(cells[place], "text") for place in places.text)
        text = "\n".join(part for part in parts if part and not part.isspace())
    labels = [] if places.labels is None else _labels(cells[places.labels], places.one_label, separator, lists)
    row_name = "" if places.row_name is None else as_text(cells[places.row_name], ID_COLUMN)
    group = None if places.group is None else as_text(cells[places.group], "group").strip()
    # Rows with empty cells of ids would all have the same id.
    return TableRow(line, text, labels, row_name if row_name.strip() else None, group, cells)


def _labels(cell: Any, one: bool, separator: str, lists: bool) -> list[str]:
    return as_label(cell, LABEL_KEY) if one else as_labels(cell, separator, lists, LABELS_KEY)
