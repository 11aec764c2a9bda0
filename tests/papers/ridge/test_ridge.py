from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import longtail_papers
from longtail_papers.ridge.scaling import planted


@pytest.mark.slow
def test_the_quick_version_meets_what_is_expected_on_bibtex(
    tmp_path: Path, benchmark_data: Callable[[str], Path]
) -> None:
    benchmark_data("bibtex")
    paths = longtail_papers.run("ridge", tmp_path, quick=True)
    assert sorted(paths) == sorted(tmp_path.iterdir())
    assert {path.suffix for path in paths} == {".md", ".json", ".png"}
    results = json.loads((tmp_path / "ridge.json").read_text(encoding="utf-8"))
    assert results["finished"]
    assert results["quick"]
    sections = {section["title"]: section for section in results["sections"]}

    rows = sections["Earlier runs and this one"]["tables"][0]["rows"]
    assert len(rows) == 30
    assert max(abs(row["measured"] - row["earlier run"]) for row in rows) < 0.06

    [chosen] = sections["Alpha chosen without the test set"]["tables"][0]["rows"]
    assert 20 < chosen["chosen alpha"] < 300

    for row in sections["Sparsification"]["tables"][0]["rows"]:
        if row["earlier run: P@5 kept, %"] is not None:
            assert abs(row["difference"]) <= 0.1

    costs = [row for table in sections["Cost of the solvers"]["tables"] for row in table["rows"]]
    assert {row["solver"].split(":")[0] for row in costs} == {"primal", "dual", "cg", "auto"}
    assert all(row["seconds"] > 0 and row["peak memory, MiB"] > 0 for row in costs)

    exact, rough, close = sections["Tolerance of conjugate gradients"]["tables"][0]["rows"]
    assert exact["same five labels, %"] == 100
    assert rough["in the same order, %"] < close["in the same order, %"]


def test_planted_rows_have_unit_length_and_power_law_features(seed: int) -> None:
    X, Y = planted(400, 300, 50, seed)
    np.testing.assert_allclose(np.sqrt(X.multiply(X).sum(axis=1)), 1, rtol=1e-5)
    frequency = np.bincount(X.indices, minlength=300)
    assert frequency[:10].mean() > 5 * frequency[-100:].mean()
    assert set(Y.sum(axis=1).tolist()) == {3.0}
