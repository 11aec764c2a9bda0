"""Tables as Parquet files, written one row group after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

from longtail.data.columns import Column, Kind
from longtail.data.originals import MISSING
from longtail.data.tables.writers import Write
from longtail.errors import Unavailable
from longtail.printable import json_text

_MOST_ROWS = 2**16  # of a row group
_MOST_CHARACTERS = 2**25


def require_arrow() -> None:
    """Raise `Unavailable` unless pyarrow is installed."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise Unavailable(
            "Parquet files need pyarrow, which is not installed; install it: pip install 'longtail[arrow]', or write "
            "a .csv or .jsonl file"
        ) from None


@contextmanager
def parquet_writer(stream: IO[bytes], columns: Sequence[Column]) -> Iterator[Write]:
    """A Parquet file; memory holds one row group."""
    require_arrow()
    import pyarrow as pa
    from pyarrow import parquet

    types: dict[Kind, Any] = {
        "text": pa.string(),
        "json": pa.string(),
        "whole": pa.int64(),
        "number": pa.float64(),
        "truth": pa.bool_(),
        "texts": pa.list_(pa.string()),
        "labels": pa.list_(pa.string()),
        "scores": pa.list_(pa.float64()),
    }
    schema = pa.schema([(column.name, types[column.kind]) for column in columns])
    convert = [_CONVERSIONS.get(column.kind, _same) for column in columns]
    held: list[list[Any]] = []
    characters = 0

    with parquet.ParquetWriter(stream, schema, compression="zstd") as writer:

        def flush() -> None:
            nonlocal characters
            values = zip(*held, strict=True)
            writer.write_table(
                pa.Table.from_arrays(
                    [pa.array(list(column), field.type) for column, field in zip(values, schema, strict=True)],
                    schema=schema,
                )
            )
            held.clear()
            characters = 0

        def write(record: Sequence[Any]) -> None:
            nonlocal characters
            row = [
                None if value is None or value is MISSING else to(value)
                for to, value in zip(convert, record, strict=True)
            ]
            held.append(row)
            characters += sum(len(value) for value in row if isinstance(value, str))
            if len(held) >= _MOST_ROWS or characters >= _MOST_CHARACTERS:
                flush()

        yield write
        if held:
            flush()


def _same(value: Any) -> Any:
    return value


_CONVERSIONS: dict[Kind, Callable[[Any], Any]] = {"text": str, "json": json_text, "number": float}
