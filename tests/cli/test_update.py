"""`longtail update` from the shell: what it tells, where it writes, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

NEW = """\
{"id": "g", "text": "green roses", "labels": ["flower"]}
{"id": "e", "text": "rain on red roses", "labels": ["flower", "red"]}
{"id": "c", "remove": true}
{"text": "grey sky and rain", "accepted": ["weather"], "rejected": [], "added": ["rain"]}
"""


@pytest.fixture
def model(longtail: Callable) -> str:
    trained = longtail("train", "notes.jsonl", "--out", "model", "--min-df", "1", "--updatable")
    assert trained.code == 0
    assert "of it for updates" in trained.out
    Path("new.jsonl").write_text(NEW)
    return "model"


def test_an_update_replaces_the_model_and_tells_what_changed(longtail: Callable, model: str) -> None:
    found = longtail("update", model, "new.jsonl", "--rename", "fruit=fruits")
    assert found.code == 0
    assert "model: 1 new row, 2 changed, 1 removed; 5 labels (2 new, 1 renamed); took" in found.out
    assert "a full training is due" in found.err
    card = json.loads(Path("model/card.json").read_text())
    assert card["updates"]["corrections"] == 1
    assert card["data"] == {"source": "notes.jsonl", "rows": 6, "labels": 5}
    assert "1 correction learnt" in longtail("info", model).out
    tags = longtail("predict", model, "--text", "green apples", "-k", "1").out
    assert json.loads(tags)["labels"][0]["label"] == "fruits"


def test_rows_with_empty_ids_are_rows_of_their_own(longtail: Callable, model: str) -> None:
    Path("new.csv").write_text("id,text,labels\n,green roses,flower\n,wet roses,flower\nf,green pears,fruit\n")
    assert "model: 2 new rows, 1 changed, 0 removed; 4 labels" in longtail("update", model, "new.csv").out


def test_the_shell_and_python_give_the_same_bytes(longtail: Callable, model: str) -> None:
    from longtail import load

    load(model).update("new.jsonl").save("python")
    assert longtail("update", model, "new.jsonl", "--out", "shell").code == 0
    for path in sorted(Path("python").iterdir()):
        assert path.read_bytes() == (Path("shell") / path.name).read_bytes()


def test_another_model_is_written_and_not_replaced_without_force(longtail: Callable, model: str) -> None:
    before = Path("model/manifest.json").read_bytes()
    assert longtail("update", model, "-", "--out", "other", stdin=NEW.encode()).code == 0
    assert Path("model/manifest.json").read_bytes() == before
    assert "use --force" in longtail("update", model, "new.jsonl", "--out", "other").err
    assert longtail("update", model, "new.jsonl", "--out", "other", "--force").code == 0


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "there is nothing to learn"),
        (("--drop-label", "fruti"), "did you mean 'fruit'?"),
        (("--rename", "fruti=a"), "did you mean 'fruit'?"),
        (("--rename", "fruit"), "expected OLD=NEW"),
        (("missing.jsonl",), "there is no file missing.jsonl"),
        (("bad.jsonl",), "bad.jsonl:2: a removal needs the 'id' of its row"),
        (("late.jsonl",), "late.jsonl:1: there is no label 'nobody'"),
    ],
)
def test_what_cannot_be_learnt_is_refused(longtail: Callable, model: str, arguments: tuple, reason: str) -> None:
    Path("bad.jsonl").write_text('{"text": "a", "labels": []}\n{"remove": true}\n')
    Path("late.jsonl").write_text('{"rename": {"nobody": "a"}}\n')
    before = Path("model/manifest.json").read_bytes()
    found = longtail("update", model, *arguments)
    assert found.code in (1, 2)
    assert reason in " ".join(found.err.split())
    assert Path("model/manifest.json").read_bytes() == before


def test_a_model_without_its_rows_says_what_to_do(longtail: Callable) -> None:
    longtail("train", "notes.jsonl", "--out", "plain", "--min-df", "1")
    Path("new.jsonl").write_text(NEW)
    assert "train it again with `longtail train --updatable`" in longtail("update", "plain", "new.jsonl").err
