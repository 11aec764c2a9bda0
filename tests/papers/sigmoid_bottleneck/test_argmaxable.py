from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import longtail_papers
from longtail.audit import audit, dft_matrix, random_members
from longtail_papers.common import Context
from longtail_papers.sigmoid_bottleneck.argmaxable import EXPERIMENT, counts
from longtail_papers.sigmoid_bottleneck.checks import Proofs, largest_radius
from longtail_papers.sigmoid_bottleneck.plane import ball_centre, drawings, region, small_layers
from longtail_papers.sigmoid_bottleneck.radii import as_sets, percentile, radii
from longtail_papers.sigmoid_bottleneck.random_layers import random_layers
from longtail_papers.sigmoid_bottleneck.sizes import parameters
from longtail_papers.sigmoid_bottleneck.widths import widths

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


def random_sets(n: int, k: int, samples: int, seed: int) -> Any:
    return as_sets(random_members(n, k, samples, seed), n)


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return Context(EXPERIMENT, tmp_path, quick=True)


def test_regions_shrink_with_labels_and_grow_with_slack(context: Context) -> None:
    *_, section = radii(context, Proofs())
    for k in (1, 2):
        few, many = (row for row in rows_of(section) if row["k"] == k)
        assert few["n"] < many["n"]
        for median in ("median: at least", "median, 16 slack"):
            assert few[median] > many[median] > 0
        assert many["1st percentile, 16 slack"] > 10 * many["at most"]
        assert 0 < few["1st percentile: at least"] <= few["at most"] < 10 * few["1st percentile: at least"]


def test_the_first_percentile_is_between_its_bounds(context: Context) -> None:
    """Of all sets, with exact radii: the few linear programs of the experiment give the same."""
    *_, section = radii(context, Proofs())
    row = next(row for row in rows_of(section) if (row["k"], row["n"]) == (2, 50))
    members = random_members(50, 2, 200, 52)
    exact = 1e4 * audit(dft_matrix(50, 2), as_sets(members, 50), exact_radii=True, n_jobs=1).radii
    expected = np.sort(exact)[1]
    assert row["1st percentile: at least"] <= expected * (1 + 1e-6)
    assert expected <= row["at most"] * (1 + 1e-6)


def test_a_second_run_measures_nothing_again(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    first = [rows_of(section) for section in (*radii(context, Proofs()), *random_layers(context, Proofs()))]
    monkeypatch.setattr("longtail_papers.sigmoid_bottleneck.radii.audit", None)
    monkeypatch.setattr("longtail_papers.sigmoid_bottleneck.random_layers.audit", None)
    proofs = Proofs()
    assert [rows_of(s) for s in (*radii(context, proofs), *random_layers(context, proofs))] == first
    [section] = proofs.section()
    assert all(row["proofs that fail"] == 0 for row in rows_of(section))


def test_percentiles_count_each_value_as_often_as_it_occurs() -> None:
    values, counts = np.array([4.0, 1.0, 2.0]), np.array([97, 1, 2])
    assert [percentile(values, counts, share) for share in (0.01, 0.02, 0.03, 0.04)] == [1.0, 2.0, 2.0, 4.0]


def test_random_layers_reach_hardly_any_small_set_and_sines_and_cosines_all(context: Context) -> None:
    [section] = random_layers(context, Proofs())
    fixed, random = rows_of(section)
    assert fixed["random sets in reach, %"] == 100
    assert random["out of reach, %"] > 90
    assert min(row["median radius"] for row in (fixed, random)) > 0


def test_small_layers_have_the_regions_that_the_paper_draws(context: Context) -> None:
    [section] = small_layers(context)
    for row in rows_of(section):
        assert row["measured: in reach"] == row["paper: in reach"] == row["Cover's count"]
        assert row["in general position"] == "yes"
    *_, alternating = drawings()
    assert all(sum(a != b for a, b in pairwise(name)) <= 1 for name in alternating.names(1))
    assert all(sum(a != b for a, b in pairwise(name)) > 1 for name in alternating.names(-1))


def test_regions_are_cut_out_of_the_square_as_inputs_say(rng: np.random.Generator) -> None:
    for drawing in drawings():
        layer, members = drawing.layer, drawing.found.sets.dense(slice(None))
        inputs = rng.uniform(-1, 1, size=(4000, 2))
        given = inputs @ layer.weights.T + layer.offsets > 0
        for place, wanted in enumerate(members):
            corners = region(layer, wanted)
            after = np.roll(corners, -1, axis=0)
            area = abs(float(np.sum(corners[:, 0] * after[:, 1] - after[:, 0] * corners[:, 1]))) / 2
            assert area / 4 == pytest.approx((given == wanted).all(axis=1).mean(), abs=0.03)
            radius = float(drawing.found.radii[place])
            if radius > 0:
                centre = ball_centre(layer, wanted, radius)
                distances = np.abs(centre @ layer.weights.T + layer.offsets) / np.linalg.norm(layer.weights, axis=1)
                assert distances.min() == pytest.approx(radius, rel=0.01)


def test_parameters_are_counted_as_in_the_paper(context: Context) -> None:
    [section] = parameters(context)
    rows = {row["data"]: row for row in rows_of(section)}
    assert rows["BioASQ task A"]["computed: share, %"] == pytest.approx(51.9, abs=0.05)
    mimic = rows["MIMIC-III"]
    assert mimic["paper: columns to give up"] == mimic["computed as in the paper"] == 10
    assert mimic["enough"] == 9
    assert all(claim.holds for claim in context.claims)


@pytest.mark.slow
def test_widths_of_real_label_sets_are_bounded_from_both_sides(
    context: Context, benchmark_data: Callable[[str], Path]
) -> None:
    benchmark_data("bibtex")
    [section] = widths(context)
    [row] = rows_of(section)
    assert row["proofs hold"] == "yes"
    assert 0 < row["no layer of width"] < row["a layer of width"] <= row["2k + 1"]
    assert row["ridge above 0: fails at rank"] < row["reaches at rank"]


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
