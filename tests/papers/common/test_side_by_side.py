from __future__ import annotations

from pathlib import Path

import pytest

from longtail.errors import Unavailable
from longtail_papers.common.side_by_side import measure_parts

WRITER = """
import os
from pathlib import Path

def write(part, directory):
    if part == "broken":
        raise ValueError("no such part")
    Path(directory, part).write_text(os.environ["OMP_NUM_THREADS"], encoding="utf-8")
"""


@pytest.fixture
def writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "writer.py").write_text(WRITER, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return "writer:write"


def test_each_part_runs_with_one_thread_and_leaves_its_files(writer: str, tmp_path: Path) -> None:
    measure_parts(writer, ["a", "b", "c"], tmp_path)
    assert [(tmp_path / part).read_text(encoding="utf-8") for part in "abc"] == ["1", "1", "1"]


def test_a_part_that_fails_is_an_error_that_says_why(writer: str, tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="no such part"):
        measure_parts(writer, ["a", "broken"], tmp_path)
