"""What the command line advises about an error of the library: looked up by the code of the error and its facts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from longtail.errors import DataFormatError, LongtailError

Kind = TypeVar("Kind", bound=LongtailError)

# The same in every command.
_ADVICE = {
    "labels_without_parent": (
        "add them, or choose --missing root to put them below the root or --missing drop to leave them out"
    ),
    "not_updatable": "train it again with `longtail train --updatable`",
    "words_too_rare": "use --min-df 1",
    "no_heads": "leave out --heads; networks with --head cascade, product or kronecker have them",
    "label_has_separator": "choose another one with --label-separator, or --layout tag, or a .jsonl or .parquet file",
}


@dataclass(frozen=True)
class _Reading:
    """What a command does with a file that it reads; see `reading`."""

    plain: str
    grouped: str
    group_column: str | None
    several: bool


def with_advice(error: Kind) -> Kind:
    """The error with the advice that every command gives, if there is any."""
    advice = _ADVICE.get(error.code)
    return error if advice is None else error.advised(advice)


@contextmanager
def reading(
    *, plain: str = "", grouped: str = "", group_column: str | None = None, several: bool = False
) -> Iterator[None]:
    """Add advice to the errors of a reader.

    Parameters
    ----------
    plain : str
        What to do with a file of plain texts.
    grouped : str
        What to do with groups, in a command that does not take them.
    group_column : str or None
        The column that names the group of a row.
    several : bool
        Whether several files are read with the same options.
    """
    try:
        yield
    except DataFormatError as error:
        advise = _OF_READERS.get(error.code)
        advice = "" if advise is None else advise(error, _Reading(plain, grouped, group_column, several))
        if not advice:
            raise
        raise error.advised(advice) from None


def _missing_key(error: LongtailError, reading: _Reading) -> str:
    if error.name == "text" and "texts" in error.found:
        taken = "`longtail assign` and `longtail train` read them without --groups"
        return f"these are groups, not rows: {reading.grouped or taken}"
    if error.name == "texts" and "text" in error.found:
        return "these are rows, not groups: `longtail train` reads them, or give their groups as --groups FILE"
    if reading.several and error.name not in ("text", "labels"):
        return "keys must have the same names in all files, so rename others"
    by_name = {
        "text": "name the key of the text, or of the list of texts of a group: --text-column",
        "texts": "name the key of the list of texts: --text-column",
        "labels": "name the key of the labels: --label-column",
    }
    return by_name.get(error.name or "", "")


def _column(error: LongtailError, reading: _Reading) -> str:
    if error.column == reading.group_column:
        return "name the column of the groups: --group-column"
    if error.code == "ambiguous_column":
        return error.advice
    advice = "name the columns of text and labels: --text-column and --label-column"
    if reading.several:
        return f"{advice}. They must have the same names in all files, so rename others"
    # Without a line, columns always have names.
    return advice if error.line is None else f"{advice}; if the first line has no names, use numbers and --no-header"


def _headerless(error: LongtailError, reading: _Reading) -> str:
    columns = zip(("--text-column", "--label-column"), error.found, strict=False)
    numbers = " ".join(f"{option} {number}" for option, number in columns)
    return f"if it is a row, choose columns by number: --no-header {numbers}"


def _not_utf8(error: LongtailError, reading: _Reading) -> str:
    if error.found:
        return f"save the file as UTF-8, or, if this word is {error.found[0]!r}, add --encoding {error.name}"
    return f"save the file as UTF-8, or add its encoding, such as --encoding {error.name}"


def _no_header(error: LongtailError, reading: _Reading) -> str:
    texts = "texts with labels go into .jsonl, .csv or .tsv, or, if this is a table, use --format delimited"
    return f"a .txt file holds features; {reading.plain or texts}"


def _groups_file(error: LongtailError, reading: _Reading) -> str:
    given = "give the file of its rows as DATA, and this one as --groups"
    return f"this is a groups file: {reading.grouped or given}"


_OF_READERS: dict[str, Callable[[LongtailError, _Reading], str]] = {
    "missing_key": _missing_key,
    "missing_column": _column,
    "ambiguous_column": _column,
    "not_json": lambda error, reading: reading.plain,
    "not_an_object": lambda error, reading: (
        "JSON lines have one object per line, not one list of all objects; `jq -c '.[]'` makes them of it"
    ),
    "headerless": _headerless,
    "no_header": _no_header,
    "no_id": lambda error, reading: "name the column of the ids: --id-column",
    "texts_differ": lambda error, reading: "make them equal, or leave out --merge-by",
    "not_utf8": _not_utf8,
    "groups_file": _groups_file,
}
