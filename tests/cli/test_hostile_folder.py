"""Every command in a folder that holds Python files named after modules: none of them may ever be imported."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from dataclasses import fields
from pathlib import Path

import pytest

from longtail.cli.program import COMMANDS
from longtail.data.sets.package_index import pip_sources
from longtail.planning import Costs
from longtail.processes import isolated_python
from longtail_papers.common.isolated import call_isolated

MODULES = ("json", "numpy", "longtail", "scipy", "sklearn", "pip", "subprocess", "importlib", "torch", "encodings")
PAGES = '{"texts": ["red apples", "clear sky"], "labels": ["fruit", "weather"]}\n' * 3
# What each command is run with; those that no model or file leads into do the work that takes them furthest.
RUNS = {
    "check": ["check", "notes.jsonl", "--out", "page.html"],
    "prepare": ["prepare", "notes.jsonl", "--out", "prepared"],
    "plan": ["plan", "--rows=9", "--labels=3", "--features=5", "--per-row=2", "--labels-per-row=1", "--costs=c.json"],
    "train": ["train", "notes.jsonl", "--out", "another", "--min-df", "1"],
    "update": ["update", "model", "notes.jsonl"],
    "compare": ["compare", "notes.jsonl", "--holdout", "0.4", "--learners", "tree", "--min-df", "1"],
    "assign": ["assign", "pages.jsonl", "--min-df", "1"],
    "predict": ["predict", "model", "notes.jsonl"],
    "evaluate": ["evaluate", "model", "notes.jsonl"],
    "explain": ["explain", "model", "--text", "red apples", "--label", "fruit"],
    "labels": ["labels", "model"],
    "tree": ["tree", "model"],
    "audit": ["audit", "model", "notes.jsonl"],
    "select": ["select", "notes.jsonl", "-n", "2", "--min-df", "1"],
    "report": ["report", "model", "notes.jsonl"],
    "serve": ["serve", "model", "--port", "0"],
    "demo": ["demo", "--out", "demo-model"],
    "datasets": ["datasets", "fetch", "mnist"],
    "info": ["info", "model"],
    "reproduce": ["reproduce"],
    "completion": ["completion", "bash"],
}


@pytest.fixture(autouse=True)
def _hostile(tmp_path: Path) -> None:
    for name in MODULES:
        marker = tmp_path / f"{name} was imported"
        (tmp_path / f"{name}.py").write_text(f"open({str(marker)!r}, 'w').close()\n", encoding="utf-8")


def imported() -> list[str]:
    return sorted(path.name for path in Path().glob("* was imported"))


def test_the_files_would_be_noticed() -> None:
    subprocess.run([sys.executable, "-c", "import json"], check=True)
    assert imported() == ["json was imported"]


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_imports_nothing_from_the_working_directory(name: str) -> None:
    program = shutil.which("longtail", path=sysconfig.get_path("scripts"))
    assert program is not None
    environment = {**os.environ, "PIP_NO_INDEX": "1", "LONGTAIL_DATA": os.getcwd(), "LONGTAIL_CACHE": os.getcwd()}
    Path("pages.jsonl").write_text(PAGES, encoding="utf-8")
    Costs(*[1e-9] * len(fields(Costs))).save("c.json")
    if "model" in RUNS[name]:
        options = ["--learner", "tree", "--min-df", "1", *(["--updatable"] if name == "update" else [])]
        subprocess.run([program, "train", "notes.jsonl", "--out", "model", *options], env=environment, check=True)
    if name == "serve":
        with subprocess.Popen([program, *RUNS[name]], env=environment, stdout=subprocess.PIPE, text=True) as service:
            assert service.stdout is not None
            assert "http://" in service.stdout.readline()
            service.send_signal(signal.SIGTERM)
    else:
        done = subprocess.run([program, *RUNS[name]], env=environment, capture_output=True, text=True)
        # Without an index nothing can be fetched, but pip has been asked by then.
        assert done.returncode == (1 if name == "datasets" else 0), done.stderr
    assert imported() == []


def test_a_child_imports_nothing_from_the_working_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    # As in a program that was started with `python -m` or `python -c`.
    monkeypatch.syspath_prepend(os.getcwd())
    monkeypatch.syspath_prepend("")
    sources = pip_sources()
    assert sources.timeout > 0
    assert call_isolated("os:getpid") != os.getpid()
    code = f"import {', '.join(MODULES)}" if "torch" in sys.modules else f"import {', '.join(MODULES[:-2])}"
    subprocess.run(isolated_python(code), check=True)
    assert imported() == []


def test_a_child_finds_what_this_process_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "only_here.py").write_text("found = 'yes'\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path / "elsewhere")
    code = "import only_here; print(only_here.found, sys.argv[1:])"
    done = subprocess.run(isolated_python(code, "a b"), capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[0] == "yes ['a b']"
