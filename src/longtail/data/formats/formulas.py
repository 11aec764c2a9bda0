"""Cells of tables for spreadsheet programs: what they would run as a formula is disarmed, and read back as it was.

An apostrophe in front makes a cell a text. It is added to cells that begin like a formula and are not numbers.
"""

from __future__ import annotations

import re

# The first characters of formulas, also in full width; Excel skips tabs and line ends before them.
_FORMULA = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")


def disarmed(cell: str) -> str:
    """A cell that no program runs as a formula.

    >>> disarmed("=1+1"), disarmed("-5"), disarmed("- five"), disarmed("five")
    ("'=1+1", '-5', "'- five", 'five')
    """
    return f"'{cell}" if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell) else cell


def kept_apart(cell: str) -> str:
    """A cell as `restored` gives it back: one that looks disarmed already gets another apostrophe.

    >>> kept_apart("=1+1"), kept_apart("'=1+1")
    ('=1+1', "''=1+1")
    """
    return f"'{cell}" if cell[:1] == "'" and _FORMULA.match(cell) else cell


def restored(cell: str) -> str:
    """The cell before it was disarmed.

    >>> restored("'=1+1"), restored("'tis")
    ('=1+1', "'tis")
    """
    return cell[1:] if cell[:1] == "'" and _FORMULA.match(cell) else cell
