"""Writing files, each of which appears only when it is complete; where unfinished work and cached files go; URLs."""

from __future__ import annotations

import gzip
import os
import re
import secrets
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO, cast

from longtail.errors import InvalidInput, Unavailable, no_room, reason

PathName = str | os.PathLike[str]
# A scheme has at least two letters: C:/ is a drive.
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


def is_url(path: PathName) -> bool:
    """Whether a path is a URL, such as ``s3://bucket/model``.

    >>> is_url("s3://bucket/model"), is_url("C:/model")
    (True, False)
    """
    return isinstance(path, str) and _URL.match(path) is not None


def unfinished(target: PathName, folder: PathName | None = None) -> Path:
    """The folder of unfinished work on a directory: in `folder`, else beside it, or for a URL in the current folder.

    >>> unfinished("s3://bucket/model", "work").name
    'model.unfinished'
    """
    path = PurePosixPath(target).name if is_url(target) else target
    beside = Path(os.path.abspath(path))
    return Path(os.path.abspath(folder or beside.parent), f"{beside.name}.unfinished")


def ending_of(path: PathName) -> str:
    """The ending of a name in lower case; that before ``.gz`` belongs to it.

    >>> ending_of("Notes.JSONL.gz"), ending_of("report.html"), ending_of("notes")
    ('.jsonl.gz', '.html', '')
    """
    name = Path(path).name.lower()
    bare = name.removesuffix(".gz")
    return Path(bare).suffix + name[len(bare) :]


def check_ending(
    path: PathName,
    known: Sequence[str],
    what: str,
    *,
    gzipped: bool = False,
    reasons: Mapping[str, str] | None = None,
) -> None:
    """Refuse a file whose name does not end as its content demands.

    Parameters
    ----------
    path : str or path-like
    known : sequence of str
        The endings that are right, such as ``.csv``; an empty one allows a name without an ending.
    what : str
        What is written, with its verb: "tags are written".
    gzipped : bool
        Whether ``.gz`` may follow.
    reasons : mapping of str to str or None
        What to say about certain wrong endings.

    Examples
    --------
    >>> check_ending("tags.CSV.gz", [".csv"], "tags are written", gzipped=True)
    >>> check_ending("tags.xlsx", [".csv", ".tsv"], "tags are written", reasons={".xlsx": "Excel opens .csv files"})
    Traceback (most recent call last):
    ...
    longtail.errors.InvalidInput: tags are written as .csv or .tsv, not as tags.xlsx: Excel opens .csv files
    """
    ending = ending_of(path)
    if (ending.removesuffix(".gz") if gzipped else ending) in known:
        return
    *others, last = (end or "a name without an ending" for end in known)
    listed = f"{', '.join(others)} or {last}" if others else last
    why = (reasons or {}).get(ending, "")
    raise InvalidInput(
        f"{what} as {listed}{', also with .gz' if gzipped else ''}, not as {path}{': ' if why else ''}{why}",
        code="unknown_ending",
        path=path,
    )


@contextmanager
def whole_file(path: PathName, *, parents: bool = False) -> Iterator[BinaryIO]:
    """A binary file that takes its name when the block ends well, and vanishes if it does not.

    Parameters
    ----------
    path : str or path-like
        An existing file is replaced.
    parents : bool
        Whether to create missing folders.
    """
    target = Path(path)
    if parents:
        target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")
    try:
        opened = open(temporary, "xb")  # noqa: SIM115 - closed below, apart from errors of opening
    except OSError as error:
        raise InvalidInput(f"cannot write {target}: {reason(error)}", path=target) from None
    try:
        with opened as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException as error:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        if isinstance(error, UnicodeEncodeError):
            raise InvalidInput(f"cannot write {target}: a text or name holds half of a surrogate pair") from None
        if isinstance(error, OSError) and no_room(error):
            raise Unavailable(f"cannot write {target}: {reason(error)}", path=target) from None
        raise


@contextmanager
def writing(path: PathName) -> Iterator[IO[bytes]]:
    """Like `whole_file`, gzipped if the name ends in ``.gz``."""
    with whole_file(path) as stream:
        if Path(path).suffix != ".gz":
            yield stream
            return
        # A fixed time and no name make equal content equal bytes.
        with gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0, compresslevel=6) as zipped:
            yield cast(IO[bytes], zipped)


def cache_directory() -> Path:
    """The folder for files that can be built or downloaded again, which need not exist.

    `$LONGTAIL_CACHE` if it is set, else the platform's folder for such files.
    """
    chosen = os.environ.get("LONGTAIL_CACHE")
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        home = os.environ.get("LOCALAPPDATA")
        return (Path(home) if home else Path.home() / "AppData" / "Local") / "longtail" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "longtail"
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "longtail"
