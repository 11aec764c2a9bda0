"""`writing_tags`: a file of tags of the kind that its name says, which appears when it is complete."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from longtail.data.columns import Column
from longtail.data.streams import suffix_of
from longtail.data.tagged.parquet import parquet_writer, require_arrow
from longtail.data.tagged.table import Layout, TaggedRow, TagTable
from longtail.data.tagged.writers import delimited_writer, jsonl_writer
from longtail.errors import InvalidInput
from longtail.files import PathName, check_ending, writing

_PARQUET = ".parquet"
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_ENDINGS = (*_DELIMITERS, ".jsonl", _PARQUET)
_REASONS = {
    ".xlsx": "Excel opens .csv files",
    ".xls": "Excel opens .csv files",
    ".ods": "spreadsheet programs open .csv files",
    ".json": "one JSON object per line is called .jsonl",
}


def check_tag_file(path: PathName) -> None:
    """Refuse a name that does not say how to write tags, and a kind of file that cannot be written here."""
    check_ending(path, _ENDINGS, "tags are written", gzipped=True, reasons=_REASONS)
    if suffix_of(path) == _PARQUET:
        if Path(path).suffix.lower() == ".gz":
            raise InvalidInput(
                f"{path} would be compressed twice, as Parquet compresses its content; leave out .gz",
                code="unknown_ending",
                path=path,
            )
        require_arrow()


def joins_labels(path: PathName, layout: Layout) -> bool:
    """Whether the labels of a row go into one cell of the file, joined by a separator."""
    return layout == "row" and suffix_of(path) in _DELIMITERS


@contextmanager
def writing_tags(
    path: PathName,
    *,
    layout: Layout = "row",
    kept: Sequence[Column] | None = None,
    with_texts: bool = True,
    label_separator: str = ";",
) -> Iterator[Callable[[TaggedRow], None]]:
    """A function that writes rows with their tags to a file, which appears when it is complete.

    Parameters
    ----------
    path : str or path-like
        The ending decides: ``.csv``, ``.tsv`` or ``.jsonl``, also with ``.gz``, or ``.parquet``, which needs pyarrow.
    layout : {"row", "tag"}
        One record for each row, with all its labels; or one for each tag, with rank, label and score.
    kept : sequence of Column or None
        Original columns to keep in front, in place of id and text, see `read_originals`.
    with_texts : bool
        Whether the rows have texts.
    label_separator : str
        Between the labels of a row in a ``.csv`` or ``.tsv`` file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "tags.tsv"
    >>> with writing_tags(path) as write:
    ...     write(TaggedRow("a", "a red apple", [("fruit", 0.9), ("red", 0.8)]))
    >>> path.read_text().splitlines()
    ['id\\ttext\\tlabels\\tscores', 'a\\ta red apple\\tfruit;red\\t0.9;0.8']
    """
    check_tag_file(path)
    if not label_separator:
        raise InvalidInput("label_separator is empty; give the character between the labels of a row")
    table, ending = TagTable(layout, kept, with_texts), suffix_of(path)
    with writing(path) as stream:
        if ending == _PARQUET:
            opened = parquet_writer(stream, table)
        elif ending in _DELIMITERS:
            opened = delimited_writer(stream, table, _DELIMITERS[ending], ending == ".csv", label_separator)
        else:
            opened = jsonl_writer(stream, table)
        with opened as write_record:

            def write(row: TaggedRow) -> None:
                for record in table.records(row):
                    write_record(record)

            yield write
