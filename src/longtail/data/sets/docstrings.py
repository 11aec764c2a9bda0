"""Docstrings in numpydoc style: their prose as paragraphs, and the names in their See Also section.

The parser drops code, formulas, references and version notes and keeps the description that a person would read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from inspect import cleandoc

_ADMONITIONS = ("note", "warning", "tip", "important", "caution", "attention", "hint")
_UNDERLINE = re.compile(r"[-=]{3,}\s*")
_DIRECTIVE = re.compile(r"\.\.(?:\s+(?P<name>[\w-]+)::)?(?:\s|$)")
_FOOTNOTE = re.compile(r"\[[\w-]+\]_")
_FORMULA = re.compile(r":math:`[^`]*`")
_ROLE = re.compile(r":[\w:+-]+:(?=`)")
_LINK = re.compile(r"`([^`<]*?)\s*<[^`>]*>`_{0,2}")
_SEE_ALSO_NAME = re.compile(r"(?::[\w:]+:)?`?~?([A-Za-z_][\w.]*)`?(?:\(\))?(?:\s*<[^>]*>)?")
_COMMA = re.compile(r"\s*,\s*")
_END_OF_NAMES = re.compile(r"\s*(?::|--?\s|$)")


@dataclass(frozen=True)
class Docstring:
    """The prose and the references of a docstring.

    Parameters
    ----------
    paragraphs : tuple of (str, str)
        Section (summary, description, parameters, returns, notes or examples) and text of each paragraph, in order.
    see_also : tuple of str
        The names of the See Also section as written.
    """

    paragraphs: tuple[tuple[str, str], ...]
    see_also: tuple[str, ...]


def parse_docstring(docstring: str, name: str = "") -> Docstring:
    """Parse a numpydoc docstring.

    Parameters
    ----------
    docstring : str
    name : str
        The last part of the name of the object, used to recognise a signature at the start.

    Examples
    --------
    >>> parse_docstring('''sort(a)
    ...
    ... Put a list in order.
    ...
    ... See Also
    ... --------
    ... argsort, lexsort : Others.
    ... ''', "sort")
    Docstring(paragraphs=(('summary', 'Put a list in order.'),), see_also=('argsort', 'lexsort'))
    """
    sections = _sections(cleandoc(docstring))
    prose = _paragraphs(_without_signatures(sections.get("", []), name))
    paragraphs = [("summary" if number == 0 else "description", text) for number, text in enumerate(prose)]
    for section in ("parameters", "returns"):
        whole = " ".join(_paragraphs(sections.get(section, [])))
        if whole:
            paragraphs.append((section, whole))
    paragraphs += [("notes", text) for text in _paragraphs(sections.get("notes", []))]
    # The text between the code of an example is closest to the words of a user.
    paragraphs += [("examples", text) for text in _paragraphs(sections.get("examples", [])) if len(text.split()) > 3]
    return Docstring(tuple(paragraphs), tuple(_see_also(sections.get("see also", []))))


def _sections(text: str) -> dict[str, list[str]]:
    """Lines by the lower-case title of their section; lines before the first title have the title ''."""
    lines = text.splitlines()
    sections: dict[str, list[str]] = {"": []}
    title = ""
    for number, line in enumerate(lines):
        follower = lines[number + 1] if number + 1 < len(lines) else ""
        if line.strip() and line[0] not in " -=" and _UNDERLINE.fullmatch(follower):
            title = line.strip().lower()
            sections.setdefault(title, [])
        elif not (number and _UNDERLINE.fullmatch(line)):
            sections[title].append(line)
    return sections


def _without_signatures(lines: list[str], name: str) -> list[str]:
    """Drop the calls, such as ``y = sort(a, axis=-1)``, at the start of docstrings of compiled functions."""
    call = re.compile(rf"(?:[\w\s,\[\]]+=\s*)?(?:\w+\.)*{re.escape(name)}\s?\(") if name else None
    start = 0
    while start < len(lines) and call is not None:
        if not lines[start].strip():
            start += 1
            continue
        if not call.match(lines[start]):
            break
        depth = 0
        while start < len(lines):
            depth += lines[start].count("(") - lines[start].count(")")
            start += 1
            if depth <= 0:
                break
    return lines[start:]


def _paragraphs(lines: list[str]) -> list[str]:
    paragraphs: list[str] = []
    current: list[str] = []
    skipped_below: int | None = None
    in_session = False

    def finish() -> None:
        text = _clean(" ".join(current))
        if re.search(r"[^\W\d_]", text):
            paragraphs.append(text)
        current.clear()

    for line in lines:
        stripped = line.strip()
        indent = len(line) - len(line.lstrip())
        if not stripped:
            in_session = False
            finish()
            continue
        if skipped_below is not None:
            if indent > skipped_below:
                continue
            skipped_below = None
        directive = _DIRECTIVE.match(stripped)
        if directive:
            finish()
            if directive["name"] in _ADMONITIONS:
                current.append(stripped[directive.end() :])
            else:
                skipped_below = indent
        elif stripped.startswith(">>>") or in_session:
            in_session = True
        else:
            current.append(stripped)
            if stripped.endswith("::"):
                skipped_below = indent
    finish()
    return paragraphs


def _clean(text: str) -> str:
    text = _FORMULA.sub(" ", text)
    text = _FOOTNOTE.sub(" ", text)
    text = _ROLE.sub("", text)
    text = text.replace("``", "`")
    text = _LINK.sub(r"\1", text)
    text = text.replace("`~", "`").replace("`_", "`")
    text = re.sub(r"::$", ":", text.strip())
    return re.sub(r"\s+", " ", text).strip()


def _see_also(lines: list[str]) -> list[str]:
    names: list[str] = []
    for line in lines:
        if not line.strip() or line[0] == " " or line.startswith(".."):
            continue
        listed: list[str] = []
        position = 0
        while match := _SEE_ALSO_NAME.match(line, position):
            listed.append(match[1].rstrip("."))
            separator = _COMMA.match(line, match.end())
            position = separator.end() if separator else match.end()
            if separator is None:
                break
        if _END_OF_NAMES.match(line, position):
            names += listed
    return list(dict.fromkeys(names))
