from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from longtail.errors import Unavailable
from longtail_papers.common.isolated import call_isolated, call_side_by_side

HOLDER = """
import numpy as np
from longtail_papers.common.isolated import Peak

def hold(mebibytes):
    with Peak() as peak:
        held = np.ones(mebibytes * 2**20, dtype=np.int8)
        del held
    return peak.growth / 2**20
"""


WRITER = """
import os
from pathlib import Path

def write(part, directory):
    if part == "broken":
        raise ValueError("no such part")
    Path(directory, part).write_text(os.environ["OMP_NUM_THREADS"], encoding="utf-8")
"""


@pytest.fixture
def holder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "holder.py").write_text(HOLDER, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return "holder:hold"


def test_the_peak_is_seen_after_the_memory_is_given_back(holder: str) -> None:
    # A build with AddressSanitizer keeps an eighth of every allocation as shadow beside it.
    shadow = 8 if os.environ.get("LONGTAIL_EXPECT_SANITIZED") else 0
    assert 60 < call_isolated(holder, mebibytes=64) < 72 + 2 * shadow


def test_the_size_of_the_calling_process_does_not_count(holder: str) -> None:
    large = np.ones(300 * 2**20, dtype=np.int8)
    assert call_isolated(holder, mebibytes=1) < 20
    assert large[-1] == 1


def test_a_failure_in_the_child_is_reported() -> None:
    with pytest.raises(Unavailable, match=r"operator:nothing failed(.|\n)*has no attribute 'nothing'"):
        call_isolated("operator:nothing")


def write_side_by_side(parts: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "writer.py").write_text(WRITER, encoding="utf-8")
    monkeypatch.syspath_prepend(folder)
    call_side_by_side("writer:write", [{"part": part, "directory": str(folder)} for part in parts], "writing")


def test_calls_side_by_side_have_one_thread_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_side_by_side(["a", "b", "c"], tmp_path, monkeypatch)
    assert [(tmp_path / part).read_text(encoding="utf-8") for part in "abc"] == ["1", "1", "1"]


def test_a_failure_of_one_call_is_an_error_that_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Unavailable, match="no such part"):
        write_side_by_side(["a", "broken"], tmp_path, monkeypatch)
