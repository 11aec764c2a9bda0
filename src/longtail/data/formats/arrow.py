"""Parquet and Arrow files, and the Arrow streams of data frames: columns of texts, labels and ids.

The first bytes of a file say which format it has. Files are read some rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from longtail.data.corpus import Corpus
from longtail.data.formats.rows import RowCollector
from longtail.data.formats.tables import Column, Columns, TableRow, find_columns, table_rows
from longtail.errors import DataFormatError, LongtailError, Unavailable
from longtail.files import PathName
from longtail.memory import MemoryPlan

_ROWS_AT_ONCE = 256
_READ_AT_ONCE = 2**20
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
    pyarrow = import_pyarrow(f"reading {path}", "or convert the file to CSV or JSON lines")
    with _faults_of(path, pyarrow), open(path, "rb") as stream:
        magic = stream.read(len(_ARROW))
        if magic.startswith(_PARQUET):
            yield from _parquet_rows(path, text, labels, id, label_separator)
            return
        if magic.startswith((_OLD_FEATHER, _GZIP)):
            fault = "is gzipped; unzip it" if magic.startswith(_GZIP) else "is of the first version of Feather"
            raise DataFormatError(path, None, f"the file {fault}; write it again as Parquet")
        with pyarrow.memory_map(str(path)) as mapped:
            if magic.startswith(_ARROW):
                file = pyarrow.ipc.open_file(mapped)
                schema, batches = file.schema, map(file.get_batch, range(file.num_record_batches))
            else:
                opened = pyarrow.ipc.open_stream(mapped)
                schema, batches = opened.schema, iter(opened)
            yield from batch_rows(path, schema.names, batches, text, labels, id, label_separator)


def _parquet_rows(
    path: PathName, text: Columns, labels: Column | None, id: Column | None, label_separator: str
) -> Iterator[TableRow]:
    from pyarrow.parquet import ParquetFile

    with ParquetFile(path, buffer_size=_READ_AT_ONCE, pre_buffer=False) as file:
        names = file.schema_arrow.names
        used = [names[place] for place in find_columns(path, None, names, len(names), text, labels, id).used()]
        _check_chunks(path, file.metadata, used)
        batches = file.iter_batches(_ROWS_AT_ONCE, columns=used, use_threads=False)
        numbered = _chosen_by_name(names, text, labels, id)
        yield from batch_rows(path, used, batches, *numbered, label_separator)


def _chosen_by_name(
    names: Sequence[str], text: Columns, labels: Column | None, id: Column | None
) -> tuple[Columns, Column | None, Column | None]:
    """The columns by name, where they are given by number, for a table that holds only some of the columns."""
    places = find_columns("", None, names, len(names), text, labels, id)
    texts = [names[place] for place in places.text]
    return (
        texts,
        None if places.labels is None else names[places.labels],
        None if places.row_name is None else names[places.row_name],
    )


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
    path: object,
    names: Sequence[str],
    batches: Iterable[Any],
    text: Columns,
    labels: Column | None,
    id: Column | None,
    label_separator: str,
) -> Iterator[TableRow]:
    """Yield the rows of Arrow record batches."""
    places = find_columns(path, None, names, len(names), text, labels, id)
    used = places.used()

    def rows() -> Iterator[tuple[int, Sequence[Any]]]:
        number = 0
        for batch in batches:
            # Files can lie about offsets and lengths; nothing else looks at them.
            batch.validate(full=True)
            for start in range(0, batch.num_rows, _ROWS_AT_ONCE):
                part = batch.slice(start, _ROWS_AT_ONCE)
                columns = [part.column(place).to_pylist() for place in used]
                for cells in zip(*columns, strict=True):
                    number += 1
                    yield number, cells

    yield from table_rows(path, rows(), places.among(used), label_separator, tell_missing=True)


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
        raise DataFormatError(path, None, f"not a readable Parquet or Arrow file: {reason}; write it again") from None
