"""`ReaderOptions`: how commands read files, as options of their readers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import click

from longtail.cli.options import flag_of, option
from longtail.errors import InvalidInput

if TYPE_CHECKING:
    from longtail.data import Source

FORMATS = ("jsonl", "delimited", "parquet", "arrow", "excel", "repository", "scipy", "arff")
GROUPS = "groups in JSON lines"


@dataclass(frozen=True)
class ReaderOptions:
    """How to read a file, where its name does not say enough."""

    section = "Data"

    format: str | None = option(type=click.Choice(FORMATS), help="Format of DATA.  [default: from the file extension]")
    text_column: str | None = option(
        metavar="NAME",
        help="Key or column of the text; columns also by number, counted from 0. Several, such as title,abstract, are "
        "joined.  [default: text]",
    )
    label_column: str | None = option(metavar="NAME", help="Key or column of the labels.  [default: labels]")
    id_column: str | None = option(
        metavar="NAME", help="Key or column of the ids of rows.  [default: id, if there is one]"
    )
    label_separator: str | None = option(help="Separator between labels in one cell of a table.  [default: ;]")
    merge_by: str | None = option(
        type=click.Choice(["id"]), help="Make one row of rows with the same id, for files with a row for each label."
    )
    no_header: bool = option(
        is_flag=True, default=False, help="The first line of a table is a row, and columns are numbers."
    )
    sheet: str | None = option(metavar="NAME", help="Sheet of a workbook.  [default: the first]")
    encoding: str | None = option(
        metavar="NAME", help="Encoding of text files without a byte-order mark, e.g. cp1252.  [default: UTF-8]"
    )

    def for_format(self, format: str | None, labelled: bool) -> dict[str, Any]:
        """The options for the reader of `format`; an option that the reader does not have is an error."""
        known = _NAMES.get(format or "", {})
        for name in self.given():
            if name not in known:
                raise InvalidInput(f"{flag_of(ReaderOptions, name)} does not apply to the format {format}")
        options = {known[name]: getattr(self, name) for name in self.given()}
        if self.no_header:
            options["header"] = False
        if not labelled and format == "jsonl":
            options |= {"labels_key": None, "unknown": "ignore"}
        elif not labelled and format in _TABLES:
            options["labels"] = None
        return options

    def given(self) -> list[str]:
        """The names of the options of readers that are not left at their defaults."""
        return [name for name in _GIVEN if getattr(self, name) != getattr(ReaderOptions, name)]

    def arguments(self) -> list[str]:
        """The arguments of a command that give these options."""
        found = []
        for field in fields(self):
            value = getattr(self, field.name)
            if value != field.default:
                found += [flag_of(ReaderOptions, field.name), *([] if value is True else [str(value)])]
        return found

    def sources(self, data: Sequence[str], labelled: bool = True) -> list[Source]:
        """The files to read, each with those of the options that its format has; each option must apply to one."""
        from longtail.data import Source, format_of

        formats = [self.format or format_of(path) for path in data]
        found = []
        for path, format in zip(data, formats, strict=True):
            apart = len(set(formats)) > 1
            others = [name for name in self.given() if apart and name not in _NAMES.get(format or "", {})]
            for name in others:
                if not any(name in _NAMES.get(other or "", {}) for other in formats):
                    raise InvalidInput(f"{flag_of(ReaderOptions, name)} does not apply to any of these files")
            own = replace(self, **{name: getattr(ReaderOptions, name) for name in others})
            found.append(Source(path, self.format, own.for_format(format, labelled)))
        return found


# What readers call the options.
_TABLE = {"text_column": "text", "label_column": "labels", "id_column": "id", "label_separator": "label_separator"}
_TABLES = ("delimited", "parquet", "arrow", "excel")
_NAMES: dict[str, dict[str, str]] = {
    "jsonl": {"text_column": "text_key", "label_column": "labels_key", "id_column": "id_key", "encoding": "encoding"},
    GROUPS: {"text_column": "texts_key", "label_column": "labels_key"},
    "delimited": {**_TABLE, "no_header": "header", "encoding": "encoding"},
    "parquet": _TABLE,
    "arrow": _TABLE,
    "excel": {**_TABLE, "no_header": "header", "sheet": "sheet"},
}
_GIVEN = ("text_column", "label_column", "id_column", "label_separator", "no_header", "sheet", "encoding")
