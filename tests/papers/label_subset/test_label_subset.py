"""`reproduce label-subset`: every section on a small planted data set, and what it says of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import longtail_papers
from longtail.data import Corpus
from longtail_papers.common import Benchmark, experiment
from longtail_papers.label_subset import settings as label_subset_settings
from longtail_papers.label_subset import tables as label_subset_tables
from longtail_papers.label_subset.experiment import EXPERIMENT
from longtail_papers.label_subset.paper import ABLATION, OTHERS, PROPOSED, QUOTED, STEPS, bar_claims, order_claims
from longtail_papers.label_subset.settings import Choice, choose, hold_out
from longtail_papers.label_subset.tables import Prepared


def planted_corpus(rng: np.random.Generator, rows: int) -> Corpus:
    """Rows of a few of six topics; labels are topics and parts of topics."""
    topics = (rng.random((rows, 6)) < 0.3) | (np.arange(6) == rng.integers(0, 6, size=(rows, 1)))
    parts = np.repeat(topics, 4, axis=1) & (rng.random((rows, 24)) < 0.6)
    Y = sparse.csr_array(np.hstack([topics, parts]).astype(np.float32))
    mixed = topics @ np.eye(6, 15) + np.repeat(parts, 1, axis=1) @ np.eye(24, 15) * 0.3
    X = sparse.csr_array(np.maximum(mixed + 0.05 * rng.random((rows, 15)), 0).astype(np.float32))
    return Corpus(labels=Y, label_names=tuple(f"label {i}" for i in range(30)), features=X)


@pytest.fixture
def benchmark() -> Benchmark:
    rng = np.random.default_rng(0)
    return Benchmark("bibtex", planted_corpus(rng, 260), planted_corpus(rng, 120))


def sections(folder: Path) -> dict[str, Any]:
    results = json.loads((folder / "label-subset.json").read_text(encoding="utf-8"))
    assert results["finished"]
    return {section["title"]: section for section in results["sections"]}


def test_every_section_is_measured_on_a_small_data_set(
    tmp_path: Path, benchmark: Benchmark, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment, "load_benchmarks", lambda names: [benchmark])
    monkeypatch.setattr(experiment, "why_missing", lambda name: None)
    monkeypatch.setattr(label_subset_tables, "N_LABELS", 6)
    paths = EXPERIMENT.run(tmp_path, quick=True)
    assert sorted(paths) == sorted(tmp_path.iterdir())
    found = sections(tmp_path)
    assert list(found) == [
        "Ablation",
        "Paper and measured",
        "What holds",
        "Quality against the size of the subset",
        "Training cost",
    ]
    steps = {row["chosen by"]: row for row in found["Ablation"]["tables"][0]["rows"]}
    assert list(steps) == [*ABLATION, "plain ridge"]
    for k in (1, 3, 5):
        assert steps["+Outliers"][f"measured @{k}"] == pytest.approx(steps["plain ridge"][f"measured @{k}"], abs=0.1)
    methods = {row["method"]: row for row in found["Paper and measured"]["tables"][0]["rows"]}
    assert methods["LEML"]["paper @1"] == 62.54
    assert methods["LEML"]["measured @1"] > 30
    assert all(methods[name]["measured @1"] is None for name in QUOTED)
    same = [row for row in found["What holds"]["tables"][0]["rows"] if "is plain ridge" in row["statement"]]
    assert [row["holds"] for row in same] == ["yes"]
    sizes = found["Quality against the size of the subset"]["tables"][0]["rows"]
    assert [row["labels"] for row in sizes] == [10, 30]
    assert len({round(row["frequency"], 1) for row in sizes}) == 2
    costs = found["Training cost"]["tables"][0]["rows"]
    assert {row["learner"].split(",")[0] for row in costs} == {"plain ridge", "label tree", "subset of 15"}
    assert all(row["training, s"] > 0 for row in costs)
    told = (tmp_path / "label-subset.md").read_text(encoding="utf-8").replace("\n", " ")
    assert "alpha of ridge by leave-one-out on the other four fifths" in told
    assert "most of its time" not in told  # where the time goes is not measured
    last = sizes[-1]
    assert last["predictable cut"] == pytest.approx(last["random"], abs=0.1)  # all labels, whatever the order


def test_settings_are_chosen_without_the_test_rows(benchmark: Benchmark) -> None:
    other = Benchmark(benchmark.name, benchmark.train, planted_corpus(np.random.default_rng(1), 50))
    chosen = []
    for data in (benchmark, other):
        held = hold_out(data, quick=True)
        chosen.append((held.alpha, held.scaling, choose(held, "predictable cut", 6, quick=False)))
    assert chosen[0] == chosen[1]


def test_dense_features_may_become_cosines_whose_products_are_a_gaussian_kernel(benchmark: Benchmark) -> None:
    X, _ = benchmark.features("as published")
    chosen, _ = label_subset_settings.features(benchmark, "cosines, narrow kernel")
    rows = X.toarray()
    distances = ((rows[:, None] - rows) ** 2).sum(axis=2)
    expected = np.exp(-distances / distances.mean())
    assert np.abs(chosen @ chosen.T - expected).mean() < 0.04


def test_the_shortcut_by_which_settings_are_chosen_is_what_the_classifier_scores(benchmark: Benchmark) -> None:
    prepared = Prepared.of(benchmark, quick=True)
    held, choice = prepared.held, Choice("frequency", decoder_alpha=10.0)
    subset = held.labels.select(choice, 6)
    model = label_subset_tables.subset_classifier(prepared, held.labels, choice, 0)
    model.set_params(subset=subset).fit(held.labels.X, held.labels.Y)
    np.testing.assert_allclose(model.decision_function(held.X), held.decoded(choice, subset), atol=1e-4)


def test_a_choice_says_only_the_settings_that_count() -> None:
    assert Choice("score").describe() == "ridge decoder 1"
    described = Choice("predictable cut", 5.0, 1.0, 3.0, "l1", 10.0).describe()
    assert described == "affinity alpha 5, penalty 1, a 3, l1 decoder 10"


def test_statements_hold_and_fail_where_they_should() -> None:
    [near] = bar_claims("Bibtex", "bibtex", (63.6, 59.2, 61.2))
    [far] = bar_claims("Bibtex", "bibtex", (63.6, 59.2, 61.1))
    assert near.holds
    assert not far.holds
    rising = dict(zip(ABLATION, STEPS["bibtex"], strict=True))
    assert [claim.holds for claim in order_claims("Bibtex", rising, 1e-6)] == [True, True]
    level = dict(zip(ABLATION, STEPS["eurlex-4k"], strict=True))
    assert [claim.holds for claim in order_claims("EURLex", level, 0.1)] == [False, False]


def test_the_figures_of_the_paper_agree_with_each_other() -> None:
    for name, proposed in PROPOSED.items():
        np.testing.assert_allclose(STEPS[name][3], proposed, atol=0.04)
        assert len(OTHERS[name]) == 7


def test_rankings_of_dense_scores_put_ties_in_order() -> None:
    scores = np.array([[0.1, 0.5, 0.5], [0.9, 0.0, 1.0]])
    assert label_subset_settings.rank(scores, 2).tolist() == [[1, 2], [2, 0]]


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_on_bibtex_outliers_reach_the_paper(tmp_path: Path, benchmark_data: Callable[[str], Path]) -> None:
    benchmark_data("bibtex")
    longtail_papers.run("label-subset", tmp_path, quick=True)
    rows = sections(tmp_path)["What holds"]["tables"][0]["rows"]
    held = {row["statement"]: row["holds"] for row in rows}
    assert all(holds == "yes" for statement, holds in held.items() if "+Outliers" in statement), rows
