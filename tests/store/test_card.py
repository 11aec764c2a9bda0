"""The card of a model: shown only for this model; no card can prevent a model from loading."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import warnings
from hashlib import sha256

import pytest

from longtail.errors import InvalidInput, ModelFormatError, Unavailable
from longtail.store import files, inspect_model, read_card, read_model, update_card, write_model
from longtail.store.card import CARD_BYTES
from tests.store.stored_states import example_state, same

DATA = {"source": "notes.jsonl", "rows": 6, "labels": 3}
METRICS = {
    "data": "test.jsonl",
    "at": "2026-01-02T03:04:05+00:00",
    "rows": 6,
    "metrics": {"P@1": 0.5},
    "groups": [{"train_counts": [1, 3], "n_labels": 2, "metrics": {"P@1": 0.25}}],
}


@pytest.fixture
def model(tmp_path):
    write_model(example_state(1), tmp_path / "model")
    return tmp_path / "model"


def key_of(model):
    return sha256((model / "manifest.json").read_bytes()).hexdigest()


def put(model, **fields):
    (model / "card.json").write_text(json.dumps({"manifest": key_of(model), **fields}), encoding="utf-8")


def test_sections_come_back_and_others_stay(model):
    assert read_card(model) is None
    update_card(model, data=DATA)
    update_card(model, metrics=METRICS)
    assert read_card(model) == {"data": DATA, "metrics": METRICS}
    update_card(model, data={**DATA, "rows": 7})
    assert read_card(model) == {"data": {**DATA, "rows": 7}, "metrics": METRICS}
    assert same(read_model(model, verify=True), example_state(1))


def test_a_card_of_an_earlier_model_is_not_shown(model):
    update_card(model, data=DATA)
    card = (model / "card.json").read_bytes()
    write_model(example_state(2), model)
    (model / "card.json").write_bytes(card)
    assert read_card(model) is None
    update_card(model, metrics=METRICS)
    assert read_card(model) == {"metrics": METRICS}


def test_saving_over_a_model_removes_its_card_unless_it_is_the_same_model(model):
    update_card(model, data=DATA)
    write_model(example_state(1), model)
    assert read_card(model) == {"data": DATA}
    write_model(example_state(2), model)
    assert not (model / "card.json").exists()


def test_a_save_that_fails_leaves_the_card_of_the_model_that_stays(model, monkeypatch):
    update_card(model, data=DATA)

    def refuse(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "write", refuse)
        with pytest.raises(Unavailable):
            write_model(example_state(2), model)
    assert read_card(model) == {"data": DATA}


def test_someone_else_s_card_json_is_not_a_reason_to_write_into_a_folder(tmp_path):
    (tmp_path / "card.json").write_text("mine", encoding="utf-8")
    with pytest.raises(InvalidInput, match="not a model and not empty"):
        write_model(example_state(1), tmp_path)
    assert (tmp_path / "card.json").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("step", ["open", "write", "fsync", "replace"])
def test_a_card_that_the_disk_refuses_leaves_the_earlier_card_and_the_model(model, monkeypatch, step):
    update_card(model, data=DATA)
    before = sorted(os.listdir(model))
    real = getattr(os, step)

    def refuse(target, *arguments, **options):
        if step == "open" and not str(target).endswith(".tmp"):
            return real(target, *arguments, **options)
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(files.os, step, refuse)
        with pytest.raises(Unavailable, match="No space left"):
            update_card(model, metrics=METRICS)
    assert sorted(os.listdir(model)) == before
    assert read_card(model) == {"data": DATA}
    assert same(read_model(model, verify=True), example_state(1))


def test_there_is_no_card_without_a_model(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "manifest.json").write_text("{}", encoding="utf-8")
    for place in ("nowhere", "file", "other", "."):
        assert read_card(tmp_path / place) is None
        with pytest.raises(ModelFormatError, match="there is no model here"):
            update_card(tmp_path / place, data=DATA)


@pytest.mark.parametrize(
    "sections",
    [
        {"colour": {}},
        {"data": "notes.jsonl"},
        {"data": {"rows": "6"}},
        {"data": {"rows": True}},
        {"data": {"rows": float("nan")}},
        {"data": {"notes": object()}},
        {"data": {"source": "\ud800"}},
        {"metrics": {"metrics": {"P@1": "high"}}},
        {"metrics": {"groups": {}}},
        {"metrics": {"groups": [{"train_counts": "1-3"}]}},
        {"audit": {"examples": [{"labels": [1]}]}},
        {"data": {"source": "x" * CARD_BYTES}},
    ],
)
def test_what_a_card_cannot_hold_is_refused_and_changes_nothing(model, sections):
    update_card(model, data=DATA)
    with pytest.raises(InvalidInput):
        update_card(model, **sections)
    assert read_card(model) == {"data": DATA}


def nested(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"{}",
        b'{"manifest": 3}',
        b"[" * 100_000,
        b'{"manifest": "KEY", "data": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"manifest": "KEY", "data": ' + json.dumps(nested(20)).encode() + b"}",
        b'{"manifest": "KEY", "data": {"more": ' + json.dumps(nested(9)).encode() + b"}}",
        b'{"manifest": "KEY", "data": {"rows": ' + b"9" * 5000 + b"}}",
        b'{"manifest": "KEY", "data": {"rows": ' + b"9" * 30 + b"}}",
        b'{"manifest": "KEY", "data": {"rows": NaN}}',
        b'{"manifest": "KEY", "trained": {"seconds": 1e999}}',
        b'{"manifest": "KEY", "data": {"rows": [6]}}',
        b'{"manifest": "KEY", "data": {"source": {"toString": 1}}}',
        b'{"manifest": "KEY", "data": {"source": "\\ud800"}}',
        b'{"manifest": "KEY", "metrics": {"metrics": {"P@1": {}}}}',
        b'{"manifest": "KEY", "data": {}}' + b" " * CARD_BYTES,
    ],
)
def test_damaged_and_hostile_cards_are_none_with_a_warning(model, content):
    (model / "card.json").write_bytes(content.replace(b"KEY", key_of(model).encode()))
    with pytest.warns(UserWarning, match=r"card\.json of .* is ignored"):
        assert read_card(model) is None
    assert same(read_model(model, verify=True), example_state(1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        update_card(model, data=DATA)
    assert read_card(model) == {"data": DATA}


@pytest.mark.parametrize("trick", ["link", "pipe", "directory"])
def test_a_card_that_is_not_a_plain_file_is_not_opened(model, trick):
    outside = model.parent / "outside"
    outside.write_text(json.dumps({"manifest": key_of(model), "data": DATA}), encoding="utf-8")
    try:
        if trick == "link":
            (model / "card.json").symlink_to(outside)
        elif trick == "pipe":
            os.mkfifo(model / "card.json")
        else:
            (model / "card.json").mkdir()
    except (OSError, AttributeError) as error:
        pytest.skip(f"cannot be made here: {error}")
    with pytest.warns(UserWarning, match="not a plain file"):
        assert read_card(model) is None
    assert same(read_model(model), example_state(1))
    if trick == "link":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            update_card(model, data={**DATA, "rows": 9})
        assert json.loads(outside.read_text(encoding="utf-8"))["data"] == DATA
        assert read_card(model)["data"]["rows"] == 9


def test_sections_and_fields_of_a_later_version_do_no_harm(model):
    put(model, data={**DATA, "colour": ["red"]}, weather={"rain": True})
    assert read_card(model) == {"data": {**DATA, "colour": ["red"]}}


def test_names_are_kept_as_they_are(model):
    update_card(model, data={"source": "<script>alert(1)</script> Äpfel 🍎"})
    assert read_card(model)["data"]["source"] == "<script>alert(1)</script> Äpfel 🍎"


def update_often(model, section, content):
    for _ in range(30):
        update_card(model, **{section: content})


@pytest.mark.skipif(os.name == "nt", reason="directories cannot be locked here")
def test_updates_at_the_same_time_lose_no_section(model):
    spawn = multiprocessing.get_context("spawn")
    sections = {"data": DATA, "metrics": METRICS, "audit": {"label_sets": 4}}
    writers = [spawn.Process(target=update_often, args=(model, name, content)) for name, content in sections.items()]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    assert read_card(model) == sections
    assert not list(model.glob(".longtail-*"))


def test_a_save_brings_its_own_card(model):
    update_card(model, metrics=METRICS)
    write_model(example_state(1), model, {"data": DATA})
    assert read_card(model) == {"metrics": METRICS, "data": DATA}
    write_model(example_state(2), model, {"data": {"source": "two"}})
    assert read_card(model) == {"data": {"source": "two"}}
    write_model(example_state(3), model.with_name("new"), {"data": {"source": "three"}})
    assert read_card(model.with_name("new")) == {"data": {"source": "three"}}


def test_a_card_that_cannot_be_is_refused_before_the_model_is_written(tmp_path):
    with pytest.raises(InvalidInput, match="no section 'dat'"):
        write_model(example_state(1), tmp_path / "model", {"dat": {}})
    assert not list(tmp_path.iterdir())


def test_a_card_is_of_the_model_that_was_loaded(model):
    update_card(model, data=DATA)
    loaded = read_model(model).fingerprint
    assert loaded == key_of(model) == inspect_model(model)["fingerprint"]
    update_card(model, of=loaded, metrics=METRICS)
    assert read_card(model, loaded) == {"data": DATA, "metrics": METRICS}
    write_model(example_state(2), model, {"data": {"source": "two"}})
    with pytest.raises(Unavailable, match="another model has been saved there since"):
        update_card(model, of=loaded, metrics=METRICS)
    assert read_card(model, loaded) is None
    assert read_card(model) == {"data": {"source": "two"}}


def save_often(model, seed):
    for _ in range(30):
        write_model(example_state(seed), model, {"data": {"source": str(seed)}})


@pytest.mark.skipif(os.name == "nt", reason="directories cannot be locked here")
def test_savers_at_the_same_time_leave_the_card_of_the_model_that_stays(tmp_path):
    model = tmp_path / "model"
    spawn = multiprocessing.get_context("spawn")
    savers = [spawn.Process(target=save_often, args=(model, seed)) for seed in (1, 2)]
    for saver in savers:
        saver.start()
    for saver in savers:
        saver.join()
    assert [saver.exitcode for saver in savers] == [0, 0]
    assert same(read_model(model), example_state(int(read_card(model)["data"]["source"])))
    assert not list(tmp_path.glob("**/.longtail-*"))


def test_a_killed_save_with_a_card_is_tidied_away(tmp_path, monkeypatch):
    def die(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(files, "rename_directory", die)
    with pytest.raises(KeyboardInterrupt):
        write_model(example_state(1), tmp_path / "model", {"data": DATA})
    assert not list(tmp_path.iterdir())
