"""`writing_table`: a table as the kind of file that its name says, which appears when it is complete."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from longtail.data.columns import Column
from longtail.data.streams import suffix_of
from longtail.data.tables.parquet import parquet_writer, require_arrow
from longtail.data.tables.writers import Write, delimited_writer, jsonl_writer
from longtail.errors import InvalidInput
from longtail.files import PathName, check_ending, writing

_PARQUET = ".parquet"
DELIMITERS = {".csv": ",", ".tsv": "\t"}
_ENDINGS = (*DELIMITERS, ".jsonl", _PARQUET)
_REASONS = {
    ".xlsx": "Excel opens .csv files",
    ".xls": "Excel opens .csv files",
    ".ods": "spreadsheet programs open .csv files",
    ".json": "one JSON object per line is called .jsonl",
}


def check_table_file(path: PathName, what: str) -> None:
    """Refuse a name that does not say how to write a table, and a kind of file that cannot be written here.

    `what` is what is written, with its verb: "tags are written".
    """
    check_ending(path, _ENDINGS, what, gzipped=True, reasons=_REASONS)
    if suffix_of(path) == _PARQUET:
        if Path(path).suffix.lower() == ".gz":
            raise InvalidInput(
                f"{path} would be compressed twice, as Parquet compresses its content; leave out .gz",
                code="unknown_ending",
                path=path,
            )
        require_arrow()


@contextmanager
def writing_table(path: PathName, columns: Sequence[Column], *, label_separator: str = ";") -> Iterator[Write]:
    """A function that writes records to a file, which appears when it is complete.

    Parameters
    ----------
    path : str or path-like
        The ending decides: ``.csv``, ``.tsv`` or ``.jsonl``, also with ``.gz``, or ``.parquet``, which needs pyarrow.
    columns : sequence of Column
    label_separator : str
        Between the labels of a row in a ``.csv`` or ``.tsv`` file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "labels.jsonl"
    >>> with writing_table(path, [Column("label"), Column("rows", "whole")]) as write:
    ...     write(["fruit", 3])
    >>> path.read_text()
    '{"label": "fruit", "rows": 3}\\n'
    """
    check_table_file(path, "tables are written")
    if not label_separator:
        raise InvalidInput("label_separator is empty; give the character between the labels of a row")
    ending = suffix_of(path)
    with writing(path) as stream:
        if ending == _PARQUET:
            opened = parquet_writer(stream, columns)
        elif ending in DELIMITERS:
            opened = delimited_writer(stream, columns, DELIMITERS[ending], ending == ".csv", label_separator)
        else:
            opened = jsonl_writer(stream, columns)
        with opened as write:
            yield write
