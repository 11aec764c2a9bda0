"""The cache folder: where it is, and how a file gets into it whole or not at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from longtail.data.streams import whole_file


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
    """Like `whole_file`, in a folder that is made where it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        yield file
