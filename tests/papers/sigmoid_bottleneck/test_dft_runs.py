from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

pytest.importorskip("torch")

import longtail_papers
from longtail_papers.common import Context, Records
from longtail_papers.sigmoid_bottleneck import dft, dft_runs, dft_steps
from longtail_papers.sigmoid_bottleneck.dft_findings import Findings, epochs_near_the_best
from longtail_papers.sigmoid_bottleneck.dft_runs import HEADS, Plan, Run, Split, chosen_rate, measured

N_LABELS, MOST = 24, 3
PLAN = Plan((2, 4), 4, (3e-2, 1e-9), seeds=(0, 1), epochs=4, patience=4, batch_size=32, features=16, n_sets=40)


def rows_of_words(n_rows: int, seed: int) -> tuple[Any, Any]:
    """Rows of up to three labels, each of which has a word of its own; one row has no label."""
    rng = np.random.default_rng(seed)
    labels = np.zeros((n_rows, N_LABELS), dtype=np.float32)
    for row in labels[1:]:
        row[rng.choice(N_LABELS, size=rng.integers(1, MOST + 1), replace=False)] = 1
    words = labels + (rng.random((n_rows, N_LABELS)) < 0.1)
    return sparse.csr_array(words.astype(np.float32)), sparse.csr_array(labels)


@pytest.fixture(scope="module")
def split() -> Split:
    return Split.of("words", "Words", rows_of_words(400, 0), rows_of_words(100, 1), PLAN.n_sets)


@pytest.fixture(scope="module")
def findings(split: Split, tmp_path_factory: pytest.TempPathFactory) -> Findings:
    *_, last = dft.compared(split, PLAN, Records(tmp_path_factory.mktemp("dft") / "runs.json", Run))
    return last


def a_run(**changes: Any) -> Run:
    run = Run("words", "DFT", 4, 0.1, 0, [10.0, 39.0, 40.0, 38.0], 3, 41.0, 11, 50, 20, 5, 1, 0)
    return replace(run, **changes)


def test_every_head_width_and_seed_is_trained_at_the_rate_that_validation_chose(findings: Findings) -> None:
    met = [(run.seed, run.width, run.head) for run in findings.runs]
    assert met == [(seed, width, head) for seed in PLAN.seeds for width in PLAN.widths for head in HEADS]
    # Nothing is learned at the other rate.
    assert {run.rate for run in findings.runs} == {3e-2}
    assert {(run.head, run.rate) for run in findings.choices} == {(h, r) for h in HEADS for r in PLAN.learning_rates}


def test_sines_and_cosines_reach_all_label_sets_and_the_bottleneck_does_not(findings: Findings) -> None:
    narrow, fixed = (findings.summaries(head) for head in HEADS)
    assert narrow[2].unargmaxable > 50
    assert all(summary.unargmaxable == 0 for summary in fixed.values())
    assert all(run.undetermined == run.failed == 0 for run in findings.runs)


def test_parameters_are_those_of_the_projection_and_of_the_trained_columns(findings: Findings, split: Split) -> None:
    assert split.k == MOST
    for head, columns in (("Bottleneck", 4), ("DFT", 4 + 2 * MOST + 1)):
        run = findings.summaries(head)[4].runs[0]
        assert run.columns == columns
        assert run.parameters == (PLAN.features + 1) * columns + 4 * N_LABELS


def test_audited_label_sets_have_labels_and_only_those_of_training_rows() -> None:
    words, labels = rows_of_words(400, 0)
    unknown = labels.toarray()
    unknown[:, 5] = 0
    test = rows_of_words(100, 1)
    drawn = Split.of("words", "Words", (words, sparse.csr_array(unknown)), test, 1000).sets.toarray()
    truth = test[1].toarray()
    np.testing.assert_array_equal(drawn, truth[(truth[:, 5] == 0) & (truth.sum(axis=1) > 0)])


def test_rows_to_choose_by_are_not_trained_on(split: Split) -> None:
    words, _ = rows_of_words(400, 0)
    parts = [split.train[0], split.validation[0]]
    assert [part.shape[0] for part in parts] == [360, 40]
    together = sorted(map(tuple, sparse.vstack(parts).toarray().tolist()))
    assert together == sorted(map(tuple, words.toarray().tolist()))


def test_a_second_run_finds_what_was_measured_and_trains_nothing(
    split: Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "runs.json"
    first = measured(split, PLAN, "DFT", 2, 3e-2, 0, Records(path, Run))
    monkeypatch.setattr(dft_runs, "train", None)
    again = Records(path, Run)
    assert again.kept == 1
    assert measured(split, PLAN, "DFT", 2, 3e-2, 0, again) == first
    # Other widths and rates of the plan leave a training what it is, other epochs do not.
    assert measured(split, replace(PLAN, widths=(2,)), "DFT", 2, 3e-2, 0, again) == first
    with pytest.raises(TypeError):
        measured(split, replace(PLAN, epochs=5), "DFT", 2, 3e-2, 0, again)


def test_the_rate_with_the_best_validation_is_chosen_and_the_lower_of_equals() -> None:
    better = a_run(rate=0.3, values=[50.0], best_epoch=1)
    assert chosen_rate([a_run(), better]) == 0.3
    assert chosen_rate([a_run(rate=0.3), a_run(rate=0.1), a_run(rate=0.2)]) == 0.1


def test_epochs_are_counted_up_to_nearly_the_best_validation() -> None:
    assert epochs_near_the_best(a_run()) == 2
    assert epochs_near_the_best(a_run(values=[10.0, 37.9, 40.0, 38.0])) == 3
    assert epochs_near_the_best(a_run(values=[39.9, 37.9, 40.0])) == 1


def test_claims_are_worked_out_from_the_runs(split: Split) -> None:
    narrow = {"head": "Bottleneck", "columns": 4}
    runs = [
        a_run(**narrow, width=2, f1=30.0, parameters=40, unargmaxable=20),
        a_run(**narrow, width=4, f1=40.0, parameters=80, unargmaxable=10),
        a_run(width=2, f1=36.0, parameters=60, unargmaxable=0, undetermined=1),
        a_run(width=4, f1=44.0, parameters=100, unargmaxable=0, undetermined=0),
    ]
    measured_values = [row[3] for row in Findings(split, PLAN, [], runs).claims()]
    assert measured_values == [
        "0 unargmaxable, 1 undetermined, of 40",
        "100.0% at 2, 50.0% at 4",
        "+6.00 at 2, +4.00 at 4",
        "125% (width 4 for 4)",
        # At 60 parameters the line between the bottlenecks is at 35.
        "at 1 of 1 widths",
        "+0.0 at 2, +0.0 at 4",
    ]


def test_the_section_tells_what_was_audited_and_trained(findings: Findings) -> None:
    section = findings.section()
    assert "at most k = 3 labels, so the DFT has 7 fixed columns" in section.text
    assert "All proofs hold" in section.text
    rows = section.to_dict()["tables"][0]["rows"]
    assert [(row["head"], row["width"]) for row in rows] == [(head, width) for head in HEADS for width in PLAN.widths]
    assert all(row["F1@5"] > 15 for row in rows)


def test_steps_of_both_layers_are_timed_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = Context(dft.EXPERIMENT, tmp_path, quick=True)
    found = dft_steps.measured(context, "MIMIC-III", 8)
    assert found.ratio == found.dft / found.bottleneck > 0
    assert 0 <= found.faster <= 9
    monkeypatch.setattr(dft_steps, "_Clock", None)
    assert dft_steps.measured(context, "BioASQ task A", 8) == found  # the quick version has one size
    with pytest.raises(TypeError):
        dft_steps.measured(context, "MIMIC-III", 9)


@pytest.mark.slow
def test_the_quick_version_runs_on_bibtex(tmp_path: Path, benchmark_data: Callable[[str], Path]) -> None:
    benchmark_data("bibtex")
    paths = longtail_papers.run("dft", tmp_path, quick=True)
    assert sorted(paths) == sorted(tmp_path.iterdir())
    results = json.loads((tmp_path / "dft.json").read_text(encoding="utf-8"))
    assert results["finished"]
    steps, claims, bibtex = results["sections"]
    assert all(row["DFT / bottleneck"] > 0 for row in steps["tables"][0]["rows"])
    assert claims["tables"][0]["rows"][0]["measured"] == "0 unargmaxable, 0 undetermined, of 100"
    rows = bibtex["tables"][0]["rows"]
    assert [(row["head"], row["columns in all"]) for row in rows] == [
        *(("Bottleneck", 5), ("Bottleneck", 50)),
        *(("DFT", 62), ("DFT", 107)),
    ]
