"""Parts of an experiment measured at the same time, each in a process of its own with one thread.

Small networks keep several threads waiting for one another; parts side by side use every core, and what they find does
not depend on how many there are. A part leaves what it measured in files, where the experiment then finds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from longtail.parallel import count_cores
from longtail.progress import task
from longtail_papers.common.isolated import call_isolated

_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def measure_parts(function: str, parts: Sequence[str], directory: Path) -> None:
    """Call ``package.module:function`` with each part and the directory, as many at once as there are cores.

    Parameters
    ----------
    function : str
        Takes `part` and `directory` as strings and returns nothing that matters.
    parts : sequence of str
        Those that take longest first.
    directory : path
    """
    with task(f"measuring {', '.join(parts)} side by side", total=len(parts)) as advance:
        pool = ThreadPoolExecutor(min(len(parts), count_cores()))
        try:
            calls = [
                pool.submit(call_isolated, function, environment=_ONE_THREAD, part=part, directory=str(directory))
                for part in parts
            ]
            for call in as_completed(calls):
                call.result()
                advance(1)
        finally:
            pool.shutdown(cancel_futures=True)
