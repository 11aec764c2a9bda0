"""Files of data: the format of each, told by its name, the options of its reader, and its rows one at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

from longtail.data.formats.arrow import iter_arrow
from longtail.data.formats.delimited import iter_delimited
from longtail.data.formats.excel import AS_CSV, iter_excel
from longtail.data.formats.jsonl import Record, iter_jsonl
from longtail.data.formats.tables import TableRow
from longtail.data.streams import suffix_of
from longtail.errors import InvalidInput
from longtail.files import PathName

EXTENSIONS = {
    ".txt": "repository",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "delimited",
    ".tsv": "delimited",
    ".tab": "delimited",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".arrows": "arrow",
    ".xlsx": "excel",
    ".xlsm": "excel",
    ".npz": "scipy",
    ".arff": "arff",
}
_SHEET = "save the sheet as CSV UTF-8 or .xlsx"
_EXPORT = "export it as CSV"
_DOCUMENT = "put each text with its labels in a row of a spreadsheet, and save it as CSV UTF-8"
_REFUSED = {
    ".xls": f"is in the old format of Excel; save it as .xlsx or as CSV ({AS_CSV})",
    ".xlsb": f"is a binary workbook; save it as .xlsx or as CSV ({AS_CSV})",
    ".ods": f"is a sheet of LibreOffice; {_SHEET}: File > Save As > Text CSV, character set UTF-8",
    ".numbers": "is a sheet of Numbers; export it: File > Export To > CSV, text encoding UTF-8",
    ".docx": f"is a document, not a table; {_DOCUMENT}",
    ".doc": f"is a document, not a table; {_DOCUMENT}",
    ".odt": f"is a document, not a table; {_DOCUMENT}",
    ".pdf": f"is a document, not a table; copy its texts out, for example with pdftotext, and {_DOCUMENT}",
    ".json": 'is not a format of rows; write one object per line, {"text": "...", "labels": ["..."]}, to a .jsonl '
    "file; `jq -c '.[]'` makes such lines of a list of objects",
    ".pkl": "holds Python objects, which are never loaded; write the data as .parquet, .jsonl or .csv",
    ".pickle": "holds Python objects, which are never loaded; write the data as .parquet, .jsonl or .csv",
    ".zip": "is an archive; unpack it",
    ".db": f"is a database; {_EXPORT}",
    ".sqlite": f"is a database; {_EXPORT}",
}
_JSON_NAMES = {"text": "text_key", "labels": "labels_key", "id": "id_key"}
_READERS: dict[str, Callable[..., Iterator[Record] | Iterator[TableRow]]] = {
    "jsonl": iter_jsonl,
    "delimited": iter_delimited,
    "parquet": iter_arrow,
    "arrow": iter_arrow,
    "excel": iter_excel,
}
TEXT_FORMATS = tuple(_READERS)


@dataclass(frozen=True)
class Source:
    """A file of rows, and how to read it: the format and the options of `longtail.data.read_corpus`."""

    path: PathName
    format: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def facts(self) -> dict[str, Any]:
        """What tells the file from others."""
        found = os.stat(self.path)
        options = {name: str(value) for name, value in self.options.items()}
        return {"path": os.path.abspath(self.path), "bytes": found.st_size, "changed": found.st_mtime_ns, **options}


Data = PathName | Source | Sequence[PathName | Source]


def format_of(path: PathName) -> str | None:
    """The format that belongs to the extension of a file, or None.

    >>> format_of("notes.jsonl.gz")
    'jsonl'
    """
    return EXTENSIONS.get(suffix_of(path))


def known_format(path: PathName, format: str | None, known: Iterable[str]) -> str:
    """The format of a file; an unknown one is an error that says what to do."""
    chosen = format_of(path) if format is None else format
    known = list(known)
    if chosen in known:
        assert chosen is not None
        return chosen
    suffix = suffix_of(path)
    if format is None and suffix in _REFUSED:
        raise InvalidInput(f"{path} {_REFUSED[suffix]}", code="refused_format", path=path)
    extensions = ", ".join(f"{end} ({name})" for end, name in EXTENSIONS.items() if name in known)
    what = f"the extension {suffix!r} of {path}" if format is None else f"the format {format!r}"
    raise InvalidInput(
        f"{what} is unknown; the known extensions are {extensions}. Or set format= (--format on the command line)",
        code="unknown_format",
        path=path,
    )


def reader_options(format: str | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options for the reader of a format: JSON lines call columns keys."""
    if format != "jsonl":
        return dict(options)
    renamed = {_JSON_NAMES.get(name, name): value for name, value in options.items()}
    if "labels_key" in renamed and renamed["labels_key"] is None:
        renamed = {"unknown": "ignore", **renamed}
    return renamed


def sources_of(data: Data, format: str | None = None, options: Mapping[str, Any] | None = None) -> list[Source]:
    """The files to read; of several, each takes those of the options that its reader knows."""
    options = options or {}
    if isinstance(data, Source):
        return [data]
    if isinstance(data, str | os.PathLike):
        return [Source(data, format, reader_options(format or format_of(data), options))]
    found, used = [], set()
    for each in data:
        if isinstance(each, Source):
            found.append(each)
            continue
        reader = _READERS.get(format or format_of(each) or "")
        renamed = reader_options(format or format_of(each), options)
        known = renamed if reader is None else signature(reader).parameters
        used |= {name for name in options if _JSON_NAMES.get(name, name) in known or name in known}
        found.append(Source(each, format, {name: value for name, value in renamed.items() if name in known}))
    if not found:
        raise InvalidInput("there is no file to read", code="no_rows")
    if unused := [name for name in options if name not in used]:
        raise InvalidInput(f"{unused[0]} is no option of the readers of these files")
    return found


def records_of(source: Source) -> Iterator[Record]:
    """The rows of a file of texts."""
    chosen = format_of(source.path) if source.format is None else source.format
    if chosen in ("repository", "scipy", "arff"):
        raise InvalidInput(f"{source.path} is not a file of texts; its format is {chosen}")
    reader = _READERS[known_format(source.path, source.format, _READERS)]
    rows = reader(source.path, **source.options)
    if reader is iter_jsonl:
        return rows  # type: ignore[return-value]
    return (Record(row.line, row.text, tuple(row.labels), row.row_name) for row in rows)
