"""``dask worker --preload tests.work.odd_worker``: a worker that is slow, hungry or of another version.

The environment says which: ODD_SECONDS that each task takes longer, ODD_MOST_ITEMS of a training task that does not
take 1 GiB of memory, and ODD_VERSION of longtail.
"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

from longtail.work import cluster
from longtail.work.task import Task

_run = Task.run


def _oddly(task: Task) -> bool:
    time.sleep(float(os.environ.get("ODD_SECONDS", "0")))
    if "training" in task.stage and task.stop - task.start > int(os.environ.get("ODD_MOST_ITEMS", "1000000")):
        taken = np.ones(2**27)
        time.sleep(5)
        del taken
    return _run(task)


def dask_setup(worker: Any) -> None:
    """Dask calls this when the worker starts."""
    Task.run = _oddly  # type: ignore[method-assign]
    cluster.__version__ = os.environ.get("ODD_VERSION", cluster.__version__)
