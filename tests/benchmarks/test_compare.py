from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import compare
from benchmarks.data import Prepared
from benchmarks.learners import Learner
from benchmarks.measure import Measurement
from longtail.errors import Unavailable

Make = Callable[..., Measurement]


@pytest.fixture
def one_data_set(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> None:
    def prepare(name: str, cache: Path) -> Prepared:
        if name != prepared.name:
            raise Unavailable(f"{name} is not here")
        return prepared

    monkeypatch.setattr(compare, "prepare", prepare)


def test_measurements_come_back_as_they_were_written(tmp_path: Path, measured: Make) -> None:
    written = [measured("tree", 2, train_seconds=1 / 3), Measurement("bibtex", "ridge", 1, "crashed", "status 1: ü")]
    compare.write_measurements(tmp_path / "all.json", written)
    assert compare.read_measurements(tmp_path / "all.json") == written


@pytest.mark.usefixtures("one_data_set")
def test_a_report_is_written_from_measurements_alone(
    tmp_path: Path, measured: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    raw, out = tmp_path / "all.json", tmp_path / "out"
    rounds = [measured("tree", train_seconds=2.0), measured("pecos", 1, train_seconds=8.0)]
    rounds += [measured("pecos", 2, train_seconds=10.0), Measurement("bibtex", "parabel", 1, "timed out", "after 9 s")]
    compare.write_measurements(raw, rounds)
    compare.main(["--data", "bibtex", "delicious", "--read", str(raw), "--out", str(out), "--cache", str(tmp_path)])

    sections = {section["title"]: section for section in json.loads((out / "compare.json").read_text())["sections"]}
    cost, quality, ratios, without = sections["Bibtex"]["tables"]
    assert [(row["learner"], row["train s"]) for row in cost["rows"]] == [
        ("LabelTree, 1 tree", 2.0),
        ("PECOS XR-Linear", 9.0),
    ]
    assert cost["rows"][1]["train s range"] == "8.00 to 10.00"
    assert len(quality["rows"]) == 2
    assert [row["train s"] for row in ratios["rows"]] == ["PECOS XR-Linear", pytest.approx(2 / 9)]
    assert without["rows"] == [{"learner": "omikuji Parabel, 3 trees", "status": "timed out", "reason": "after 9 s"}]
    verdicts = {row["bar"]: row["verdict"] for row in sections["Bars of comparison"]["tables"][0]["rows"]}
    assert verdicts["one tree: training time / PECOS"] == "holds"
    assert "delicious is not here" in (out / "compare.md").read_text()
    assert (out / "compare-bibtex.png").stat().st_size > 5_000
    assert (out / "compare-accuracy.png").stat().st_size > 5_000
    assert "training time / PECOS" in capsys.readouterr().out


@pytest.mark.usefixtures("one_data_set")
def test_a_run_measures_and_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fakes = tuple(Learner(key, key, "tests.benchmarks.fake_learner:Fake") for key in ("one", "two"))
    monkeypatch.setattr(compare, "LEARNERS", fakes)
    raw = tmp_path / "results" / "measurements.json"
    shared = ["--data", "bibtex", "--quick", "--cache", str(tmp_path)]
    compare.main([*shared, "--learners", "one"])
    first = compare.read_measurements(raw)
    compare.main([*shared, "--learners", "two", "--resume"])
    both = compare.read_measurements(raw)
    assert [measurement.learner for measurement in both] == ["one", "two"]
    assert both[0] == first[0]
    assert both[1].figures["P@1"] == 100
