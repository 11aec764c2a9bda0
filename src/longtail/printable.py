"""Make untrusted text safe to print, in fields, lines and JSON.

Escape sequences can control a terminal, and direction marks can reorder the text around them.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

# Control characters (DEL, C1), line separators and direction marks.
_STEERING = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f"
_SURROGATES = "\ud800-\udfff"
_IN_FIELDS = re.compile(f"[\x00-\x1f{_STEERING}{_SURROGATES}]")
_IN_LINES = re.compile(f"[\x00-\x08\x0b-\x1f{_STEERING}{_SURROGATES}]")
_IN_JSON = re.compile(f"[{_STEERING}]")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def printable(text: str) -> str:
    """A piece of a line, with every control character replaced.

    >>> printable("red\\x1b[2J\\nfruit")
    'red�[2J�fruit'
    """
    return _IN_FIELDS.sub(_REPLACEMENT, text)


def printable_lines(text: str) -> str:
    """Whole lines, with every control character replaced except newlines and tabs.

    >>> printable_lines("red\\x1b[2J\\nfruit")
    'red�[2J\\nfruit'
    """
    return _IN_LINES.sub(_REPLACEMENT, text)


def json_text(value: Any, indent: int | None = None) -> str:
    """JSON that is safe to print and decodes to the same value; NaN and infinity become null.

    Lone surrogates are left for the encoder to reject.

    >>> print(json_text({"label": "caf\\u00e9\\u202e", "score": float("inf")}))
    {"label": "café\\u202e", "score": null}
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    except ValueError:
        text = json.dumps(_finite(value), ensure_ascii=False, allow_nan=False, indent=indent)
    return _IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def counted(count: int, singular: str, plural: str = "") -> str:
    """A number of things in words; the plural has an s more unless given.

    >>> counted(1, "row"), counted(2000, "row"), counted(0, "class", "classes")
    ('1 row', '2,000 rows', '0 classes')
    """
    return f"{count:,} {singular if count == 1 else plural or f'{singular}s'}"


def align(rows: list[list[str]]) -> str:
    """Lines of aligned columns: the first column to the left, the others to the right.

    >>> print(align([["name", "n"], ["a", "10"]]))
    name   n
    a     10
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([first.ljust(widths[0]), *cells]).rstrip())
    return "\n".join(lines)
