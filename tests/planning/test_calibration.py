"""Calibration runs the real training."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest

from longtail.planning import Workload, calibrate, measured_stages, plan
from longtail.planning.calibration import power_law_data
from longtail.progress import task


@pytest.mark.slow
def test_costs_of_tiny_trainings_are_positive_and_plan_a_training() -> None:
    costs = calibrate(rows=(300, 600), features=2_000)
    assert all(0 < cost < np.inf for cost in asdict(costs).values())
    found = plan(Workload(1000, 2000, 2000, 20, 5), costs)
    assert 0 < found.machine.seconds < np.inf


def test_the_data_have_the_size_of_the_workload() -> None:
    X, Y = power_law_data(500, 800, 2000, 0)
    load = Workload.of(X, Y)
    assert (load.rows, load.features) == (500, 2000)
    assert load.labels == np.count_nonzero(np.bincount(Y.indices))
    assert load.per_row == pytest.approx(np.diff(X.indptr).mean())
    assert 25 < load.labels_per_row < 40
    assert np.allclose(np.sqrt(X.power(2).sum(axis=1)), 1)


def test_stages_are_measured_by_name() -> None:
    with measured_stages() as found:
        for _ in range(2):
            with task("counting") as advance:
                advance(sum(range(10**5)) > 0)
    assert set(found) == {"counting"}
    assert 0 < found["counting"].cpu <= found["counting"].wall + 0.1
