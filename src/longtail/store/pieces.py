"""`Pieces`: results of long work, kept piece by piece, so that work that was interrupted goes on where it stopped."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from longtail.errors import InvalidInput, LongtailError, ModelFormatError, Unavailable, reason
from longtail.store.files import LOCK, is_ours, sync_directory, write_file
from longtail.store.layout import NAME, plain_value
from longtail.store.read import read_model
from longtail.store.state import State
from longtail.store.write import write_model

_JOB = "job.json"


class Pieces:
    """A folder of finished pieces: each is whole and sound, or is made again.

    Parameters
    ----------
    folder : Path
        A new folder, or one of the same job.
    job : mapping
        Plain values that tell what the pieces are made from: input, options and versions.

    Raises
    ------
    InvalidInput
        If the folder belongs to another job, or holds something else.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> pieces = Pieces(Path(tempfile.mkdtemp()) / "work", {"rows": 3})
    >>> made = pieces.get("sums", lambda: State("Sums", arrays={"sums": np.array([1, 2])}))
    >>> pieces.get("sums", lambda: 1 / 0).arrays["sums"].tolist()
    [1, 2]
    """

    def __init__(self, folder: Path, job: Mapping[str, Any]) -> None:
        self.folder = folder
        claim_folder(folder, job)

    def find(self, name: str) -> State | None:
        """A finished piece; None if it is missing or damaged."""
        try:
            return read_model(self.folder / name, verify=True)
        except ModelFormatError:
            return None

    def get(self, name: str, make: Callable[[], State]) -> State:
        """A finished piece; it is made if it is missing or damaged. If the first cannot be made, no folder stays."""
        if not NAME.fullmatch(name):
            raise InvalidInput(f"{name!r} is not a name of letters, digits, dots, dashes and underscores")
        found = self.find(name)
        if found is not None:
            return found
        try:
            state = make()
        except LongtailError:
            abandon(self.folder)
            raise
        shutil.rmtree(self.folder / name, ignore_errors=True)
        write_model(state, self.folder / name)
        return read_model(self.folder / name)

    def remove(self) -> None:
        """Remove all pieces; the work is done."""
        shutil.rmtree(self.folder, ignore_errors=True)


def abandon(folder: Path) -> None:
    """Remove a folder of unfinished work in which nothing is finished, so that another job can have it."""
    try:
        if set(os.listdir(folder)) <= {_JOB, LOCK}:
            shutil.rmtree(folder, ignore_errors=True)
    except OSError:
        pass  # it is kept, and the next job says so


def claim_folder_of_job(parent: Path, name: str, job: Mapping[str, Any]) -> Path:
    """Create a folder whose name begins with `name` and tells the job; `InvalidInput` if there is one of another job.

    A worker that still works on another job, which was removed, cannot write its results here.
    """
    folder = parent / f"{name}-{sha256(_content(job)).hexdigest()[:12]}"
    for other in sorted(parent.glob(f"{name}-*")):
        if other != folder:
            raise _of_another_job(other)
    claim_folder(folder, job)
    return folder


def _content(job: Mapping[str, Any]) -> bytes:
    return json.dumps(plain_value(job, "job"), indent=1, sort_keys=True).encode()


def _of_another_job(folder: Path) -> InvalidInput:
    return InvalidInput(
        f"{folder} holds the unfinished work of another job, with other data, options or versions; "
        f"finish it with these, or remove the folder",
        code="other_job",
    )


def claim_folder(folder: Path, job: Mapping[str, Any]) -> None:
    """Create a folder for unfinished work; `InvalidInput` if it belongs to another job or holds something else."""
    content = _content(job)
    try:
        os.makedirs(folder, exist_ok=True)
        names = [name for name in os.listdir(folder) if name != LOCK and not is_ours(name)]
        if _JOB in names:
            if (folder / _JOB).read_bytes() != content:
                raise _of_another_job(folder)
        elif names:
            raise InvalidInput(f"{folder} holds other files, such as {names[0]!r}; choose another folder")
        else:
            write_file(folder, _JOB, (content,))
            sync_directory(folder)
    except OSError as error:
        raise Unavailable(f"{folder} cannot be used for unfinished work: {reason(error)}") from None
