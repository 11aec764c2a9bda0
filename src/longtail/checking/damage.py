"""Damage to texts and names: characters that were lost or decoded wrongly, and marks that other programs left."""

from __future__ import annotations

import re
from html.entities import html5
from typing import NamedTuple

_EXCERPT = 30

# The bytes 80 to BF, which continue a character in UTF-8, as Latin-1 and Windows-1252 read them.
_CONTINUING = "\x80-\xbf" + bytes(range(0x80, 0xC0)).decode("cp1252", "ignore")
# UTF-8 read as Latin-1 or Windows-1252: accented Latin letters, quotes and dashes, then Cyrillic and Greek, where one
# pair of characters alone may be meant.
_MOJIBAKE = re.compile(
    f"[\xc2\xc3][{_CONTINUING}]|\xe2[\x80\u20ac][{_CONTINUING}]|(?:[\xce\xcf][{_CONTINUING}]){{2}}"
    f"|(?:[\xd0\xd1][{_CONTINUING}]){{2}}"
)
_LEADING = re.compile("[\xc2\xc3\xce\xcf\xd0\xd1\xe2]")  # much faster to search for
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_ENTITY = re.compile(r"&(?:([A-Za-z][A-Za-z0-9]{1,30};)|#[0-9]{1,7};|#[xX][0-9A-Fa-f]{1,6};)")
_LOST = "\N{REPLACEMENT CHARACTER}"


class Damage(NamedTuple):
    """A code of `DAMAGE`, and the damaged place with a few characters around it."""

    code: str
    excerpt: str


# The code of each damage: what rows contain, and what to do.
DAMAGE = {
    "lost_characters": (
        "the character U+FFFD, which stands for a lost character",
        "Export the data again as UTF-8; the lost characters cannot be recovered from this file.",
    ),
    "wrong_encoding": (
        "characters such as 'Ã©', which are UTF-8 read in another encoding",
        "Export the data again as UTF-8, or repair the texts, for example with the Python package ftfy.",
    ),
    "control_characters": (
        "control characters",
        "Export the data again as UTF-8 if they stand for quotes and dashes; else remove them, as they split words.",
    ),
    "html_entities": (
        "HTML entities such as '&amp;'",
        "Replace them by their characters, for example with html.unescape in Python.",
    ),
}


def damages(text: str) -> list[Damage]:
    """The kinds of damage in a text, each once.

    >>> [damage.code for damage in damages("caf\\u00c3\\u00a9 &amp; cr\\ufffdme")]
    ['lost_characters', 'wrong_encoding', 'html_entities']
    >>> damages("caf\\u00e9 AT&T; \\u00c9t\\u00e9")
    []
    """
    found = []
    if not text.isascii():
        if (place := text.find(_LOST)) >= 0:
            found.append(Damage("lost_characters", _around(text, place)))
        lead = _LEADING.search(text)
        if lead is not None and (pair := _MOJIBAKE.search(text, lead.start())) is not None:
            found.append(Damage("wrong_encoding", _around(text, pair.start())))
    if not text.isprintable() and (control := _CONTROL.search(text)) is not None:
        found.append(Damage("control_characters", _around(text, control.start())))
    if "&" in text:
        for entity in _ENTITY.finditer(text):
            if entity[1] is None or entity[1] in html5:
                found.append(Damage("html_entities", _around(text, entity.start())))
                break
    return found


def _around(text: str, place: int) -> str:
    return text[max(0, place - _EXCERPT) : place + _EXCERPT]
