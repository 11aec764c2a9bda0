from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")

from longtail.neural.heads import OneHot
from longtail_papers.multi_head import head_costs
from longtail_papers.multi_head.head_costs import compare, measure, short_blocks, square


@pytest.mark.parametrize("plan", [square, short_blocks])
@pytest.mark.parametrize("n_labels", [1, 7, 1_000, 10_000, 99_991, 1_000_000])
def test_plans_hold_all_labels_without_an_empty_block(plan: Any, n_labels: int) -> None:
    first, second = plan(n_labels)
    assert first * second >= n_labels > (first - 1) * second


def test_heads_take_turns_and_are_held_against_one_hot_of_their_task(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter([8.0, 1.0, 6.0, 2.0, 9.0, 1.0])
    called = []

    def call(function: str, name: str, **arguments: Any) -> dict[str, float]:
        called.append(name)
        return {"seconds": next(seconds), "parameters": 1.0, "growth": 1.0, "multiply_adds": 1.0}

    monkeypatch.setattr(head_costs, "call_isolated", call)
    names = ["one-hot, single", "sampling, single"]
    found = compare(1_000_000, names, rounds=3, passes=1, threads=1)
    assert called == 3 * names
    assert found["sampling, single"]["ratio"] == 8
    assert (found["sampling, single"]["least"], found["sampling, single"]["most"]) == (3, 9)


def test_weights_are_not_drawn_where_only_time_counts() -> None:
    with head_costs._NothingDrawn():
        head = OneHot(4, 6)
    assert head.output.weight.unique().tolist() == pytest.approx([0.01])
    assert len(OneHot(4, 6).output.weight.unique()) == 24


@pytest.mark.parametrize("name", ["one-hot, multi", "sampling, single", "DFT k = 50, multi"])
def test_a_measurement_counts_time_and_parameters(name: str) -> None:
    found = measure(name, n_labels=200, passes=1, threads=1)
    assert found["seconds"] > 0
    assert found["multiply_adds"] > 0
    width = 101 if name.startswith("DFT") else 200
    assert found["parameters"] == 4 * 513 * width
