"""HTML elements, in which every text is escaped unless it is `Markup`.

Label names and texts are untrusted, so only this module writes angle brackets.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

# Lone surrogates cannot be encoded, and HTML allows no control characters.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
# Where a long word may break: after punctuation between letters or digits.
_JOINTS = re.compile(r"(?<=\w[./:_-])(?=\w)")
_LONG, _OVERLONG = 18, 30
_VOID = {"meta", "br", "line", "rect", "circle", "path", "polyline"}


class Markup(str):
    """Text that is HTML."""

    __slots__ = ()


def escape(text: str) -> Markup:
    """A text as HTML.

    >>> escape("<script>")
    '&lt;script&gt;'
    """
    return (
        text if isinstance(text, Markup) else Markup(html.escape(_UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)))
    )


def join(*children: object) -> Markup:
    """Texts, markup and iterables of them, joined; None is left out."""
    parts = []
    for child in children:
        if child is None:
            continue
        parts.append(escape(child) if isinstance(child, str) else join(*child) if isinstance(child, Iterable) else "")
    return Markup("".join(parts))


def element(tag: str, *children: object, **attributes: str | float | None) -> Markup:
    """An element. In names of attributes, dashes replace underscores; an attribute that is None is left out.

    >>> element("p", "1 < 2", class_="note")
    '<p class="note">1 &lt; 2</p>'
    """
    shown = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(_value(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    if tag in _VOID and not children:
        return Markup(f"<{tag}{shown}>" if tag in ("meta", "br") else f"<{tag}{shown}/>")
    return Markup(f"<{tag}{shown}>{join(*children)}</{tag}>")


def _value(value: str | float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def shortened(text: str, most: int) -> str:
    """The text on one line, cut after a word if it is too long.

    >>> shortened("a  long\\nline of words", 12)
    'a long line…'
    """
    line = " ".join(text[: 8 * most + 1000].split())
    if len(line) <= most:
        return line
    cut = line[: most + 1]
    whole, _, _ = cut.rpartition(" ")
    return (whole if len(whole) > most // 2 else cut[:most]).rstrip() + "…"


def breakable(text: str) -> Markup:
    """Text that breaks between words, in a long word after punctuation, and in an overlong part anywhere.

    >>> breakable("a short.name")
    'a short.name'
    >>> breakable("scipy.sparse.linalg.norm")
    'scipy.<wbr>sparse.<wbr>linalg.<wbr>norm'
    """
    return join(_parts(part) if len(part) > _LONG else part for part in re.split(r"(\s+)", text))


def _parts(word: str) -> Markup:
    parts = (
        element("span", part, class_="long") if len(part) > _OVERLONG else escape(part) for part in _JOINTS.split(word)
    )
    return Markup("<wbr>".join(parts))


def name(text: str, most: int = 100) -> Markup:
    """The name of a label or row, isolated from the direction of the text around it."""
    shown = shortened(text, most)
    return element("bdi", breakable(shown or "(empty)"), title=text[:1000] if shown != text else None)
