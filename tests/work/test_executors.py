"""The memory limit of the workers of an executor."""

from __future__ import annotations

from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longtail import in_pieces, memory
from longtail.errors import Unavailable
from longtail.work import begin, even_ranges
from longtail.work.room import process_memory


def limit_of_a_task(start: int, stop: int) -> dict[str, Any]:
    return {"limit": np.array([memory.current_limit() or 0] * (stop - start))}


def limits(executor: Executor, folder: Path) -> set[int]:
    with in_pieces(folder, executor):
        work = begin({}, None)
        found = work.run("limits", limit_of_a_task, even_ranges(np.ones(3), 1))
        return {limit for piece in found for limit in piece["limit"].tolist()}


@pytest.mark.slow
def test_processes_divide_the_memory_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        with memory.limit("6G"):
            assert limits(executor, tmp_path / "limit") == {3 * 2**30}
        monkeypatch.setenv("LONGTAIL_MEMORY", "4G")
        assert limits(executor, tmp_path / "variable") == {2 * 2**30}
        monkeypatch.delenv("LONGTAIL_MEMORY")
        [free] = limits(executor, tmp_path / "free")
        assert 0 < free < 0.75 * process_memory()


def test_threads_share_the_memory_limit(tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as executor, memory.limit("6G"):
        assert limits(executor, tmp_path / "limit") == {6 * 2**30}


class Broken(ThreadPoolExecutor):
    """An executor whose workers have died before."""

    def submit(self, *arguments: Any, **options: Any) -> Any:
        raise BrokenExecutor("a child process terminated abruptly")


def test_an_executor_that_is_broken_before_the_training_is_told(tmp_path: Path) -> None:
    with Broken(2) as executor, pytest.raises(Unavailable, match="a worker process has died") as caught:
        limits(executor, tmp_path / "work")
    assert caught.value.code == "no_workers"
