"""`Column`: the name of a column and what its values are; a list of names as the names of columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

Kind = Literal["text", "whole", "number", "truth", "texts", "json", "labels", "scores"]

_INT64 = range(-(2**63), 2**63)


class Column(NamedTuple):
    """A column of a table.

    Values of the kind ``json`` are of several kinds, or objects. A separator joins ``labels`` and ``scores`` in a cell
    of a delimited file; other lists are written there as JSON.
    """

    name: str
    kind: Kind = "text"


def kind_of(value: Any) -> Kind:
    """The kind of a value of JSON.

    >>> kind_of(3), kind_of(["a"]), kind_of({}), kind_of(True)
    ('whole', 'texts', 'json', 'truth')
    """
    if isinstance(value, str):
        return "text"
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, int):
        return "whole" if value in _INT64 else "json"
    if isinstance(value, float):
        return "number"
    if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
        return "texts"
    return "json"


def joint_kind(before: Kind | None, value: Any) -> Kind | None:
    """The kind of a column of the kind `before`, None at the start, that also has `value`.

    >>> joint_kind("whole", 0.5), joint_kind("text", 3), joint_kind("texts", []), joint_kind(None, None)
    ('number', 'json', 'texts', None)
    """
    if value is None or (value == [] and before == "texts"):
        return before
    kind = kind_of(value)
    if before is None or before == kind:
        return kind
    return "number" if {before, kind} == {"whole", "number"} else "json"


def distinct(names: Iterable[str]) -> list[str]:
    """Names of columns that differ: a repeated one gets a number, and one without a name is called by its place.

    >>> distinct(["a", "b", "a", " "])
    ['a', 'b', 'a (2)', 'column 4']
    """
    found: dict[str, None] = {}
    for place, given in enumerate(names, start=1):
        name = base = given.strip() or f"column {place}"
        number = 1
        while name in found:
            number += 1
            name = f"{base} ({number})"
        found[name] = None
    return list(found)
