"""`Refusal`: a request that is not answered, with the status and the words that the client gets instead."""

from __future__ import annotations

from typing import Any

from longtail.printable import json_text


class Refusal(Exception):
    """Why a request is refused; raised anywhere below the guard, which answers with it.

    Parameters
    ----------
    status : int
    code : str
        For programs: stays the same when the message changes.
    message : str
        For people: what was found, what is expected, what to do.
    headers : dict or None
        Such as ``retry-after``.

    Examples
    --------
    >>> Refusal(404, "not_found", "there is nothing here").body()
    b'{"error": {"code": "not_found", "message": "there is nothing here"}}'
    """

    def __init__(self, status: int, code: str, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = headers or {}

    def body(self) -> bytes:
        """The answer's JSON."""
        return as_json({"error": {"code": self.code, "message": self.message}})


def as_json(content: Any) -> bytes:
    """JSON in UTF-8."""
    return json_text(content).encode("utf-8", "backslashreplace")


def shortened(text: str, length: int = 80) -> str:
    """A piece of a request as a message may repeat it.

    >>> shortened("abc"), shortened("abcdef", 4)
    ("'abc'", "'abcd...'")
    """
    return repr(text if len(text) <= length else text[:length] + "...")
