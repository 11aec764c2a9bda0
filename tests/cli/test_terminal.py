"""What a person at a terminal sees, and what is told where there is none."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable

import pytest

from longtail import progress
from longtail.cli import terminal
from longtail.cli.terminal import Terminal

PROGRAM = [sys.executable, "-m", "longtail"]


def on_a_terminal(*arguments: str, stdin: int = subprocess.DEVNULL) -> str:
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "PYTHONUTF8": "1", "COLUMNS": "100"}
    with subprocess.Popen(
        [*PROGRAM, *arguments], stdin=stdin, stdout=theirs, stderr=theirs, env=environment
    ) as running:
        os.close(theirs)
        seen = b""
        try:
            while block := os.read(ours, 2**16):
                seen += block
        except OSError:  # how Linux says that the other end was closed
            pass
    os.close(ours)
    assert running.returncode == 0, seen
    return seen.decode()


def test_training_draws_bars(model: str) -> None:
    seen = on_a_terminal("train", "notes.jsonl", "--out", "another")
    assert "solving for labels" in seen
    assert "━" in seen
    assert "another: 3 labels" in seen


def test_training_a_network_shows_epoch_and_loss_beside_the_bar() -> None:
    pytest.importorskip("torch")
    network = ["--learner", "network", "--width", "8", "--epochs", "100", "--jobs", "1"]
    seen = on_a_terminal("train", "notes.jsonl", "--out", "m", *network)
    assert re.search(r"training: epoch \d+ of 100, loss [\d.]+", seen)
    assert "━" in seen


def test_training_a_network_tells_epoch_and_loss_in_lines(longtail: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr(terminal, "_SECONDS_BETWEEN_LINES", 0)
    told = longtail("train", "notes.jsonl", "--out", "m", "--learner", "network", "--width", "8", "--epochs", "2").err
    lines = [line for line in told.splitlines() if line.startswith("training: ")]
    assert re.fullmatch(r"training: epoch 1 of 2, loss [\d.]+: 8%, about \d+ s left", lines[0])
    assert re.fullmatch(r"training: epoch 2 of 2, loss [\d.]+: 100%, about 0 s left", lines[-1])


def test_predictions_are_a_table_on_a_terminal(model: str) -> None:
    seen = on_a_terminal("predict", model, "notes.jsonl", "-k", "1")
    assert "█" in seen
    assert "fruit" in seen
    assert "predicting" not in seen
    assert '"labels"' not in seen


def test_long_work_is_told_in_lines_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([0.0, 5.0, 20.0, 25.0, 40.0])
    monkeypatch.setattr(terminal.time, "monotonic", lambda: next(times))
    with Terminal().working(), progress.task("counting", total=4) as advance:
        for _ in range(4):
            advance(1)
    assert capsys.readouterr().err == "counting: 50%, about 20 s left\ncounting: 100%, about 0 s left\n"


def test_each_of_several_trees_says_which_it_is(longtail: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "_SECONDS_BETWEEN_LINES", 0)
    told = longtail("train", "notes.jsonl", "--out", "m", "--trees", "2", "--negatives", "beam", "--leaf-size", "2").err
    tasks = [line.rsplit(": ", 1)[0] for line in told.splitlines() if line.startswith("tree ")]
    assert list(dict.fromkeys(tasks)) == [
        f"tree {number} of 2: {task}"
        for number in (1, 2)
        for task in (
            "clustering labels",
            "training classifiers",
            "searching for negatives",
            "training classifiers again",
        )
    ]


def test_quiet_shows_no_progress(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "_SECONDS_BETWEEN_LINES", 0)
    with Terminal(quiet=True).working(), progress.task("counting", total=1) as advance:
        advance(1)
    assert capsys.readouterr().err == ""


def test_without_arguments_help_is_shown(longtail: Callable) -> None:
    result = longtail()
    assert "Commands:" in result.out + result.err
