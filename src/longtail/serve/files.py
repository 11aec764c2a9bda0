"""`page_files`: the page's files, read once at start and served from memory."""

from __future__ import annotations

from hashlib import sha256
from importlib.resources import files
from typing import NamedTuple

_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
FIRST = "index.html"


class PageFile(NamedTuple):
    """A file as it is sent."""

    content: bytes
    type: str
    etag: str


def page_files() -> dict[str, PageFile]:
    """The files of the page by name; other files that lie beside them are not served.

    Examples
    --------
    >>> page_files()["index.html"].type
    'text/html; charset=utf-8'
    """
    found = {}
    for entry in files("longtail.serve").joinpath("page").iterdir():
        kind = _TYPES.get(entry.name.rpartition(".")[2])
        if kind is not None and entry.is_file():
            content = entry.read_bytes()
            found[entry.name] = PageFile(content, kind, f'"{sha256(content).hexdigest()[:32]}"')
    return found
