"""Parquet and Arrow files, and the Arrow streams of data frames: columns of texts, labels and ids.

The first bytes of a file say which format it has. Files are read some rows at a time.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from longtail.data.corpus import Corpus
from longtail.data.formats.rows import RowCollector
from longtail.data.formats.tables import Column, Columns, Places, TableRow, find_columns, table_rows
from longtail.errors import DataFormatError, LongtailError, Unavailable
from longtail.files import PathName
from longtail.memory import MemoryPlan

_ROWS_AT_ONCE = 256
_READ_AT_ONCE = 2**20
_OF_TEXTS = string.printable.encode()
_PARQUET, _ARROW, _OLD_FEATHER, _GZIP = b"PAR1", b"ARROW1", b"FEA1", b"\x1f\x8b"


def read_arrow(
    path: PathName,
    *,
    text: Columns = "text",
    labels: Column | None = "labels",
    id: Column | None = None,
    label_separator: str = ";",
) -> Corpus:
    """Read texts and their labels from a Parquet file or an Arrow file or stream (Feather); needs pyarrow.

    Parameters
    ----------
    path : str or path-like
    text, labels, id : str or int
        Columns as for `read_delimited`. A column of labels holds lists of names, or texts that a separator joins; it
        can be encoded as a dictionary. Texts and labels that are null count as empty, and a warning counts them.
    label_separator : str
        The separator between the labels of a row, if they are no list.

    Examples
    --------
    >>> import pyarrow, pyarrow.parquet, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "notes.parquet"
    >>> table = pyarrow.table({"text": ["a red apple"], "labels": [["fruit", "red"]]})
    >>> pyarrow.parquet.write_table(table, path)
    >>> read_arrow(path).label_names
    ('fruit', 'red')
    """
    rows = RowCollector(path)
    for row in iter_arrow(path, text=text, labels=labels, id=id, label_separator=label_separator):
        rows.add(row.line, row.text, row.labels, row.row_name)
    return rows.corpus()


def iter_arrow(
    path: PathName,
    *,
    text: Columns = "text",
    labels: Column | None = "labels",
    id: Column | None = None,
    label_separator: str = ";",
) -> Iterator[TableRow]:
    """Yield the rows of a Parquet or Arrow file; the line of a row is its number, counted from 1."""
    return _rows(path, text, labels, id, label_separator, whole=False)


def iter_arrow_fields(
    path: PathName,
    *,
    text: Columns = "text",
    labels: Column | None = "labels",
    id: Column | None = None,
    label_separator: str = ";",
) -> Iterator[TableRow]:
    """Like `iter_arrow`, with the cells of all columns as `TableRow.fields`."""
    return _rows(path, text, labels, id, label_separator, whole=True)


def arrow_schema(path: PathName) -> Any:
    """The names and types of the columns of a Parquet or Arrow file, as a ``pyarrow.Schema``."""
    with _opened(path) as file:
        return file.schema


class _File(NamedTuple):
    """The schema of an open file, and a function that reads some of its columns, or all, batch by batch."""

    schema: Any
    batches: Callable[[Sequence[str] | None], Iterable[Any]]


def _rows(
    path: PathName, text: Columns, labels: Column | None, id: Column | None, label_separator: str, whole: bool
) -> Iterator[TableRow]:
    with _opened(path) as file:
        names = file.schema.names
        places = find_columns(path, None, names, len(names), text, labels, id)
        used = places.used()
        chosen = [names[place] for place in used]
        if whole:
            yield from batch_rows(path, file.batches(None), range(len(names)), places, label_separator)
        elif any(names.count(name) > 1 for name in chosen):
            yield from batch_rows(path, file.batches(None), used, places.among(used), label_separator)
        else:
            yield from batch_rows(path, file.batches(chosen), chosen, places.among(used), label_separator)


@contextmanager
def _opened(path: PathName) -> Iterator[_File]:
    pyarrow = import_pyarrow(f"reading {path}", "or convert the file to CSV or JSON lines")
    with _faults_of(path, pyarrow), open(path, "rb") as stream:
        magic = stream.read(len(_ARROW))
        if magic.startswith(_PARQUET):
            with _opened_parquet(path) as file:
                yield file
            return
        if magic.startswith(_GZIP):
            raise DataFormatError(path, None, "the file is gzipped; unzip it")
        if magic.startswith(_OLD_FEATHER):
            raise DataFormatError(path, None, "the file is of the first version of Feather; write it again as Parquet")
        if not magic:
            raise DataFormatError(path, None, "the file is empty")
        if not magic.strip(_OF_TEXTS) and magic != _ARROW:
            raise DataFormatError(
                path,
                None,
                "the file is neither Parquet nor Arrow and looks like text",
                code="other_format",
                advice="if it is a table, name it .csv",
            )
        with pyarrow.memory_map(str(path)) as mapped:
            if magic.startswith(_ARROW):
                held = pyarrow.ipc.open_file(mapped)
                yield _File(held.schema, lambda _: map(held.get_batch, range(held.num_record_batches)))
            else:
                opened = pyarrow.ipc.open_stream(mapped)
                yield _File(opened.schema, lambda _: opened)


@contextmanager
def _opened_parquet(path: PathName) -> Iterator[_File]:
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path, buffer_size=_READ_AT_ONCE, pre_buffer=False) as file:

        def batches(columns: Sequence[str] | None) -> Iterable[Any]:
            _check_chunks(path, file.metadata, file.schema_arrow.names if columns is None else columns)
            found: Iterable[Any] = file.iter_batches(_ROWS_AT_ONCE, columns=columns, use_threads=False)
            return found

        yield _File(file.schema_arrow, batches)


def _check_chunks(path: PathName, metadata: Any, used: Sequence[str]) -> None:
    """Raise `NotEnoughMemory` if a column of some rows, unpacked, does not fit into memory."""
    largest = 0
    for group in range(metadata.num_row_groups):
        rows = metadata.row_group(group)
        for column in range(rows.num_columns):
            chunk = rows.column(column)
            if chunk.path_in_schema.partition(".")[0] in {name.partition(".")[0] for name in used}:
                largest = max(largest, chunk.total_uncompressed_size)
    MemoryPlan(f"reading {path}", {"column of a row group": largest}, "Write it with smaller row groups.").check()


def batch_rows(
    path: object, batches: Iterable[Any], columns: Sequence[int | str], places: Places, label_separator: str
) -> Iterator[TableRow]:
    """Yield the rows of Arrow record batches; `places` are among `columns`, which are numbers or names."""

    def rows() -> Iterator[tuple[int, Sequence[Any]]]:
        number = 0
        for batch in batches:
            # Files can lie about offsets and lengths; nothing else looks at them.
            batch.validate(full=True)
            for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
                part = batch.slice(start, _ROWS_AT_ONCE)
                values = [part.column(column).to_pylist() for column in columns]
                for cells in zip(*values, strict=True):
                    number += 1
                    yield number, cells

    yield from table_rows(path, rows(), places, label_separator, tell_missing=True)


def import_pyarrow(work: str, otherwise: str) -> Any:
    """The package pyarrow; raises `Unavailable` if it is not installed."""
    try:
        import pyarrow
        import pyarrow.ipc
    except ImportError:
        raise Unavailable(
            f"{work} needs pyarrow, which is not installed; install it: pip install 'longtail[arrow]', {otherwise}",
            name="pyarrow",
        ) from None
    return pyarrow


@contextmanager
def _faults_of(path: PathName, pyarrow: Any) -> Iterator[None]:
    try:
        yield
    except LongtailError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        if isinstance(error, FileNotFoundError | IsADirectoryError | PermissionError):
            raise DataFormatError(path, None, f"cannot be opened: {error.strerror}") from None
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise DataFormatError(
            path, None, f"not a readable Parquet or Arrow file: {reason}; get it again, or write it again"
        ) from None
