"""The files of the web page, as routes."""

from __future__ import annotations

from hashlib import sha256
from importlib.resources import files
from typing import NamedTuple

from fastapi import APIRouter, Request, Response

from longtail.serve.refusal import Refusal

_INDEX = "index.html"
_FILE_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


class PageFile(NamedTuple):
    """A file of the page as it is sent."""

    content: bytes
    type: str
    etag: str


def add_page(router: APIRouter) -> None:
    """Add the page at ``/``, and its other files below ``/page``."""
    pages = page_files()

    async def page(request: Request) -> Response:
        file = pages.get(request.path_params.get("name", _INDEX))
        if file is None:
            raise Refusal("not_found", "the page has no such file")
        headers = {"etag": file.etag, "cache-control": "no-cache", "content-type": file.type}
        if file.etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(file.content, headers=headers)

    for path in ("/", "/page/{name}"):
        router.add_route(path, page, methods=["GET"], include_in_schema=False)


def page_files() -> dict[str, PageFile]:
    """The files of the page by name, read once; files of other types are not served.

    Examples
    --------
    >>> page_files()["index.html"].type
    'text/html; charset=utf-8'
    """
    found = {}
    for entry in files("longtail.serve").joinpath("page").iterdir():
        kind = _FILE_TYPES.get(entry.name.rpartition(".")[2])
        if kind is not None and entry.is_file():
            content = entry.read_bytes()
            found[entry.name] = PageFile(content, kind, f'"{sha256(content).hexdigest()[:32]}"')
    return found
