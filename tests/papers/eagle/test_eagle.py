from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import longtail_papers
from longtail import LabelTree, Ridge
from longtail.aggregated import AggregatedClassifier
from longtail.data import Corpus
from longtail_papers.common import Benchmark, Records
from longtail_papers.eagle import experiment
from longtail_papers.eagle.claims import PAPER, claims
from longtail_papers.eagle.groups import labels_of_groups
from longtail_papers.eagle.runs import ORACLE, WAYS, Findings, Grouping, Run, TreeTrainedOnce, measure
from longtail_papers.ridge.scaling import planted

SMALL = [Grouping("random", 4), Grouping("clustered", 4)]


@pytest.fixture(scope="module")
def small() -> Benchmark:
    X, Y = planted(400, 120, 12)
    names = [f"label {number}" for number in range(12)]
    train, test = (Corpus(Y[part], names, features=X[part]) for part in (slice(300), slice(300, None)))
    return Benchmark("bibtex", train, test)


def records(small: Benchmark, runs: Records[Run]) -> list[Run]:
    features = small.features("rows normalised")
    *_, done = measure(small, features, SMALL, [0, 1], runs, n_trees=1)
    return done


def test_every_way_is_measured_once_and_the_oracle_once_per_seed(small: Benchmark, tmp_path: Path) -> None:
    done = records(small, Records(tmp_path / "runs.json", Run))
    assert len(done) == 2 * (1 + len(SMALL) * (len(WAYS) - 1)) + len(SMALL)
    assert [run.seed for run in done if run.way == "auto"] == [0] * len(SMALL)
    assert len({(run.grouping, run.seed, run.way) for run in done}) == len(done)
    oracles = [run for run in done if run.way == ORACLE]
    assert [run.placed for run in oracles] == [100.0, 100.0]
    for run in done:
        if run.way == "auto":
            [same] = [
                each.precision
                for each in done
                if (each.grouping, each.seed, each.chosen) == (run.grouping, run.seed, run.chosen)
                and each.way in ("all", "EAGLE-0, joint", "EAGLE, joint", "iterate, joint")
            ]
            assert run.precision == same


def test_a_second_run_finds_everything_again(small: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = records(small, Records(tmp_path / "runs.json", Run))
    monkeypatch.setattr(LabelTree, "fit", lambda *_: pytest.fail("trained again"))
    again = Records(tmp_path / "runs.json", Run)
    assert records(small, again) == first
    assert again.kept == len(first)


def test_an_interrupted_run_goes_on_where_it_stopped(
    small: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = small.features("rows normalised")
    whole = records(small, Records(tmp_path / "whole.json", Run))
    fit = AggregatedClassifier.fit
    calls = []

    def interrupted(self: AggregatedClassifier, *arguments: Any) -> AggregatedClassifier:
        calls.append(self.strategy)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return fit(self, *arguments)

    monkeypatch.setattr(AggregatedClassifier, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(measure(small, features, SMALL, [0, 1], Records(tmp_path / "runs.json", Run), n_trees=1))
    monkeypatch.undo()
    runs = Records(tmp_path / "runs.json", Run)
    assert runs.kept == 1 + 3
    assert records(small, runs) == whole


def test_what_was_measured_with_other_settings_is_measured_anew(small: Benchmark, tmp_path: Path) -> None:
    features = small.features("rows normalised")
    for n_trees in (1, 2):
        list(
            measure(
                small, features, SMALL[:1], [0], Records(tmp_path / "runs.json", Run), ways=WAYS[:1], n_trees=n_trees
            )
        )
    assert Records(tmp_path / "runs.json", Run).kept == 2 * (1 + 1)


def test_a_tree_is_trained_again_only_for_other_labels(small: Benchmark) -> None:
    X, Y = small.features("rows normalised")[0], small.train.labels
    tree = TreeTrainedOnce(random_state=0)
    first = tree.fit(X, Y)
    assert tree.fit(X.copy(), Y.copy()) is first
    fewer = sparse.csr_array(Y[:, ::-1])
    assert tree.fit(X, fewer) is not first
    np.testing.assert_array_equal(first.predict_topk(X)[0], LabelTree(random_state=0).fit(X, Y).predict_topk(X)[0])


def run_of(grouping: Grouping, way: str, seed: int, value: float) -> Run:
    precision = dict.fromkeys(("P@1", "P@3", "P@5"), value)
    name = "" if way == ORACLE else grouping.name
    return Run("eurlex-4k", name, seed, way, precision, 50.0, "eagle" if seed else "all")


def statements(values: dict[str, float], grouping: Grouping) -> dict[str, str]:
    runs = [run_of(grouping, way, seed, value + seed) for way, value in values.items() for seed in (0, 1)]
    [section] = claims(Findings.of(runs, [grouping]))
    assert "over 2 seeds" in section.text
    return {str(row[0]): str(row[2]) for row in section.tables[0].rows}


def test_claims_follow_from_the_figures() -> None:
    grouping = Grouping("random", 10)
    values = {ORACLE: 82.0, **{way.name: 60.0 for way in WAYS}, "iterate, joint": 69.0}
    held = statements(values, grouping)
    assert held["random groups of 10: EAGLE, argmax is at least 66.06 (paper 67.56 less 1.5)"] == "no"
    assert held["random groups of 10: the best is at least 69.5"] == "yes"
    assert held["random groups of 10: EAGLE > EAGLE-0 > all, argmax"] == "no"
    assert held["random groups of 10: auto is at most 1 below the best it can choose"] == "no"
    better = {"all": 50.0, "EAGLE, argmax": 66.0, "auto": 68.5, "iterate, joint": 68.9}
    ordered = statements(values | better, grouping)
    assert ordered["random groups of 10: EAGLE, argmax is at least 66.06 (paper 67.56 less 1.5)"] == "yes"
    assert ordered["random groups of 10: EAGLE > EAGLE-0 > all, argmax"] == "yes"
    assert ordered["random groups of 10: the best is at least 69.5"] == "no"
    assert ordered["random groups of 10: auto is at most 1 below the best it can choose"] == "yes"


def test_summaries_have_the_mean_the_spread_and_what_was_chosen() -> None:
    grouping = Grouping("clustered", 8)
    runs = [run_of(grouping, ORACLE, 0, 80.0)] + [run_of(grouping, "auto", seed, 50.0 + seed) for seed in (0, 1, 2)]
    found = Findings.of(runs, [grouping])
    summary = found.ways[grouping]["auto"]
    assert (summary.seeds, *summary.precision["P@1"]) == (3, 51.0, 1.0)
    assert summary.chosen == "eagle (2), all (1)"
    assert found.oracle.precision["P@1"].deviation is None


def test_figures_of_the_paper_fall_with_size_and_rise_with_depth() -> None:
    for kind, sign in (("random", -1), ("clustered", 1)):
        ordered = [ways for grouping, ways in PAPER.items() if grouping.kind == kind]
        for way in ("all", "EAGLE-0, argmax", "EAGLE, argmax"):
            for place in range(3):
                assert (sign * np.diff([ways[way][place] for ways in ordered]) > 0).all()


def test_sections_show_paper_and_measurement_side_by_side(
    small: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = Benchmark("eurlex-4k", small.train, small.test)
    monkeypatch.setattr("longtail_papers.eagle.groups.SIZES", (4,))
    monkeypatch.setattr("longtail_papers.eagle.groups.DEPTHS", ())
    monkeypatch.setattr("longtail_papers.eagle.groups.SEEDS", (0,))
    sections = {each.title: each for each in labels_of_groups(named, Records(tmp_path / "runs.json", Run), quick=False)}
    assert list(sections) == ["What holds", "Random groups"]
    overview, table = sections["Random groups"].tables
    assert [row["group size"] for row in overview.to_dict()["rows"]] == [4]
    rows = {row["labels"]: row for row in table.to_dict()["rows"]}
    assert rows["EAGLE, argmax"]["P@1 paper"] == 80.87
    assert rows["EAGLE, argmax"]["P@1 - paper"] == pytest.approx(rows["EAGLE, argmax"]["P@1"] - 80.87)
    assert rows["iterate, joint"]["P@1 paper"] is None


@pytest.mark.slow
def test_the_quick_version_runs_on_bibtex(tmp_path: Path, benchmark_data: Callable[[str], Path]) -> None:
    benchmark_data("bibtex")
    paths = longtail_papers.run("eagle", tmp_path, quick=True)
    assert sorted(paths) == sorted(tmp_path.iterdir())
    results = json.loads((tmp_path / "eagle.json").read_text(encoding="utf-8"))
    assert results["finished"]
    sections = {section["title"]: section for section in results["sections"]}
    rows = {row["labels"]: row for row in sections["Random groups"]["tables"][1]["rows"]}
    assert rows["all"]["P@1"] < rows["EAGLE, joint"]["P@1"] < rows["iterate, joint"]["P@1"] < rows["oracle"]["P@1"]
    assert rows["EAGLE-0, argmax"]["labels true, %"] < rows["EAGLE, argmax"]["labels true, %"]
    features = {(row["features"], row["labels"]): row for row in sections["Features"]["tables"][0]["rows"]}
    assert features["idf", "EAGLE, argmax"]["P@1"] > features["plain", "EAGLE, argmax"]["P@1"] + 5
    assert all(row["EAGLE, s"] > 0 for row in sections["Cost"]["tables"][0]["rows"])


def test_the_memory_plans_of_its_many_trainings_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="longtail")
    X, Y = np.eye(4, dtype=np.float32), np.eye(4)
    with experiment._without_plans():
        LabelTree(n_jobs=1).fit(X, Y)
        Ridge().fit(X, Y)
    assert not caplog.records
    LabelTree(n_jobs=1).fit(X, Y)
    assert caplog.records
