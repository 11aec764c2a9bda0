"""Tables in memory: data frames of pandas, polars and others, mappings of columns, and single columns of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from longtail.data.corpus import Corpus
from longtail.data.formats.arrow import batch_rows, import_pyarrow
from longtail.data.formats.cells import is_missing
from longtail.data.formats.rows import RowCollector
from longtail.data.formats.tables import Column, Columns, TableRow, find_columns, table_rows
from longtail.errors import InvalidInput
from longtail.printable import counted

_NAME = "the table"


def read_table(
    table: Any, *, text: Columns, labels: Column | None, id: Column | None = None, label_separator: str = ";"
) -> Corpus:
    """The corpus in a table; see `Corpus.from_table`."""
    rows = RowCollector(_NAME)
    for row in iter_table(table, text=text, labels=labels, id=id, label_separator=label_separator):
        rows.add(row.line, row.text, row.labels, row.row_name)
    return rows.corpus()


def iter_table(
    table: Any, *, text: Columns, labels: Column | None, id: Column | None = None, label_separator: str = ";"
) -> Iterator[TableRow]:
    """Yield the rows of a table; the line of a row is its number, counted from 1."""
    if hasattr(table, "iloc") and hasattr(table, "columns"):
        # Columns of Python objects, such as sets, are no Arrow arrays.
        return _column_rows(
            [str(name) for name in table.columns], lambda place: table.iloc[:, place], text, labels, id, label_separator
        )
    if isinstance(table, Mapping):
        names = list(table)
        return _column_rows(
            [str(name) for name in names], lambda place: table[names[place]], text, labels, id, label_separator
        )
    if not hasattr(table, "__arrow_c_stream__"):
        raise InvalidInput(
            f"a table is a data frame (pandas, polars, Arrow, DuckDB) or a mapping of columns; found a "
            f"{type(table).__name__}"
        )
    pyarrow = import_pyarrow(f"a table of type {type(table).__name__}", "or pass a pandas data frame")
    try:
        reader = pyarrow.RecordBatchReader.from_stream(table)
    except pyarrow.ArrowInvalid as error:
        raise InvalidInput(f"a {type(table).__name__} is no table with columns: {error}; give the data frame") from None
    names = reader.schema.names
    places = find_columns(_NAME, None, names, len(names), text, labels, id)
    used = places.used()
    return batch_rows(_NAME, reader, used, places.among(used), label_separator)


def _column_rows(
    names: list[str],
    column: Callable[[int], Any],
    text: Columns,
    labels: Column | None,
    id: Column | None,
    label_separator: str,
) -> Iterator[TableRow]:
    places = find_columns(_NAME, None, names, len(names), text, labels, id)
    used = places.used()
    columns = [column(place) for place in used]
    if len({len(each) for each in columns}) > 1:
        raise InvalidInput(f"{_NAME} has columns of different lengths; expected a cell in each for every row")
    rows = enumerate(zip(*columns, strict=True), start=1)
    return table_rows(_NAME, rows, places.among(used), label_separator, tell_missing=True)


def filled(values: Any, empty: Any, what: str) -> Any:
    """The cells of a column of a data frame or of Arrow as Python values, with `empty` for those that are missing.

    Anything else, such as a list, is returned as it is. A warning counts the cells.
    """
    if not any(hasattr(values, name) for name in ("iloc", "__arrow_c_stream__", "__arrow_c_array__")):
        return values
    if getattr(values, "ndim", 1) != 1 or hasattr(values, "columns"):
        return values
    cells = values.to_pylist() if hasattr(values, "to_pylist") else list(values)
    missing = [is_missing(cell) for cell in cells]
    if not any(missing):
        return cells
    cells_are = counted(sum(missing), f"cell of {what} is", f"cells of {what} are")
    warnings.warn(
        f"{cells_are} missing (null, None or NaN); these rows are kept, with an empty text or no labels", stacklevel=4
    )
    return [empty if gone else cell for cell, gone in zip(cells, missing, strict=True)]
