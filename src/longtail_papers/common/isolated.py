"""Calls in their own process, so that time and peak memory belong to the call alone.

The called function lives in a module of a package, takes and returns plain JSON values, and measures with `Peak`.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, Self

from longtail.errors import Unavailable
from longtail.parallel import count_cores
from longtail.processes import isolated_python
from longtail.progress import task

# On Linux a process starts with the peak memory of its parent, so a bare interpreter stands in between.
_LAUNCHER = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"
_CHILD = "from longtail_papers.common.isolated import main; main()"
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def call_isolated(function: str, *, environment: Mapping[str, str] | None = None, **arguments: Any) -> Any:
    """Call ``package.module:function`` in a fresh interpreter, with additional environment variables.

    Examples
    --------
    >>> call_isolated("platform:python_version") == sys.version.split()[0]
    True
    """
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _LAUNCHER, *isolated_python(_CHILD, function, json.dumps(arguments))],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
        env={**os.environ, **(environment or {})},
    )
    if done.returncode:
        raise Unavailable(f"{function} failed in its own process (status {done.returncode}): {done.stderr.strip()}")
    return json.loads(done.stdout.splitlines()[-1])


def call_side_by_side(function: str, arguments: Sequence[Mapping[str, Any]], description: str) -> None:
    """Make several isolated calls at once, as many as there are cores, each with one thread.

    Several threads slow small networks down. Calls with one thread each keep every core busy, and their results do
    not depend on the number of cores. The calls leave their results in files.

    Parameters
    ----------
    function : str
        ``package.module:function``.
    arguments : sequence of mappings
        The arguments of each call; put the longest calls first.
    description : str
        Shown with the progress.
    """
    with task(description, total=len(arguments)) as advance:
        pool = ThreadPoolExecutor(min(len(arguments), count_cores()))
        try:
            calls = [pool.submit(call_isolated, function, environment=_ONE_THREAD, **each) for each in arguments]
            for call in as_completed(calls):
                call.result()
                advance(1)
        finally:
            pool.shutdown(cancel_futures=True)


class Peak:
    """Time and growth of resident memory inside a ``with`` block.

    The growth is the difference between the resident memory at the start of the block and the peak of the process at
    its end. If the process had used more memory before the block, the growth is an upper bound.
    """

    seconds: float
    growth: int

    def __enter__(self) -> Self:
        import psutil

        self._held = int(psutil.Process().memory_info().rss)
        self._start = time.perf_counter()
        return self

    def __exit__(self, *error: object) -> None:
        self.seconds = time.perf_counter() - self._start
        self.growth = max(0, _peak_resident() - self._held)


def _peak_resident() -> int:
    if sys.platform == "win32":
        import psutil

        return int(psutil.Process().memory_info().peak_wset)
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak) if sys.platform == "darwin" else 1024 * int(peak)


def main() -> None:
    """The child process: call the function that the arguments name and print its result."""
    module, _, name = sys.argv[1].partition(":")
    print(json.dumps(getattr(importlib.import_module(module), name)(**json.loads(sys.argv[2]))))
