"""`longtail update` from the shell: what it tells, where it writes, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

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


def test_feedback_under_the_old_name_of_a_label_counts_for_the_new_one(longtail: Callable, model: str) -> None:
    line = {"text": "red apples and pears", "accepted": ["red"], "rejected": ["fruit"]}
    Path("late.jsonl").write_text(json.dumps(line))
    found = longtail("update", model, "late.jsonl", "--rename", "fruit=fruits", "--drop-label", "red")
    assert "1 changed, 0 removed; 3 labels (1 new, 1 renamed, 1 dropped)" in found.out
    assert "such as 'fruit', which is read as 'fruits'" in found.err
    assert "such as 'red', which is a new label now" in found.err


def test_removals_by_text_work_and_removals_of_no_row_are_told(longtail: Callable, model: str) -> None:
    lines = [{"id": "zz", "remove": True}, {"text": "clear blue sky", "remove": True}, {"id": "c", "remove": True}]
    Path("gone.jsonl").write_text("\n".join(map(json.dumps, lines)))
    found = longtail("update", model, "gone.jsonl")
    assert "0 new rows, 0 changed, 1 removed" in found.out
    assert "2 removals found no row to remove, such as gone.jsonl:1: the row with the id 'zz'" in found.err


def test_rows_with_empty_ids_are_rows_of_their_own(longtail: Callable, model: str) -> None:
    Path("new.csv").write_text("id,text,labels\n,green roses,flower\n,wet roses,flower\nf,green pears,fruit\n")
    assert "model: 2 new rows, 1 changed, 0 removed; 4 labels" in longtail("update", model, "new.csv").out


def test_the_shell_and_python_give_the_same_bytes(longtail: Callable, model: str) -> None:
    from longtail import load

    load(model).update("new.jsonl").save("python")
    assert longtail("update", model, "new.jsonl", "--out", "shell").code == 0
    for path in sorted(Path("python").iterdir()):
        assert path.read_bytes() == (Path("shell") / path.name).read_bytes()


def test_of_two_updates_at_the_same_time_none_is_lost(
    longtail: Callable, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from longtail import Tagger

    update = Tagger.update

    def slow(tagger: Tagger, changes: Any, **options: Any) -> Tagger:
        monkeypatch.setattr(Tagger, "update", update)
        Path("other.jsonl").write_text('{"text": "yellow pears", "labels": ["fruit"]}')
        assert longtail("update", model, "other.jsonl").code == 0
        return update(tagger, changes, **options)

    monkeypatch.setattr(Tagger, "update", slow)
    refused = longtail("update", model, "new.jsonl")
    assert refused.code == 1
    assert "replaced by another process" in refused.err
    assert "again" in refused.err
    assert "1 new row, 2 changed, 1 removed" in longtail("update", model, "new.jsonl").out
    assert json.loads(Path("model/card.json").read_text())["data"]["rows"] == 7


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
        (("--rename", "a=b=c"), "can hold any name"),
        (("--rename", "fruit=a", "--rename", "fruit=b"), "'fruit' is renamed to 'a' and to 'b'"),
        (("missing.jsonl",), "there is no file missing.jsonl"),
        (("bad.jsonl",), "bad.jsonl:2: a removal needs the 'id' or the text of its row"),
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


def kept(*records: dict) -> None:
    """Write a file as `longtail serve --feedback` does."""
    Path("feedback.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


def test_corrections_of_several_models_are_not_mixed(longtail: Callable, model: str) -> None:
    kept(
        {"model": "notes", "text": "yellow pears", "accepted": ["fruit"]},
        {"model": "places", "text": "by train", "added": ["travel"]},
        {"text": "written by hand", "added": ["hand"]},
    )
    refused = longtail("update", model, "feedback.jsonl")
    assert refused.code == 1
    assert "the models 'notes', 'places'; choose with --corrections-of NAME" in " ".join(refused.err.split())
    refused = longtail("update", model, "feedback.jsonl", "--corrections-of", "a")
    assert "no correction is of the model 'a'; they are of 'notes', 'places'" in " ".join(refused.err.split())
    found = longtail("update", model, "feedback.jsonl", "--corrections-of", "notes")
    assert "model: 2 new rows, 0 changed, 0 removed; 4 labels (1 new)" in found.out
    both = longtail("update", model, "feedback.jsonl", "--corrections-of", "notes", "--corrections-of", "places")
    assert "model: 1 new row, 0 changed, 0 removed; 5 labels (1 new)" in both.out


def test_the_card_tells_until_when_corrections_are_learnt(longtail: Callable, model: str) -> None:
    def until() -> str:
        return str(json.loads(Path("model/card.json").read_text())["updates"]["corrections_until"])

    saved = Path("model/manifest.json").stat().st_mtime
    Path("rows.jsonl").write_text('{"id": "g", "text": "green roses", "labels": ["flower"]}\n')
    longtail("update", model, "rows.jsonl")
    assert datetime.fromisoformat(until()).timestamp() == pytest.approx(saved)  # later ones wait
    now = datetime.now(UTC).isoformat()
    kept({"time": now, "model": "m", "text": "pears", "accepted": ["fruit"]}, {"text": "roses", "added": ["flower"]})
    longtail("update", model, "feedback.jsonl")
    assert until() == now
    kept({"time": "2999-01-01T00:00:00+00:00", "model": "m", "text": "pears", "accepted": ["red"]})
    longtail("update", model, "feedback.jsonl")
    longtail("update", model, "rows.jsonl")
    assert now < until() < "2999"


def test_a_model_without_its_rows_says_what_to_do(longtail: Callable) -> None:
    longtail("train", "notes.jsonl", "--out", "plain", "--min-df", "1")
    Path("new.jsonl").write_text(NEW)
    assert "train it again with `longtail train --updatable`" in longtail("update", "plain", "new.jsonl").err
