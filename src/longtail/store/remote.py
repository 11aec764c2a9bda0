"""Directories in object stores, through fsspec: read into the cache, and written so that the manifest comes last.

fsspec is imported only when a URL is used. Its packages raise errors of many kinds; each becomes one of ours, with a
text of our own, because theirs may quote credentials.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit
from urllib.request import url2pathname

from longtail import progress
from longtail.errors import InvalidInput, LongtailError, ModelFormatError, Unavailable
from longtail.files import PathName, is_url
from longtail.store import cache, files
from longtail.store.layout import StoredFile

_BLOCK = 2**24
_MOST_PARTS = 9_000  # S3 takes 10,000 parts of an object


class RemoteDirectory:
    """A directory in an object store; its methods raise `FileNotFoundError` for an object that is not there."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._scheme, _, rest = url.partition("://")
        if not rest.strip("/"):
            raise InvalidInput(f"{url} names no bucket and no folder")
        user, at, _ = rest.partition("/")[0].rpartition("@")
        # In abfs URLs, the name of a container precedes the @.
        if (at and (":" in user or self._scheme.startswith("http"))) or "?" in rest:
            raise InvalidInput(
                f"a {self._scheme} URL has a password or a query; give only the bucket and the folder, and credentials "
                f"in the way of the package for {self._scheme}, such as environment variables",
                code="credentials_in_url",
            )
        try:
            from fsspec.core import url_to_fs
        except ImportError:
            raise Unavailable(
                f"{self.url} needs the package fsspec; install it with: pip install 'longtail[storage]'",
                code="missing_package",
                name="fsspec",
            ) from None
        with self._asking():
            self._store, self._root = url_to_fs(self.url)
            self._store.invalidate_cache()

    def __str__(self) -> str:
        return self.url

    def read(self, name: str, limit: int) -> bytes:
        """The first bytes of an object."""
        with self._asking(), self._store.open(self._path(name), "rb") as file:
            return bytes(file.read(limit))

    def fetched(self, stored: StoredFile, *, verify: bool) -> Path:
        """The cached copy of a file; it is fetched if it is not there, and compared with its checksum."""
        return cache.put(
            stored, lambda folder: files.write_file(folder, stored.name, self._checked(stored)), verify=verify
        )

    def _checked(self, stored: StoredFile) -> Iterator[bytes]:
        digest, left = sha256(), stored.length
        with (
            progress.task("fetching", total=stored.length) as advance,
            self._asking(),
            self._store.open(self._path(stored.name), "rb", block_size=_BLOCK) as file,
        ):
            # One byte more than there should be, to notice a longer object.
            while block := file.read(min(_BLOCK, left + 1)):
                digest.update(block)
                left -= len(block)
                if left < 0:
                    break
                yield block
                advance(len(block))
        if left or digest.hexdigest() != stored.sha256:
            raise ModelFormatError(f"{stored.name} does not match its checksum: it was damaged or replaced")

    def size(self, name: str) -> int | None:
        """The bytes of an object; None if it is not there."""
        try:
            with self._asking():
                return int(self._store.info(self._path(name))["size"])
        except FileNotFoundError:
            return None

    def names(self) -> list[str]:
        """The names of the objects and folders in the directory."""
        try:
            with self._asking():
                found = [str(each).rstrip("/") for each in self._store.ls(self._root, detail=False)]
        except FileNotFoundError:
            return []
        return [PurePosixPath(each).name for each in found if each != self._root.rstrip("/")]

    def saved_at(self, name: str) -> datetime:
        """When an object was written."""
        with self._asking():
            found: datetime = self._store.modified(self._path(name))
        return found.astimezone(UTC)

    def write(self, name: str, content: bytes) -> None:
        """Write a small object in one step."""
        with self._asking():
            self._store.pipe_file(self._path(name), content)

    def upload(self, stored: StoredFile, source: Path, advance: progress.Advance) -> None:
        """Upload a file in blocks, unless an object of this name, which holds the checksum, has its size already."""
        if self.size(stored.name) == stored.length:
            advance(stored.length)
            return
        size = _BLOCK * (1 + stored.length // (_BLOCK * _MOST_PARTS))
        # A part that an interruption leaves has another size, so the next save replaces it.
        with (
            open(source, "rb") as blocks,
            self._asking(),
            self._store.open(self._path(stored.name), "wb", block_size=size) as file,
        ):
            while block := blocks.read(size):
                file.write(block)
                advance(len(block))

    def remove(self, name: str) -> None:
        """Remove an object; one that cannot be removed stays."""
        with suppress(LongtailError, FileNotFoundError), self._asking():
            self._store.rm_file(self._path(name))

    def check_writable(self) -> None:
        """Raise an error unless objects can be written."""
        name = f".longtail-{secrets.token_hex(8)}.tmp"
        self.write(name, b"")
        self.remove(name)

    def _path(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}"

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Turn the errors of a store into ours."""
        try:
            yield
        except LongtailError:
            raise
        except FileNotFoundError as error:
            if self._lacks_bucket():
                raise Unavailable(f"{self.url}: there is no such bucket", code="no_bucket") from None
            raise FileNotFoundError(f"{self.url} lacks an object") from error
        except Exception as error:
            raise self._told(error) from None

    def _lacks_bucket(self) -> bool:
        bucket = self._root.partition("/")[0]
        # In stores without buckets, names begin with a slash or a scheme.
        if not bucket or "://" in self._root:
            return False
        try:
            return not self._store.exists(bucket)
        except Exception:
            return False

    def _told(self, error: Exception) -> LongtailError:
        kinds = " ".join(kind.__name__ for kind in type(error).__mro__)
        if isinstance(error, ImportError):
            package = {"s3": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "abfs": "adlfs", "az": "adlfs"}.get(self._scheme)
            needed = package or f"the package that fsspec needs for {self._scheme}"
            return Unavailable(
                f"{self.url} needs {needed}, which is not installed; install it with pip",
                code="missing_package",
                name=package,
            )
        if isinstance(error, ValueError) and not hasattr(self, "_store"):
            return InvalidInput(f"{self.url}: fsspec does not know {self._scheme} URLs, or this URL is malformed")
        if isinstance(error, PermissionError) or "Credential" in kinds:
            return Unavailable(
                f"{self.url}: access was denied; check the credentials, and that they allow to list, read and write",
                code="access_denied",
            )
        if isinstance(error, TimeoutError) or "Connect" in kinds or "Timeout" in kinds:
            return Unavailable(
                f"{self.url}: the object store does not answer; check its address and the network", code="no_answer"
            )
        return Unavailable(f"{self.url}: the object store failed ({type(error).__name__})", code="store_failed")


Place = Path | RemoteDirectory


def place_of(directory: PathName) -> Place:
    """A directory of this machine or, for a URL, of an object store; a file URL is a directory of this machine.

    >>> place_of("file:///models/new").as_posix()
    '/models/new'
    """
    if not is_url(directory):
        return Path(directory)
    url = os.fspath(directory)
    parts = urlsplit(url)
    return Path(url2pathname(parts.path)) if parts.scheme.lower() == "file" else RemoteDirectory(url)


def read_beginning(place: Place, name: str, limit: int) -> bytes:
    """The first bytes of a file or object."""
    if isinstance(place, RemoteDirectory):
        return place.read(name, limit)
    with files.open_plain(place / name) as file:
        return file.read(limit)
