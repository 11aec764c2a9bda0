"""The layout that all pages share: the document, tables, and kinds of sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from longtail.report.markup import Markup, element, join
from longtail.report.style import STYLE
from longtail.version import __version__

BEGINNING = "<!doctype html>\n<!-- a longtail report -->\n"
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def document(title: str, *content: object) -> str:
    """A page without scripts or other files."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="generator", content=f"longtail {__version__}"),
        element("title", title),
        element("style", Markup(STYLE)),
    )
    return f"{BEGINNING}{element('html', head, element('body', element('main', *content)), lang='en')}\n"


class Column(NamedTuple):
    """The title of a column and the class of its cells, "n" for numbers."""

    title: str
    kind: str = ""


def numbers(*titles: str) -> list[Column]:
    """Columns of numbers."""
    return [Column(title, "n") for title in titles]


def table(columns: Sequence[Column], rows: Iterable[Sequence[object]]) -> Markup:
    """A table that scrolls if it is too wide."""
    heads = (element("th", title, class_="n" if kind == "n" else None, scope="col") for title, kind in columns)
    lines = (
        element(
            "tr", *(element("td", cell, class_=column.kind or None) for cell, column in zip(row, columns, strict=True))
        )
        for row in rows
    )
    return element(
        "div", element("table", element("thead", element("tr", *heads)), element("tbody", *lines)), class_="wide"
    )


def tiles(pairs: Iterable[tuple[str, str]]) -> Markup:
    """The most important figures, each with what it is."""
    shown = (element("div", element("b", value), element("span", what), class_="tile") for value, what in pairs)
    return element("div", *shown, class_="tiles")


def means(sentence: str) -> Markup:
    """What the figures of a section mean."""
    return element("p", sentence, class_="means")


def note(sentence: str) -> Markup:
    """A remark in small letters."""
    return element("p", sentence, class_="note")


def listed(items: Iterable[Markup], separator: str = ", ") -> Markup:
    """Items on one line."""
    return join(*(join(separator if number else "", item) for number, item in enumerate(items)))


def day(at: str) -> str:
    """A time without seconds."""
    date, _, clock = at.partition("T")
    return f"{date} {clock[:5]} UTC" if clock else at
