from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks import growth
from benchmarks.growth import relative_growth
from benchmarks.learners import Learner
from benchmarks.synthetic import LABELS_PER_ROW, NONZEROS_PER_ROW, synthesise


def test_the_made_up_data_has_the_shape_of_the_real_one() -> None:
    made = synthesise(6_700)
    assert made.X.shape[0] == made.Y.shape[0] == 4_900
    assert made.X.nnz / 4_900 == pytest.approx(NONZEROS_PER_ROW, rel=0.05)
    assert made.Y.nnz / 4_900 == pytest.approx(LABELS_PER_ROW, rel=0.05)
    assert np.allclose(made.X.power(2).sum(axis=1), 1, atol=1e-5)
    counts = np.sort(np.bincount(made.Y.indices, minlength=6_700))
    assert counts[0] >= 1
    assert counts[-67:].sum() > 10 * counts[:67].sum()


def test_a_seed_makes_the_same_data_again() -> None:
    first, again, other = (synthesise(500, seed=seed, n_features=2_000) for seed in (3, 3, 4))
    assert (first.X != again.X).nnz == (first.Y_test != again.Y_test).nnz == 0
    assert (first.X != other.X).nnz > 0


def test_the_labels_can_be_learned_from_the_features() -> None:
    made = synthesise(1_000, n_features=20_000, test_rows=300)
    nearest = np.asarray((made.X_test @ made.X.T).todense()).argmax(axis=1)
    shared = np.asarray(made.Y[nearest].multiply(made.Y_test).sum(axis=1)).ravel()
    by_chance = np.asarray(made.Y[:300].multiply(made.Y_test).sum(axis=1)).ravel()
    assert np.mean(shared > 0) > 0.8 > 2 * np.mean(by_chance > 0) - 0.4


def test_growth_as_n_log_l_is_one_throughout() -> None:
    grown = {size: {"rows": 3 * size, "s": 0.1 * size * np.log(size)} for size in (10, 1_000, 100_000)}
    assert list(relative_growth(grown, "s").values()) == pytest.approx([1, 1, 1])
    assert relative_growth(grown, "absent") == {}


def test_sizes_are_measured_and_the_data_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "GROWERS", (Learner("fake", "Fake", "tests.benchmarks.fake_learner:Fake"),))
    growth.main(["--sizes", "300", "600", "--learners", "fake", "--cache", str(tmp_path)])
    [section] = json.loads((tmp_path / "results" / "growth.json").read_text())["sections"]
    rows = section["tables"][0]["rows"]
    assert [(row["labels"], row["rows"], row["status"]) for row in rows] == [(300, 219, "ok"), (600, 439, "ok")]
    assert rows[0]["relative to n log L"] == 1
    assert (tmp_path / "results" / "growth.png").is_file()
    assert not list((tmp_path / "growth").iterdir())
