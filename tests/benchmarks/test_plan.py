"""The comparison of plans with trainings."""

from __future__ import annotations

from pathlib import Path

from benchmarks.plan import compare, section_of
from longtail.planning import Costs

COSTS = Costs(1e-7, 5e-8, 1.5e-8, 1.5e-8, 1e-9, 1e-8, 0.5, 7e-9, 1.5e-9, 2e-9, 3.0)


def test_every_stage_is_planned_and_measured(tmp_path: Path) -> None:
    lines = compare("amazon-3m:0.0003", COSTS, "beam", 2, tmp_path)
    assert [line.what for line in lines] == [
        "preparing",
        "rows of labels",
        "label vectors",
        "clustering labels",
        "training classifiers",
        "searching for negatives",
        "training classifiers again",
        "joining",
        "in all",
        "predicting 1000 rows",
        "bytes: prepared",
        "bytes: unfinished",
        "bytes: model",
    ]
    assert all(line.planned > 0 and line.measured > 0 for line in lines)
    *stages, total = lines[:9]
    assert total.measured == sum(line.measured for line in stages)
    assert [len(table.rows) for table in section_of(lines).tables] == [10, 3]
