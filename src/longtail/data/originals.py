"""`read_originals`: the rows of a file of texts with their original fields, in the original order, one at a time.

A format that keeps its columns is one function here that returns `Originals`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from longtail.data.columns import Column, Kind, distinct, joint_kind
from longtail.data.files import format_of
from longtail.data.formats.delimited import iter_delimited, records
from longtail.data.formats.json_records import read_records
from longtail.data.formats.jsonl import Record, iter_jsonl_objects
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
    readers: dict[str | None, Callable[..., Originals]] = {"delimited": _of_delimited, "jsonl": _of_jsonl}
    chosen = format_of(path) if format is None else format
    if chosen not in readers:
        raise InvalidInput(
            f"{path} has no columns that can be kept; its format is {chosen}, and those of "
            f"{' and '.join(map(str, readers))} files can",
            code="no_columns",
        )
    return readers[chosen](path, **options)


def _of_delimited(
    path: PathName, *, delimiter: str | None = None, header: bool = True, field_limit: int = LINE_LIMIT, **options: Any
) -> Originals:
    reading: dict[str, Any] = {"delimiter": delimiter, "field_limit": field_limit}
    _, first = next(records(path, **reading), (1, None))
    if first is None:
        raise DataFormatError(path, 1, "the file is empty")
    names = distinct(first if header else [""] * len(first))
    rows = iter_delimited(path, header=header, **reading, **options)
    return Originals(
        [Column(name) for name in names],
        ((Record(row.line, row.text, tuple(row.labels), row.row_name), row.fields) for row in rows),
    )


def _of_jsonl(path: PathName, *, line_limit: int = LINE_LIMIT, **options: Any) -> Originals:
    kinds: dict[str, Kind | None] = {}
    for found in read_records(path, lambda _, found: found, set(), "ignore", line_limit):
        for key, value in found.items():
            kinds[key] = joint_kind(kinds.get(key), value)
    names = list(kinds)
    lines = iter_jsonl_objects(path, line_limit=line_limit, **options)
    return Originals(
        [Column(name, kind or "json") for name, kind in kinds.items()],
        ((record, [found.get(name, MISSING) for name in names]) for record, found in lines),
    )
