from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from longtail_papers.common import Claim, Context, Experiment, Section, experiment, tracked


def trial(*sections: Any, **options: Any) -> Experiment:
    return Experiment("try", "longtail_papers.ridge.experiment", "A trial", "Why.", ("bibtex",), sections, **options)


@pytest.fixture(autouse=True)
def _data_is_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "why_missing", lambda name: None)


def measured(context: Context) -> Iterator[Section]:
    found = context.records().measured({"seed": 0}, lambda: {"P@1": 7.0})
    yield Section("Measured", f"{found['P@1']}")
    context.claims.append(Claim("seven is seven", "7", True))


def test_sections_come_in_order_and_claims_at_the_end(tmp_path: Path) -> None:
    def first(context: Context) -> Iterator[Section]:
        yield Section("First", "one")

    paths = trial(first, measured, parts={"": None}).run(tmp_path, quick=True)
    assert [path.name for path in paths] == ["try.md", "try.json", "try-quick.json"]
    sections = json.loads(paths[1].read_text(encoding="utf-8"))["sections"]
    assert [section["title"] for section in sections] == ["First", "Measured", "What holds"]


def test_an_interrupted_run_keeps_the_parts_that_are_done(tmp_path: Path) -> None:
    def interrupted(context: Context) -> Iterator[Section]:
        yield Section("Done", "kept")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trial(interrupted).run(tmp_path, quick=True)
    assert "kept" in (tmp_path / "try.md").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "try.json").read_text(encoding="utf-8"))["finished"] is False


def test_the_page_says_how_many_records_are_from_before(tmp_path: Path) -> None:
    for told in (False, True):
        trial(measured, parts={"": None}).run(tmp_path, quick=True)
        text = (tmp_path / "try.md").read_text(encoding="utf-8")
        assert ("Measurements recorded before this run: 1." in text) is told


def test_the_small_version_has_its_own_records_and_data_sets(tmp_path: Path) -> None:
    both = trial(measured, parts={"part": None}, quick_data_sets=("delicious",))
    quick, full = (Context(both, tmp_path, each) for each in (True, False))
    assert (quick.data_sets, full.data_sets) == (("delicious",), ("bibtex",))
    assert [each.records("part").path.name for each in (quick, full)] == ["try-part-quick.json", "try-part-runs.json"]


def test_the_full_version_runs_its_parts_side_by_side_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(experiment, "call_side_by_side", lambda function, arguments, _: calls.extend(arguments))
    both = trial(measured, parts={"slow": measured, "": None})
    both.run(tmp_path, quick=True)
    assert not calls
    both.run(tmp_path)
    assert calls == [{"module": both.module, "part": "slow", "directory": str(tmp_path)}]


def test_a_part_leaves_its_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from longtail_papers.ridge import experiment as ridge

    monkeypatch.setattr(ridge, "EXPERIMENT", trial(parts={"slow": measured}))
    experiment.run_part("longtail_papers.ridge.experiment", "slow", str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["try-runs.json"]


def test_records_are_kept_until_the_code_of_the_experiment_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = Context(trial(measured), tmp_path, True)
    list(measured(context))
    assert context.records().kept == 1
    monkeypatch.setattr(experiment, "source_digest", lambda module: "other")
    assert context.records().kept == 0


def test_progress_advances_after_each_item() -> None:
    from longtail.progress import listening

    done: list[int] = []

    class Bar:
        def __enter__(self) -> Any:
            return lambda amount, note="": done.append(amount)

        def __exit__(self, *error: object) -> None:
            done.append(-1)

    with listening(lambda description, total: Bar()):
        items = tracked("counting", "ab")
        assert (next(items), done) == ("a", [])
        assert list(items) == ["b"]
    assert done == [1, 1, -1]
