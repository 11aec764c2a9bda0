"""The benchmark of the service, in a few seconds on a small model: what must hold however slow the machine is."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType

import joblib
import numpy as np
import psutil
import pytest

pytest.importorskip("fastapi")

from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from benchmarks import serve
from benchmarks.load import CONNECTION_ERROR, TIMED_OUT, Record, schedule
from benchmarks.phases import Plan, timeline
from benchmarks.serve_report import memory_growth
from benchmarks.services import Service, ask, get, longtail_service, post, started
from longtail import Ridge, Tagger, TextFeatures
from longtail.errors import Unavailable

TEXTS = ["red apples and pears", "green apples", "clear blue sky", "grey sky and rain"]
LABELS = [["fruit"], ["fruit"], ["weather"], ["weather"]]
PLAN = Plan(
    capacity=0.5, steady=0.5, overload=1.0, alone=0.5, rate=40, connections=4, most_connections=40, timeout=60, settle=0
)


@pytest.fixture
def service(tmp_path: Path) -> Service:
    Tagger(TextFeatures(min_df=1), Ridge()).fit(TEXTS, LABELS).save(tmp_path / "model")
    return longtail_service(tmp_path / "model")


@pytest.mark.slow
def test_all_requests_are_accounted_for_and_none_fails(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "service_of", lambda key, models: service)
    monkeypatch.setattr(serve, "held_out_texts", lambda count: TEXTS)
    monkeypatch.setattr(serve, "QUICK", PLAN)
    serve.main(["--quick", "--only", "longtail", "--out", str(tmp_path / "out")])
    phases = json.loads((tmp_path / "out" / "serve-measurements.json").read_text())["services"]["longtail"]["phases"]
    assert list(phases) == ["floor", "1 at a time", "8 at a time", "capacity", "before", "overload", "after"]
    for phase in phases.values():
        assert set(phase["statuses"]) <= {"200", "429"}
        assert phase["statuses"]["200"] > 0
        assert phase["differing"] == 0
        assert phase["memory"]
    for name in ("before", "overload", "after"):
        due = schedule(phases[name]["offered"], phases[name]["seconds"], PLAN.seed)
        assert sum(phases[name]["statuses"].values()) == len(due)
        assert sum(line["200"] + line["429"] + line["other"] for line in phases[name]["timeline"]) == len(due)
    assert phases["overload"]["offered"] == pytest.approx(max(2, 2 * phases["capacity"]["answered"]))
    sections = json.loads((tmp_path / "out" / "serve.json").read_text())["sections"]
    bars = {row["bar"]: row["verdict"] for table in sections[1]["tables"] for row in table["rows"]}
    assert bars["refusals there are 429s"] == bars["answers that differ from those alone"] == "met"
    assert (tmp_path / "out" / "serve-longtail-overload.png").is_file()


def test_a_service_runs_as_long_as_it_is_needed(service: Service, tmp_path: Path) -> None:
    with started(service, tmp_path / "log") as running:
        assert ask(running.port, get(service.live))[0] == 200
        status, body, seconds = ask(running.port, post(service.path, TEXTS[3]))
        assert (status, json.loads(body)["results"][0]["tags"][0]["label"]) == (200, "weather")
        assert 0 < seconds < 60
        assert running.memory() > 2**20
    assert not psutil.pid_exists(running.process.pid)


def test_a_service_that_does_not_start_is_told_with_its_own_words(tmp_path: Path) -> None:
    command = (sys.executable, "-c", "raise SystemExit('no such model')")
    broken = Service("broken", "Broken", command, "/", "/", "pass")
    with pytest.raises(Unavailable, match="no such model"), started(broken, tmp_path / "log"):
        pass


@pytest.mark.parametrize("stacked", ["", "1"])
def test_the_plain_app_gives_the_best_labels(stacked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["fruit", "weather", "sky"]
    truth = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 1], [0, 1, 0]])
    pipeline = make_pipeline(TfidfVectorizer(), OneVsRestClassifier(LinearSVC())).fit(TEXTS, truth)
    joblib.dump((pipeline, names), tmp_path / "model")
    monkeypatch.setenv("PLAIN_MODEL", str(tmp_path / "model"))
    monkeypatch.setenv("PLAIN_STACKED", stacked)
    sys.modules.pop("benchmarks.plain_app", None)
    app: ModuleType = importlib.import_module("benchmarks.plain_app")
    answer = app.tag(app.TagRequest(text="apples", k=2))
    expected = pipeline.decision_function(["apples"])[0]
    assert [tag.label for tag in answer.tags] == [names[place] for place in np.argsort(-expected)[:2]]
    assert [tag.score for tag in answer.tags] == pytest.approx(np.sort(expected)[::-1][:2])


def test_a_time_line_counts_answers_in_the_second_they_came() -> None:
    record = Record(
        due=np.array([0.0, 0.1, 0.2, 0.3, 1.0]),
        sent=np.array([0.0, 0.1, 0.2, np.nan, 1.0]),
        done=np.array([0.5, 1.1, 0.3, 1.3, 1.9]),
        status=np.array([200, 200, 429, TIMED_OUT, CONNECTION_ERROR]),
        differing=0,
        connections=1,
    )
    first, second = timeline(record)
    assert (first["200"], first["429"], first["other"]) == (1, 1, 0)
    assert (second["200"], second["429"], second["other"]) == (1, 0, 2)
    assert second["p99"] == pytest.approx(1.0)


def test_memory_that_leaks_is_seen_behind_the_first_seconds() -> None:
    flat = [(second, 100 + 50 * (second >= 5)) for second in range(120)]
    leaking = [(second, size + second) for second, size in flat]
    assert memory_growth(flat, settle=10) == (0.0, 0.0)
    growth, slope = memory_growth(leaking, settle=10)
    assert growth == pytest.approx(109 / 160, abs=1e-6)
    assert slope == pytest.approx(60)
