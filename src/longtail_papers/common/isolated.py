"""Calls in a process of their own, where time and peak memory belong to the call alone.

The measured function lives in a module of the package, takes and returns plain JSON values, and measures with `Peak`.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any, Self

from longtail.errors import Unavailable
from longtail.processes import isolated_python

# A process starts with the peak of the one that started it (on Linux), so a bare interpreter stands in between.
_LAUNCHER = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"
_CHILD = "from longtail_papers.common.isolated import main; main()"


def call_isolated(function: str, *, environment: Mapping[str, str] | None = None, **arguments: Any) -> Any:
    """Call ``package.module:function`` in a fresh interpreter, with these variables of the environment set.

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
        raise Unavailable(
            f"{function} failed in a process of its own (status {done.returncode}): {done.stderr.strip()}"
        )
    return json.loads(done.stdout.splitlines()[-1])


class Peak:
    """Time and growth of resident memory inside a ``with`` block.

    The growth is from what the process holds at the start of the block to the largest it has held by its end, as the
    system counts it. Where the process had held more before the block, the growth is only a bound from above.
    """

    seconds: float
    growth: int

    def __enter__(self) -> Self:
        self._held = _resident()
        self._start = time.perf_counter()
        return self

    def __exit__(self, *error: object) -> None:
        self.seconds = time.perf_counter() - self._start
        self.growth = max(0, _peak_resident() - self._held)


def _resident() -> int:
    import psutil

    return int(psutil.Process().memory_info().rss)


def _peak_resident() -> int:
    if sys.platform == "win32":
        import psutil

        return int(psutil.Process().memory_info().peak_wset)
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak) if sys.platform == "darwin" else 1024 * int(peak)


def main() -> None:
    """Be the child: call what the arguments name and print the answer."""
    module, _, name = sys.argv[1].partition(":")
    print(json.dumps(getattr(importlib.import_module(module), name)(**json.loads(sys.argv[2]))))
