"""Training in pieces from the command line: the same model, clear errors, nothing lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from longtail.work.task import Task

TREE = ("--learner", "tree", "--min-df", "1", "--leaf-size", "2")
RIDGE = ("--learner", "ridge", "--min-df", "1")


def arrays(model: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in Path(model).glob("*.npy")}


@pytest.mark.parametrize("learner", [TREE, (*RIDGE, "--alpha", "1"), RIDGE])
def test_a_model_trained_in_pieces_is_the_one_trained_in_memory(longtail: Callable, learner: tuple[str, ...]) -> None:
    assert longtail("train", "notes.jsonl", "--out", "memory", *learner).code == 0
    assert longtail("train", "notes.jsonl", "--out", "pieces", "--resume", *learner).code == 0
    assert arrays("pieces") == arrays("memory")
    assert not Path("pieces.unfinished").exists()


def test_the_same_command_goes_on_after_an_interruption(longtail: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    run, started = Task.run, []

    def interrupted(task: Task) -> bool:
        started.append(task.name)
        if len(started) == 3:
            raise KeyboardInterrupt
        return run(task)

    assert longtail("train", "notes.jsonl", "--out", "memory", *TREE).code == 0
    with monkeypatch.context() as patch:
        patch.setattr(Task, "run", interrupted)
        assert longtail("train", "notes.jsonl", "--out", "pieces", "--resume", "--jobs", "1", *TREE).code != 0
    assert Path("pieces.unfinished").is_dir()
    assert not Path("pieces").exists()
    told = longtail("train", "notes.jsonl", "--out", "pieces", "--resume", "--C", "2", *TREE)
    assert told.code != 0
    assert "unfinished work of another job" in told.err
    assert longtail("train", "notes.jsonl", "--out", "pieces", "--resume", *TREE).code == 0
    assert arrays("pieces") == arrays("memory")


def test_a_file_that_does_not_fit_is_trained_in_pieces_and_says_so(
    longtail: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longtail.cli.pieces._MEMORY_OF_A_BYTE", 10**9)
    result = longtail("train", "notes.jsonl", "--out", "pieces", "--memory", "2G", *TREE)
    assert result.code == 0, result.err
    assert "more than is available: training in pieces on disk" in result.err
    assert longtail("train", "notes.jsonl", "--out", "small", *TREE).code == 0


def test_an_unreachable_scheduler_is_told_before_work_starts(
    longtail: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longtail.work.cluster._PATIENCE", 0.5)
    result = longtail("train", "notes.jsonl", "--out", "model", "--cluster", "tcp://127.0.0.1:1", *TREE)
    assert result.code != 0
    assert "there is no scheduler at tcp://127.0.0.1:1" in result.err
    assert not Path("model").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("-", "--resume"), "cannot read standard input"),
        (("notes.jsonl", "--resume", "--density", "0.5"), "trains in memory only; use prune instead of density"),
    ],
)
def test_what_cannot_be_trained_in_pieces_is_refused(longtail: Callable, arguments: tuple[str, ...], told: str) -> None:
    result = longtail("train", *arguments, "--out", "model")
    assert result.code != 0
    assert told in result.err


def test_prepared_rows_get_the_labels_of_their_texts(longtail: Callable) -> None:
    assert longtail("train", "notes.jsonl", "--out", "model", *TREE).code == 0
    assert longtail("prepare", "notes.jsonl", "--out", "prepared", "--min-df", "1").code == 0
    from_texts, prepared = (longtail("predict", "model", data, "-k", "2").out for data in ("notes.jsonl", "prepared"))
    assert from_texts == prepared
    assert from_texts.count("\n") > 2


def test_workers_predict_only_prepared_rows(longtail: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    from contextlib import nullcontext

    opened: list[Any] = []
    monkeypatch.setattr(
        "longtail.cli.pieces.ClusterOptions.opened", lambda self, model: nullcontext(opened.append(model))
    )
    assert longtail("train", "notes.jsonl", "--out", "model", *TREE).code == 0
    result = longtail("predict", "model", "notes.jsonl", "--cluster", "tcp://127.0.0.1:1")
    assert result.code != 0
    assert "prepare it first with `longtail prepare`" in result.err


def test_a_prepared_corpus_of_another_format_version_is_refused(longtail: Callable) -> None:
    assert longtail("prepare", "notes.jsonl", "--out", "prepared", "--min-df", "1").code == 0
    manifest = Path("prepared", "manifest.json")
    manifest.write_bytes(manifest.read_bytes().replace(b'"version": 1', b'"version": 99', 1))
    result = longtail("train", "prepared", "--out", "model", "--resume", *TREE)
    assert result.code == 1
    assert "format version 99" in result.err
    assert not Path("model").exists()
