from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from longtail.errors import Unavailable
from longtail_papers.common.isolated import call_isolated

HOLDER = """
import numpy as np
from longtail_papers.common.isolated import Peak

def hold(mebibytes):
    with Peak() as peak:
        held = np.ones(mebibytes * 2**20, dtype=np.int8)
        del held
    return peak.growth / 2**20
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


def test_a_failure_inside_is_told() -> None:
    with pytest.raises(Unavailable, match=r"operator:nothing failed(.|\n)*has no attribute 'nothing'"):
        call_isolated("operator:nothing")
