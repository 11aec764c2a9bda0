"""`read_originals`: the rows of a file of texts with their original fields, in the original order, one at a time.

A format that keeps its columns is one function here that returns `Originals`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from longtail.data.columns import Column, Kind, distinct, joint_kind
from longtail.data.formats.arrow import arrow_schema, iter_arrow_fields
from longtail.data.formats.cells import as_text, is_missing
from longtail.data.formats.delimited import iter_delimited, records
from longtail.data.formats.excel import excel_names, iter_excel
from longtail.data.formats.json_records import read_records
from longtail.data.formats.jsonl import Record, iter_jsonl_objects
from longtail.data.formats.tables import TableRow
from longtail.data.sources import format_of
from longtail.data.streams import LINE_LIMIT
from longtail.errors import DataFormatError, InvalidInput
from longtail.files import PathName


class _Missing:
    """The value of a column that a row does not have."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Any = _Missing()


class Originals(NamedTuple):
    """The columns of a file, and its rows: each with its values, one for each column."""

    columns: list[Column]
    rows: Iterator[tuple[Record, list[Any]]]


def read_originals(path: PathName, format: str | None = None, **options: Any) -> Originals:
    """The rows of a file of texts with their original fields; the parameters are those of `read_corpus`.

    JSON lines are read twice: their keys are known at the end of the file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "notes.csv"
    >>> _ = path.write_text("text,year\\na red apple,2024\\n")
    >>> found = read_originals(path, labels=None)
    >>> [column.name for column in found.columns], [fields for _, fields in found.rows]
    (['text', 'year'], [['a red apple', '2024']])
    """
    readers: dict[str | None, Callable[..., Originals]] = {
        "delimited": _of_delimited,
        "jsonl": _of_jsonl,
        "parquet": _of_arrow,
        "arrow": _of_arrow,
        "excel": _of_excel,
    }
    chosen = format_of(path) if format is None else format
    if chosen not in readers:
        raise InvalidInput(
            f"{path} has no columns that can be kept; its format is {chosen}, and those of "
            f"{', '.join(map(str, readers))} files can",
            code="no_columns",
        )
    return readers[chosen](path, **options)


def _of_delimited(
    path: PathName,
    *,
    delimiter: str | None = None,
    header: bool = True,
    encoding: str | None = None,
    field_limit: int = LINE_LIMIT,
    **options: Any,
) -> Originals:
    reading: dict[str, Any] = {"delimiter": delimiter, "field_limit": field_limit, "encoding": encoding}
    _, first = next(records(path, **reading), (1, None))
    if first is None:
        raise DataFormatError(path, 1, "the file is empty")
    names = distinct(first if header else [""] * len(first))
    rows = iter_delimited(path, header=header, **reading, **options)
    # Rows can be shorter or longer than the first line by empty fields.
    return Originals(
        [Column(name) for name in names],
        ((_record(row), _of_width(row.fields, len(names), "")) for row in rows),
    )


def _of_excel(path: PathName, *, header: bool = True, sheet: str | None = None, **options: Any) -> Originals:
    names = distinct(excel_names(path, header=header, sheet=sheet))

    def cells(row: TableRow) -> list[str]:
        if not all(is_missing(cell) for cell in row.fields[len(names) :]):
            raise DataFormatError(
                path,
                row.line,
                f"the row has cells beyond the last of {len(names)} columns",
                code="ragged_row",
                advice="name their columns in the first row, to keep them",
            )
        return [as_text(cell, name) for cell, name in zip(row.fields, names, strict=False)]

    rows = iter_excel(path, header=header, sheet=sheet, **options)
    return Originals([Column(name) for name in names], ((_record(row), cells(row)) for row in rows))


def _of_arrow(path: PathName, **options: Any) -> Originals:
    schema = arrow_schema(path)
    columns = [
        Column(name, _arrow_kind(field.type)) for name, field in zip(distinct(schema.names), schema, strict=True)
    ]
    rows = iter_arrow_fields(path, **options)
    return Originals(
        columns,
        (
            (_record(row), [_arrow_value(cell, column) for cell, column in zip(row.fields, columns, strict=True)])
            for row in rows
        ),
    )


def _arrow_kind(type: Any) -> Kind:
    """The kind of a column of an Arrow type; other types than these are written as texts."""
    from pyarrow import types

    if types.is_dictionary(type):
        return _arrow_kind(type.value_type)
    if types.is_boolean(type):
        return "truth"
    if types.is_integer(type):
        return "json" if types.is_uint64(type) else "whole"
    if types.is_floating(type):
        return "number"
    if types.is_list(type) or types.is_large_list(type) or types.is_fixed_size_list(type):
        return "texts" if _arrow_kind(type.value_type) == "text" else "json"
    return "json" if types.is_struct(type) or types.is_map(type) else "text"


def _arrow_value(value: Any, column: Column) -> Any:
    """A value of Arrow as a value of JSON."""
    if is_missing(value):
        return None
    if isinstance(value, list | tuple):
        return [_arrow_value(each, column) for each in value]
    if isinstance(value, dict):
        return {name: _arrow_value(each, column) for name, each in value.items()}
    if isinstance(value, bytes):
        raise InvalidInput(
            f"the column {column.name!r} holds bytes, which cannot be kept; leave out this column, or --keep-columns"
        )
    return value if isinstance(value, str | int | float) else str(value)


def _record(row: TableRow) -> Record:
    return Record(row.line, row.text, tuple(row.labels), row.row_name)


def _of_width(fields: Sequence[Any], width: int, filler: Any) -> list[Any]:
    return [*fields[:width], *[filler] * (width - len(fields))]


def _of_jsonl(
    path: PathName, *, encoding: str | None = None, line_limit: int = LINE_LIMIT, **options: Any
) -> Originals:
    kinds: dict[str, Kind | None] = {}
    for found in read_records(path, lambda _, found: found, set(), "ignore", line_limit, encoding):
        for key, value in found.items():
            kinds[key] = joint_kind(kinds.get(key), value)
    names = list(kinds)
    lines = iter_jsonl_objects(path, encoding=encoding, line_limit=line_limit, **options)
    return Originals(
        [Column(name, kind or "json") for name, kind in kinds.items()],
        ((record, [found.get(name, MISSING) for name in names]) for record, found in lines),
    )
