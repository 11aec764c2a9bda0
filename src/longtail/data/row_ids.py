"""Ids of rows: the name of a row or, without one, a digest of its text; corrections find a row by its id."""

from __future__ import annotations

from hashlib import sha256

_DIGITS = 32


def row_id(text: str) -> str:
    """The id of a text that has no id of its own: the first 32 hexadecimal digits of its SHA-256 in UTF-8.

    >>> row_id("a red apple")
    'c0c74b7a9019def6defa7d500b52ec76'
    """
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
