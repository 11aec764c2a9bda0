"""The card of a model as commands write and show it."""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from longtail import Ridge, Tagger, store
from longtail.cli import audit, inputs, measuring
from longtail.cli.cards import EVERY, learnt_from, source
from longtail.store import read_card, update_card


def test_training_says_what_it_learnt_from_and_how(longtail: Callable, model: str) -> None:
    card = read_card(model)
    assert card is not None
    assert card["data"] == {"source": "notes.jsonl", "rows": 6, "labels": 3}
    assert card["trained"]["learner"] == "Ridge"
    assert card["trained"]["reason"] == "learner: ridge with alpha=0.1, as given"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", card["trained"]["at"])
    assert "metrics" not in card


def test_a_card_names_no_folder(longtail: Callable) -> None:
    Path("secret-folder").mkdir()
    Path("notes.jsonl").rename("secret-folder/notes.jsonl")
    assert longtail("train", str(Path("secret-folder/notes.jsonl").absolute()), "--out", "model").code == 0
    assert b"secret-folder" not in Path("model/card.json").read_bytes()


def test_validation_is_part_of_the_card(longtail: Callable) -> None:
    arguments = ["train", "notes.jsonl", "--holdout", "0.34", "--min-df", "1", "--out"]
    assert longtail(*arguments, "model").code == 0
    assert longtail(*arguments, "part", "--no-refit").code == 0
    whole, part = read_card("model"), read_card("part")
    assert whole is not None
    assert part is not None
    assert whole["metrics"]["metrics"] == part["metrics"]["metrics"]
    assert whole["metrics"]["data"] == "2 rows held out of notes.jsonl, before training on all"
    assert (part["metrics"]["data"], part["data"]["rows"]) == ("2 rows held out of notes.jsonl", 4)


@pytest.mark.parametrize(("labels", "threshold"), [("fruit;all", True), ("fruit", False)])
def test_a_card_says_what_tags_to_expect(longtail: Callable, labels: str, threshold: bool) -> None:
    lines = [f"apple {i % 4},{labels}\nrain {i % 3},{labels.replace('fruit', 'sky')}" for i in range(30)]
    Path("rows.csv").write_text("\n".join(["text,labels", *lines]), encoding="utf-8")
    assert longtail("train", "rows.csv", "--out", "model", "--min-df", "1", "--force").code == 0
    card = read_card("model")
    assert card is not None
    assert ("threshold" in card["decision"]) == threshold
    [line] = [line for line in longtail("info", "model").out.splitlines() if line.startswith("tags: ")]
    assert ("from probability" in line) == threshold
    assert re.search(r"precision 100\.0, recall 100\.0, f1 100\.0; \d\.0 per row; calibration error 0\.\d{3}$", line)


def test_groups_have_a_card_too(longtail: Callable) -> None:
    lines = ['{"texts": ["red apples", "grey sky"], "labels": ["fruit", "sky"]}\n'] * 3
    Path("pages.jsonl").write_text("".join(lines), encoding="utf-8")
    assert longtail("train", "pages.jsonl", "--out", "model", "--strategy", "all").code == 0
    card = read_card("model")
    assert card is not None
    assert card["data"]["source"] == "pages.jsonl"
    assert card["trained"]["reason"].startswith("learner: ")


def test_what_was_measured_is_kept_where_asked(longtail: Callable, model: str) -> None:
    report = json.loads(longtail("evaluate", model, "notes.jsonl", "--json").out)
    assert "metrics" not in read_card(model)
    kept = longtail("evaluate", model, "notes.jsonl", "--card")
    assert kept.err.endswith("\nwrote the metrics into the card of model\n")
    found = read_card(model)["metrics"]
    assert (found["data"], found["rows"], found["labels"]) == ("notes.jsonl", 6, 3)
    assert found["metrics"] == report["metrics"]
    assert found["groups"] == report["groups"]


def test_what_an_audit_found_is_kept_where_asked(longtail: Callable, model: str) -> None:
    facts = json.loads(longtail("audit", model, "notes.jsonl", "--card", "--json").out)
    found = read_card(model)["audit"]
    assert {name: found[name] for name in ("label_sets", "argmaxable", "unargmaxable")} == {
        name: facts[name] for name in ("label_sets", "argmaxable", "unargmaxable")
    }
    assert found["data"] == "notes.jsonl"
    refused = longtail("audit", "--weights", "w.npy", "--labels", "notes.jsonl", "--card")
    assert refused.code == 2
    assert "--weights has no card" in refused.err


def test_a_card_that_cannot_be_written_loses_no_model(longtail: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    for module in (store.card, store.write):
        monkeypatch.setattr(module, "put_card", refuse)
    result = longtail("train", "notes.jsonl", "--out", "model")
    assert result.code == 0
    assert "No space left on device; the model itself is saved\n" in result.err
    assert longtail("predict", "model", "--text", "red apples").code == 0
    assert longtail("evaluate", "model", "notes.jsonl", "--card").code == 1


@pytest.mark.parametrize("command", ["evaluate", "audit"])
def test_what_was_measured_is_not_written_on_a_model_that_came_meanwhile(
    longtail: Callable, model: str, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    read = inputs.read

    def retrain_and_read(data: str, *arguments: Any, **options: Any) -> Any:
        Ridge(7.0).fit([[1.0]], [[1]]).save(model, {"data": {"source": "another"}})
        return read(data, *arguments, **options)

    for module in (audit, measuring):
        monkeypatch.setattr(module, "read", retrain_and_read)
    result = longtail(command, model, "notes.jsonl", "--card")
    assert result.code == 1
    assert "another model has been saved there since" in result.err
    assert (
        "the model was trained on" not in result.err
    )  # the card of the other model says nothing of the one that was measured
    assert read_card(model) == {"data": {"source": "another"}}


def test_the_card_of_a_training_never_lands_on_the_model_of_another(
    longtail: Callable, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    save = Tagger.save

    def save_then_be_replaced(tagger: Tagger, directory: str, *card: Any) -> None:
        save(tagger, directory, *card)
        Ridge(7.0).fit([[1.0]], [[1]]).save(directory, {"data": {"source": "another"}})

    monkeypatch.setattr(Tagger, "save", save_then_be_replaced)
    assert longtail("train", "notes.jsonl", "--out", model, "--force").code == 0
    assert read_card(model) == {"data": {"source": "another"}}


def test_info_shows_the_card(longtail: Callable, model: str, check_golden: Callable) -> None:
    assert longtail("evaluate", model, "notes.jsonl", "--card").code == 0
    assert longtail("audit", model, "notes.jsonl", "--card").code == 0
    check_golden("info-card", longtail("info", model).out)
    assert json.loads(longtail("info", model, "--json").out)["card"] == read_card(model)


def test_info_without_a_sound_card(longtail: Callable, model: str) -> None:
    Path(model, "card.json").write_text("{", encoding="utf-8")
    result = longtail("info", model)
    assert result.code == 0
    assert result.err.startswith("note: card.json of model is ignored: ")
    assert "trained" not in result.out
    assert json.loads(longtail("info", model, "--json").out)["card"] is None


def test_a_card_cannot_steer_the_terminal(longtail: Callable, model: str) -> None:
    update_card(model, data={"source": "\x1b[31mred\nlabels: 9"})
    assert "data: \N{REPLACEMENT CHARACTER}[31mred\N{REPLACEMENT CHARACTER}labels: 9\n" in longtail("info", model).out


def test_measuring_on_what_a_model_learnt_from_is_noted(longtail: Callable, model: str) -> None:
    assert longtail("evaluate", model, "notes.jsonl").err == (
        "note: the model was trained on a file of this name, notes.jsonl; results on training rows are better than on "
        "new rows\n"
    )
    content = Path("notes.jsonl").read_bytes()
    assert longtail("evaluate", model, "-", stdin=content).err == ""
    Path("new.jsonl").write_bytes(content)
    assert longtail("evaluate", model, "new.jsonl").err == ""
    Path(model, "card.json").unlink()
    assert longtail("evaluate", model, "notes.jsonl").err == ""


def test_parts_of_a_data_set_are_told_apart() -> None:
    Path("bibtex").mkdir()
    of_a_part = {"data": {"source": source("Bibtex", "training")}}
    of_everything = {"data": {"source": "all of it", "covers": source("bibtex", EVERY)}}
    assert of_a_part["data"]["source"] == "bibtex, training part"
    assert learnt_from(of_a_part, "bibtex") == ""
    assert learnt_from(of_everything, "BIBTEX").startswith("the model was trained on every part of bibtex; ")
    assert learnt_from(of_everything, "delicious") == ""
    assert learnt_from({}, "bibtex") == learnt_from(None, "bibtex") == ""
