from __future__ import annotations

import pytest

pytest.importorskip("torch")

from benchmarks.heads import show


def row(ratio: float) -> dict[str, float]:
    measured = dict.fromkeys(("seconds", "parameters", "growth", "multiply_adds"), 1.0)
    return measured | {"ratio": ratio, "least": 3.0, "most": 9.0}


@pytest.mark.parametrize(
    ("n_labels", "ratio", "holds"), [(1_000_000, 8.0, True), (1_000_000, 7.9, False), (10, 1, True)]
)
def test_a_head_is_held_to_its_bar_with_a_million_labels(n_labels: int, ratio: float, holds: bool) -> None:
    assert show(n_labels, {"one-hot, single": row(1.0), "sampling, single": row(ratio)}) == holds
