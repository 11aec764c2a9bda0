"""The cache folder: where it is, and how a file gets into it whole or not at all."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def cache_directory() -> Path:
    """The folder for what can be built or fetched again: `$LONGTAIL_CACHE`, else the platform's place for such files.

    The folder need not exist.
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


@contextmanager
def written_whole(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that takes the name `path` if the block ends well, and vanishes if it does not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
