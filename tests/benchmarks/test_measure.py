from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.data import Prepared
from benchmarks.learners import Learner
from benchmarks.measure import Conditions, Measurement, measure_once, measure_rounds, run_child

FAKE = "tests.benchmarks.fake_learner:Fake"


def fake(key: str = "fake", **settings: Any) -> Learner:
    return Learner(key, key, FAKE, settings=settings)


def test_a_child_is_measured_and_judged(prepared: Prepared, tmp_path: Path) -> None:
    found = measure_once(fake(), prepared, 1, Conditions(tmp_path))
    assert (found.status, found.version) == ("ok", "1.0")
    assert found.figures["P@1"] == 100
    assert found.figures["P@3"] == pytest.approx(100 * (12 + 4) / 36)
    assert found.figures["single_rows"] == 12
    for name in ("train_seconds", "batch_seconds", "latency_median", "load_seconds", "model_bytes"):
        assert found.figures[name] > 0
    assert found.figures["latency_p99"] >= found.figures["latency_median"]


@pytest.mark.skipif(sys.platform == "win32", reason="peaks of memory are not measured on Windows")
def test_memory_is_that_of_the_child_alone(prepared: Prepared, tmp_path: Path) -> None:
    held = np.ones(2**25)
    modest = measure_once(fake(), prepared, 1, Conditions(tmp_path)).figures
    hungry = measure_once(fake(fault="allocates"), prepared, 1, Conditions(tmp_path)).figures
    assert modest["memory_peak"] < held.nbytes
    assert hungry["memory_growth"] - modest["memory_growth"] > 0.8 * 2**26


@pytest.mark.parametrize(
    ("fault", "status", "reason"),
    [("raises", "crashed", "no model today"), ("dies", "crashed", "status 3"), ("hangs", "timed out", "after 3 s")],
)
def test_a_child_that_fails_becomes_a_row_that_says_so(
    prepared: Prepared, tmp_path: Path, fault: str, status: str, reason: str
) -> None:
    found = measure_once(fake(fault=fault), prepared, 1, Conditions(tmp_path, timeout=3 if fault == "hangs" else 60))
    assert found.status == status
    assert reason in found.reason
    assert not found.figures


def test_a_learner_that_cannot_be_imported_is_skipped_with_the_reason(prepared: Prepared, tmp_path: Path) -> None:
    request = {"settings": {}, "threads": 1, "data": str(prepared.folder)}
    request["adapter"] = "tests.benchmarks.fake_learner:NeedsWhatIsNotThere"
    found = run_child(Path(sys.executable), request, tmp_path / "run", 60)
    assert found["status"] == "skipped"
    assert "a_package_that_nobody_has" in found["reason"]


def test_a_learner_that_is_not_affordable_is_skipped_unless_asked_for(prepared: Prepared, tmp_path: Path) -> None:
    dear = Learner("dear", "dear", FAKE, most_work=6 * 48 - 1)
    assert measure_once(dear, prepared, 1, Conditions(tmp_path)).status == "skipped"
    assert measure_once(dear, prepared, 1, Conditions(tmp_path, everything=True)).status == "ok"


def test_rounds_are_interleaved_and_a_failed_learner_is_not_tried_again(prepared: Prepared, tmp_path: Path) -> None:
    def measure(learner: Learner, data: Prepared, round_number: int, conditions: Conditions) -> Measurement:
        return Measurement(data.name, learner.key, round_number, "crashed" if learner.key == "b" else "ok")

    found = measure_rounds([fake("a"), fake("b"), fake("c")], prepared, 3, Conditions(tmp_path), measure)
    order = [(measurement.round, measurement.learner) for measurement in found]
    assert order == [(1, "a"), (1, "b"), (1, "c"), (2, "a"), (2, "c"), (3, "a"), (3, "c")]
