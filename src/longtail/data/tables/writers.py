"""Writers of delimited tables and of JSON lines; each takes record after record."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

from longtail.data.columns import Column
from longtail.data.formats.formulas import disarmed
from longtail.data.formats.json_records import as_line
from longtail.data.originals import MISSING
from longtail.errors import InvalidInput
from longtail.printable import json_text

Write = Callable[[Sequence[Any]], None]

_BUFFER = 2**16  # characters
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@contextmanager
def delimited_writer(
    stream: IO[bytes], columns: Sequence[Column], delimiter: str, marked: bool, separator: str
) -> Iterator[Write]:
    """Comma or tab separated, with the line ends and quotes that spreadsheet programs expect.

    With `marked`, a byte order mark tells Excel that the text is UTF-8.
    """
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, delimiter=delimiter, lineterminator="\r\n")
    checked: set[str] = set()

    def joined_labels(labels: list[str]) -> str:
        for label in labels:
            if label not in checked:
                check_separable(label, separator)
                checked.add(label)
        return separator.join(labels)

    as_text: list[Callable[[Any], str]] = [
        {"labels": joined_labels, "scores": lambda scores: separator.join(map(str, scores))}.get(column.kind, _cell)
        for column in columns
    ]

    def write(record: Sequence[Any]) -> None:
        writer.writerow([disarmed(to_text(value)) for to_text, value in zip(as_text, record, strict=True)])
        if buffer.tell() > _BUFFER:
            flush()

    def flush() -> None:
        stream.write(buffer.getvalue().encode("utf-8"))
        buffer.seek(0)
        buffer.truncate()

    if marked:
        stream.write(_BYTE_ORDER_MARK)
    writer.writerow([disarmed(column.name) for column in columns])
    yield write
    flush()


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None or value is MISSING:
        return ""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else json_text(value)


def check_separable(label: str, separator: str) -> None:
    """Refuse a label that would not be read back from a cell of labels."""
    if separator in label or label != label.strip() or not label:
        raise InvalidInput(
            f"the label {label!r} cannot stand in a list of labels that {separator!r} separates",
            code="label_has_separator",
            name=label,
            advice="choose another label_separator, one record for each tag, or a .jsonl or .parquet file",
        )


@contextmanager
def jsonl_writer(stream: IO[bytes], columns: Sequence[Column]) -> Iterator[Write]:
    """JSON lines; an original key that a row does not have stays away."""
    names = [column.name for column in columns]

    def write(record: Sequence[Any]) -> None:
        pairs = zip(names, record, strict=True)
        stream.write(as_line({name: value for name, value in pairs if value is not MISSING}))

    yield write
