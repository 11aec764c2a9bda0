"""`in_pieces`: trainings inside its block keep the results of their tasks in a folder, and go on where they stopped."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from longtail.errors import InvalidInput
from longtail.files import PathName
from longtail.store import LOCK, alone_in
from longtail.work.cluster import Cluster
from longtail.work.executors import Executors
from longtail.work.results import forget_opened
from longtail.work.stored import Stored
from longtail.work.work import Work, working_in

_OWN = re.compile(r"(training\d+|data)-[0-9a-f]{12}")


class Folder:
    """A folder of unfinished work, and who works on it."""

    def __init__(self, folder: Path, workers: Any) -> None:
        self.folder, self.workers = folder, workers
        self._begun = 0

    def begin(self, about: Mapping[str, Any], n_jobs: int | None, matrices: Mapping[str, Any]) -> Work:
        self._begun += 1
        return Stored(self.folder, f"training{self._begun}", self.workers, n_jobs, about, matrices)


@contextmanager
def in_pieces(folder: PathName, workers: Any = None) -> Iterator[None]:
    """Train in pieces that are kept in a folder; an interrupted training goes on where it stopped.

    Inside the block, `fit` of `LabelTree`, `OneVsRest`, `Ridge` and `RidgeCV` writes the result of every task to the
    folder; other learners train in memory. The same block again goes on with what is there. The folder is removed at
    the end, if no error is raised: save the model inside the block. The model does not depend on the workers.

    Parameters
    ----------
    folder : str or path-like
        A new folder, or one of the same training. All workers must see it under the same path.
    workers : None, concurrent.futures.Executor or distributed.Client
        Who does the tasks; None for threads of this process.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from longtail import LabelTree, in_pieces
    >>> X, Y = np.eye(4, dtype=np.float32), np.eye(4)
    >>> with in_pieces(tempfile.mkdtemp() + "/unfinished"):
    ...     tree = LabelTree().fit(X, Y)
    >>> tree.predict_topk(X, k=1)[0].ravel().tolist()
    [0, 1, 2, 3]
    """
    if working_in.get() is not None:
        raise InvalidInput("a training in pieces is already open here; close it first")
    path = Path(os.path.abspath(folder))
    _check_content(path)
    with alone_in(path):
        token = working_in.set(Folder(path, _workers(workers, path)))
        try:
            yield
        finally:
            working_in.reset(token)
            forget_opened()
        for name in filter(_OWN.fullmatch, os.listdir(path)):
            shutil.rmtree(path / name, ignore_errors=True)
        with suppress(PermissionError):  # Windows does not remove an open file
            (path / LOCK).unlink(missing_ok=True)
    if sys.platform == "win32":  # elsewhere, a lock that is here now is that of another process
        (path / LOCK).unlink(missing_ok=True)
    with suppress(OSError):  # something else is in the folder, such as a model
        path.rmdir()


def _check_content(folder: Path) -> None:
    """Refuse a folder with files of others, before anything is written there."""
    names = os.listdir(folder) if folder.is_dir() else []
    others = [name for name in names if name != LOCK and not _OWN.fullmatch(name)]
    if others:
        raise InvalidInput(f"{folder} holds other files, such as {min(others)!r}; choose another folder")


def _workers(workers: Any, folder: Path) -> Any:
    if workers is None:
        return None
    return Executors(workers) if isinstance(workers, Executor) else Cluster(workers, folder)
