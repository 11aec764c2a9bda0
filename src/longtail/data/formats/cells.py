"""Cells of tables: the texts, ids and lists of labels in what CSV files, spreadsheets and data frames hold."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable
from datetime import date, time, timedelta
from decimal import Decimal
from numbers import Integral
from typing import Any

from longtail.data.formats.json_records import FaultError, checked_text

_BRACKETS = {"[": "]", "(": ")", "{": "}"}
# As str() of NumPy and of pandas writes sets and arrays.
_WRAPPED = re.compile(r"(?:frozenset|set|array)\((.*?)(?:,\s*dtype=\w+)?\)", re.DOTALL)
_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_ITEM = re.compile(rf"\s*({_QUOTED}|-?[0-9]+(?:\.[0-9]+)?|None|nan|null)\s*(,|(?=['\"])|$)", re.DOTALL)
_NOTHING = ("None", "nan", "null")


def is_missing(value: Any) -> bool:
    """Whether a cell is empty: None, NaN, or the NA and NaT of pandas."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and value != value


def as_text(value: Any, column: object) -> str:
    """A cell as a text: as it would stand in a CSV file. Whole numbers have no decimal point."""
    if isinstance(value, str):
        return checked_text(value, f"the column {column!r}")
    if is_missing(value):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, Integral | float | Decimal | date | time | timedelta):
        return str(value)
    kind = "bytes" if isinstance(value, bytes) else f"a {type(value).__name__}"
    raise FaultError(f"the column {column!r} holds {kind}; expected a text")


def as_labels(value: Any, separator: str, lists: bool, column: object) -> list[str]:
    """The label names in a cell: a list of them, or a text in which a separator joins them.

    Blanks around labels and empty labels are dropped. With `lists`, a text that looks like a list is one.
    """
    if isinstance(value, str):
        found = parse_list(value) if lists else None
        names: Iterable[str] = value.split(separator) if found is None else found
    elif isinstance(value, dict) or not isinstance(value, Iterable) or isinstance(value, bytes):
        return [name] if (name := as_text(value, column).strip()) else []
    else:
        names = (as_text(item, column) for item in value)
    return [name for part in names if (name := checked_text(part, f"the column {column!r}").strip())]


def as_label(value: Any, column: object) -> list[str]:
    """The one label in a cell, whatever characters it contains; none if the cell is blank."""
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        raise FaultError(
            f"the column {column!r} holds a {type(value).__name__}; expected one label",
            advice=f"if rows can have several labels, name the column: labels={column!r} "
            f"(--label-column {column} on the command line)",
        )
    return [name] if (name := as_text(value, column).strip()) else []


def looks_like_list(cell: str) -> bool:
    """Whether a text looks like a list that has been written as a text; empty lists count."""
    return parse_list(cell) is not None


def parse_list(cell: str) -> list[str] | None:
    """The items of a list as JSON, Python, pandas or NumPy write it; None if the text is no such list.

    >>> parse_list('["red", "ripe fruit"]'), parse_list("('red',)"), parse_list("['red' 'fruit']")
    (['red', 'ripe fruit'], ['red'], ['red', 'fruit'])
    >>> parse_list("red [fruit]")
    """
    inner = cell.strip()
    if inner[-1:] == ")" and (wrapped := _WRAPPED.fullmatch(inner)):
        inner = wrapped[1].strip() or "[]"
    if len(inner) < 2 or _BRACKETS.get(inner[0]) != inner[-1]:
        return None
    items: list[str] = []
    place, stop = 1, len(inner) - 1
    while not inner[place:stop].isspace() and place < stop:
        found = _ITEM.match(inner, place, stop)
        if found is None:
            return None
        try:
            items += _item(found[1])
        except (ValueError, SyntaxError):
            return None
        place = found.end()
    return items


def _item(literal: str) -> list[str]:
    if literal[0] not in "'\"":
        return [] if literal in _NOTHING else [literal]
    if "\\" not in literal:
        return [literal[1:-1]]
    try:
        return [json.loads(literal)] if literal[0] == '"' else [ast.literal_eval(literal)]
    except ValueError:
        return [ast.literal_eval(literal)]
