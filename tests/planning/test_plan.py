"""Plans: the arithmetic of the model, with fixed costs."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from longtail.errors import InvalidInput
from longtail.labels.shape import balanced_shape
from longtail.planning import Costs, Workload, plan
from longtail.planning.workload import power_law, tree_widths

LOAD = Workload(rows=600_000, labels=1_000_000, features=300_000, per_row=50, labels_per_row=36)


def test_twice_the_workers_take_half_the_time_of_what_can_be_divided(costs: Costs) -> None:
    few, many = (plan(LOAD, costs, workers=workers, network=1e15).cluster for workers in (2, 4))
    for one, other in zip(few.stages, many.stages, strict=True):
        assert other.seconds == pytest.approx(one.seconds / (2 if one.limit == "processors" else 1))
    assert {each.stage for each in few.stages if each.limit == "client"} == {"preparing"}


def test_no_number_of_workers_is_faster_than_the_longest_task(costs: Costs) -> None:
    found = plan(LOAD, costs, workers=10**6, network=1e15)
    for stage, timed in zip(found.stages, found.cluster.stages, strict=True):
        if not stage.by_client:
            assert (timed.seconds, timed.limit) == (stage.longest_seconds, "longest task")


def test_a_slow_network_limits_the_time(costs: Costs) -> None:
    found = plan(LOAD, costs, workers=100, network=1000)
    assert found.cluster.limit == "network"
    assert found.cluster.seconds == pytest.approx(found.cluster.network_bytes / 1000)
    assert found.machine.network_bytes == 0


def test_what_does_not_fit_is_told(costs: Costs) -> None:
    needed = plan(LOAD, costs, memory=2**50)
    assert needed.machine.problems == needed.cluster.problems == ()
    enough = plan(LOAD, costs, memory=needed.cluster.worker_bytes).cluster
    assert enough.problems == ()
    [problem] = plan(LOAD, costs, memory=needed.cluster.worker_bytes - 1).cluster.problems
    assert problem.startswith("the worker with the largest task (training classifiers) needs 2.")
    assert len(plan(LOAD, costs, memory=2**20).cluster.problems) == 2


def test_all_rows_are_rows_of_the_root_and_each_row_has_one_node_of_each_level_at_least(costs: Costs) -> None:
    for load in (LOAD, replace(LOAD, learner="one-vs-rest"), replace(LOAD, labels=50, labels_per_row=2)):
        sums = [level.rows.sum() / load.rows for level in load.levels]
        assert sums[0] == 1
        assert sums == sorted(sums)
        assert sums[-1] <= load.labels_per_row


def test_the_classifiers_of_the_root_are_one_task_that_needs_all_rows(costs: Costs) -> None:
    more = replace(LOAD, rows=10 * LOAD.rows, labels=10 * LOAD.labels)
    one, other = (next(s for s in plan(load, costs).stages if "training" in s.name) for load in (LOAD, more))
    assert other.task_bytes == pytest.approx(10 * one.task_bytes, rel=0.1)
    assert other.longest_seconds > 5 * one.longest_seconds


@pytest.mark.parametrize(
    ("labels", "leaf_size", "branching"), [(1, 100, 64), (100, 100, 64), (7777, 10, 4), (5000, 3, 64)]
)
def test_the_tree_has_the_shape_of_a_trained_one(labels: int, leaf_size: int, branching: int) -> None:
    pointers = balanced_shape(labels, leaf_size, branching).pointers
    widths = tree_widths(labels, leaf_size, branching)
    nodes = sum(int(np.prod(widths[:level])) for level in range(len(widths)))
    assert len(pointers) - 1 == pytest.approx(nodes, rel=0.15)


def test_label_counts_follow_the_power_law_and_add_up() -> None:
    found = power_law(rows=10**6, labels=10**6, pairs=2e7, skew=0.8)
    assert found.total() == 10**6
    assert found.total(found.counts) == pytest.approx(2e7, rel=1e-3)
    assert found.counts[0] / found.counts[99] == pytest.approx(100**0.8, rel=0.01)
    assert (found.counts.min(), power_law(100, 10, 900, 3.0).counts.max()) == (pytest.approx(1, abs=5), 100)


def test_a_second_training_costs_more_time_and_disk(costs: Costs) -> None:
    once, twice = (plan(replace(LOAD, negatives=negatives), costs) for negatives in ("siblings", "beam"))
    assert [stage.name for stage in twice.stages[-3:]] == [
        "searching for negatives",
        "training classifiers again",
        "joining",
    ]
    assert twice.cpu_seconds > 1.4 * once.cpu_seconds
    assert twice.pieces_bytes > 2 * once.pieces_bytes
    assert twice.model_bytes == once.model_bytes


def test_real_counts_take_the_place_of_the_power_law() -> None:
    counts = np.array([5.0, 1.0, 3.0])
    load = Workload(6, 3, 4, 2, 1.5, counts=counts)
    assert load.frequencies.counts.tolist() == [5, 3, 1]
    assert load.widths == (3,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": 0}, "rows: 0; expected a number above 0"),
        ({"labels": -3}, "labels: -3; expected"),
        ({"per_row": float("nan")}, "per row: nan; expected"),
        ({"labels_per_row": 2e6}, "labels per row: 2,000,000.0; there are only 1,000,000 labels"),
        ({"per_row": 4e5}, "per row: 400,000.0; there are only 300,000 features"),
        ({"features": 2**31}, "expected fewer than 2"),
        ({"learner": "ridge"}, "learner is 'ridge'; expected one of tree, one-vs-rest"),
        ({"branching": 1}, "branching: 1; expected at least 2"),
        ({"skew": -1}, "skew: -1; expected a number from 0 to 3"),
    ],
)
def test_nonsense_is_refused(change: dict, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        replace(LOAD, **change)


def test_workers_and_memory_are_positive(costs: Costs) -> None:
    with pytest.raises(InvalidInput, match="workers: 0; expected a number above 0"):
        plan(LOAD, costs, workers=0)


def test_costs_are_kept_in_a_file(costs: Costs, tmp_path: Path) -> None:
    costs.save(tmp_path / "costs.json")
    assert Costs.load(tmp_path / "costs.json") == costs


@pytest.mark.parametrize("text", ["", "[]", "{}", "[" * 10**5])
def test_a_file_that_holds_no_costs_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "costs.json").write_text(text)
    with pytest.raises(InvalidInput, match=r"costs\.json (is no JSON file|holds no costs)"):
        Costs.load(tmp_path / "costs.json")


@pytest.mark.parametrize("value", [0, -1, float("inf"), float("nan"), "1", None])
def test_costs_are_positive_and_finite(costs: Costs, value: object) -> None:
    with pytest.raises(InvalidInput, match="the cost 'train' is"):
        Costs(**asdict(costs) | {"train": value})
