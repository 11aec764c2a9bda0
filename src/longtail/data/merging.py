"""Rows with the same id become one row: their labels are united, and their texts must agree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import groupby
from typing import Any

from longtail.data.formats.jsonl import Record
from longtail.errors import DataFormatError, InvalidInput

MERGE_BY_ID = "id"


def check_merge_by(merge_by: str | None) -> None:
    """Check the parameter `merge_by` of a reader."""
    if merge_by not in (None, MERGE_BY_ID):
        raise InvalidInput(f"merge_by is {merge_by!r}; expected 'id', or None to keep all rows")


def merge_records(located: Iterable[tuple[str, Record]]) -> Iterator[Record]:
    """Merge rows, each given with the name of its file, by their ids; they keep the order of first appearance.

    The rows wait in a temporary database, of which SQLite keeps only some pages in memory.
    """
    import sqlite3

    with closing(sqlite3.connect("", isolation_level=None, check_same_thread=False)) as database:
        database.executescript(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
            "CREATE TABLE rows (number INTEGER PRIMARY KEY, id TEXT UNIQUE, file TEXT, line INTEGER, text TEXT);"
            "CREATE TABLE labels (number INTEGER PRIMARY KEY, row INTEGER, name TEXT); BEGIN;"
        )
        for file, record in located:
            row = _row_of(database, file, record)
            database.executemany(
                "INSERT INTO labels (row, name) VALUES (?, ?)", ((row, name) for name in record.labels)
            )
        database.execute("CREATE INDEX labels_of_row ON labels (row, number)")
        found = database.execute(
            "SELECT rows.number, rows.line, rows.text, rows.id, labels.name FROM rows LEFT JOIN labels "
            "ON labels.row = rows.number ORDER BY rows.number, labels.number"
        )
        for _, parts in groupby(found, key=lambda part: part[0]):
            together = list(parts)
            _, line, text, row_name, _ = together[0]
            names = dict.fromkeys(name for *_, name in together if name is not None)
            yield Record(line, text, tuple(names), row_name)


def _row_of(database: Any, file: str, record: Record) -> int:
    """The number of the row with the id of a record; the record makes a row if its id is new."""
    if not record.row_name:
        raise DataFormatError(
            file,
            record.line,
            "the row has no id to merge by",
            code="no_id",
            advice="name the column of the ids, or read the rows as they are",
        )
    added = database.execute(
        "INSERT OR IGNORE INTO rows (id, file, line, text) VALUES (?, ?, ?, ?)",
        (record.row_name, file, record.line, record.text),
    )
    if added.rowcount:
        return int(added.lastrowid)
    number, other, line, text = database.execute(
        "SELECT number, file, line, text FROM rows WHERE id = ?", (record.row_name,)
    ).fetchone()
    if text != record.text:
        place = f"line {line}" if other == file else f"{other}:{line}"
        raise DataFormatError(
            file,
            record.line,
            f"the row has the id {record.row_name!r:.40} of {place}, but another text; rows that are merged have the "
            f"same text",
            code="texts_differ",
            name=record.row_name,
            advice="make them equal, or read the rows as they are",
        )
    return int(number)
