from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import longtail_papers
from longtail.audit import audit, dft_matrix
from longtail_papers.common import Context
from longtail_papers.sigmoid_bottleneck.argmaxable import EXPERIMENT, counts
from longtail_papers.sigmoid_bottleneck.checks import Proofs, largest_radius
from longtail_papers.sigmoid_bottleneck.radii import radii, random_sets

pytest.importorskip("highspy")


def rows_of(section: Any) -> list[dict[str, Any]]:
    return [row for table in section.to_dict()["tables"] for row in table["rows"]]


@pytest.mark.slow
def test_the_quick_version_meets_what_is_expected_on_bibtex(
    tmp_path: Path, benchmark_data: Callable[[str], Path]
) -> None:
    benchmark_data("bibtex")
    paths = longtail_papers.run("argmaxable", tmp_path, quick=True)
    assert sorted(paths) == sorted(tmp_path.iterdir())
    results = json.loads((tmp_path / "argmaxable.json").read_text(encoding="utf-8"))
    assert results["finished"]
    sections = {section["title"]: section for section in results["sections"]}

    for row in sections["Real label sets and narrow layers"]["tables"][0]["rows"]:
        assert row["measured: unargmaxable above 0, %"] == row["earlier run: unargmaxable above 0, %"] == 100
        assert row["unargmaxable at its own rule, %"] <= 100
        assert row["undetermined above 0, %"] == row["undetermined at its own rule, %"] == 0

    plain, _ = sections["Layers with a guarantee"]["tables"][0]["rows"]
    assert (plain["k"], plain["d"]) == (28, 57)
    assert plain["measured: no witness, %"] == 0
    assert plain["measured: median radius"] == pytest.approx(675, rel=0.2)

    for row in sections["Proofs"]["tables"][0]["rows"]:
        assert row["proofs that fail"] == row["undetermined"] == 0


def test_half_of_all_sets_are_in_reach_at_half_the_dimensions(tmp_path: Path) -> None:
    [section] = counts(Context(EXPERIMENT, tmp_path, True))
    by_width = {row["d"]: row for row in rows_of(section)}
    assert by_width[500]["percent"] == 50
    assert by_width[475]["percent"] + by_width[525]["percent"] == pytest.approx(100)
    assert by_width[1]["log10 of the share"] == pytest.approx(-999 * np.log10(2))


def test_regions_shrink_with_labels_and_grow_with_slack() -> None:
    *_, section = radii(Proofs(), quick=True)
    for k in (1, 2):
        few, many = (row for row in rows_of(section) if row["k"] == k)
        assert few["n"] < many["n"]
        for slack in ("0 slack", "16 slack"):
            assert few[f"median, {slack}"] > many[f"median, {slack}"] > 0
        assert many["1st percentile, 16 slack"] > 10 * many["1st percentile, 0 slack"]


def test_the_bound_of_a_radius_is_above_it_with_a_bias_too(rng: np.random.Generator) -> None:
    W, bias = rng.normal(size=(9, 4)), rng.normal(size=9)
    sets = (rng.normal(size=(20, 4)) @ W.T + bias > 0).astype(int)
    found = audit(W, sets, bias, exact_radii=True, box=5.0)
    for place in range(20):
        assert largest_radius(found, place, 5.0) >= found.radii[place] * (1 - 1e-9)


def test_the_bound_of_a_radius_is_above_it() -> None:
    found = audit(dft_matrix(40, 2), random_sets(40, 2, 10, seed=0), exact_radii=True)
    for place in range(10):
        assert largest_radius(found, place) >= found.radii[place] * (1 - 1e-9) > 0


def test_proofs_that_fail_are_counted_and_told() -> None:
    found = audit(dft_matrix(12, 1), random_sets(12, 1, 5, seed=0))
    found.witnesses[2] *= -1
    proofs = Proofs()
    proofs.add("spoiled", found)
    [section] = proofs.section()
    assert rows_of(section)[0]["proofs that fail"] == 1
    assert "1 proofs fail" in section.text
