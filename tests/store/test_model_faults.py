"""A save that is killed or fails at any step leaves the old model or the new one."""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from longtail.errors import ModelFormatError, Unavailable
from longtail.store import files, inspect_model, read_model, write_model
from tests.store.stored_states import example_state, same

STEPS = ("open", "write", "fsync", "replace", "rename", "mkdir", "unlink", "rmdir")


class Killed(BaseException):
    """The process ends here: no handler may change the disk."""


class FaultyDisk:
    """Stands in for `os` inside the store and fails at one step."""

    def __init__(self, fail_at, mode):
        self.fail_at, self.mode, self.count, self.dead = fail_at, mode, 0, False

    def __getattr__(self, name):
        real = getattr(os, name)
        if name not in STEPS:
            return real

        def step(*arguments, **options):
            if self.dead:
                raise Killed
            self.count += 1
            if self.count != self.fail_at:
                return real(*arguments, **options)
            if self.mode == "refused":
                raise OSError(errno.ENOSPC, "No space left on device")
            self.dead = True
            if self.mode == "killed after":
                real(*arguments, **options)
            if self.mode == "killed half-way" and name == "write":
                descriptor, block = arguments
                real(descriptor, block[: len(block) // 2])
            raise Killed

        return step


def prepare(folder, scenario):
    """The directory to save to, and the model in it or None."""
    model = folder / "model"
    if scenario == "new":
        return model, None
    if scenario == "empty":
        model.mkdir()
        return model, None
    write_model(example_state(1), model)
    return model, example_state(1)


def read_or_none(model):
    if not (model / "manifest.json").exists():
        with pytest.raises(ModelFormatError, match="there is no model here"):
            read_model(model)
        return None
    return read_model(model)


def names_in_manifest(model):
    found = {"manifest.json"}

    def collect(value):
        if isinstance(value, dict):
            if "sha256" in value and "length" in value:
                found.add(value["name"])
            for inner in value.values():
                collect(inner)

    collect(json.loads((model / "manifest.json").read_text(encoding="utf-8")))
    return found


def save_with_fault(monkeypatch, model, fail_at, mode):
    """Save with a fault; return the number of steps and the outcome."""
    disk = FaultyDisk(fail_at, mode)
    with monkeypatch.context() as patch:
        patch.setattr(files, "os", disk)
        try:
            write_model(example_state(2), model)
        except (Killed, Unavailable) as error:
            return disk.count, error
    return disk.count, None


@pytest.mark.parametrize("mode", ["killed before", "killed half-way", "killed after", "refused"])
@pytest.mark.parametrize("scenario", ["new", "empty", "over"])
def test_a_fault_at_any_step_leaves_the_old_model_or_the_new_one(tmp_path, monkeypatch, scenario, mode):
    (tmp_path / "dry").mkdir()
    steps, _ = save_with_fault(monkeypatch, prepare(tmp_path / "dry", scenario)[0], -1, mode)
    assert steps > 30
    outcomes = set()
    for fail_at in range(1, steps + 1):
        folder = tmp_path / str(fail_at)
        folder.mkdir()
        model, old = prepare(folder, scenario)
        _, error = save_with_fault(monkeypatch, model, fail_at, mode)
        found = read_or_none(model)
        is_new = same(found, example_state(2)) if found is not None else False
        assert is_new or (found is None and old is None) or (old is not None and same(found, old)), fail_at
        outcomes.add("new" if is_new else "old")
        if error is None:
            assert is_new
        if isinstance(error, Unavailable):
            # Nothing half-written is left behind by a save that could still clean up.
            left = {path.name for path in model.iterdir()} if model.is_dir() else set()
            assert left == (names_in_manifest(model) if found is not None else set()), fail_at
            assert [path.name for path in folder.iterdir() if path != model] == [], fail_at
        write_model(example_state(3), model)
        assert same(read_model(model), example_state(3))
        assert {path.name for path in model.iterdir()} == names_in_manifest(model)
        assert [path.name for path in folder.iterdir()] == ["model"]
    assert outcomes == {"old", "new"}


def test_a_file_that_cannot_be_deleted_waits_for_the_next_save(tmp_path, monkeypatch):
    write_model(example_state(1), tmp_path / "model")

    class Windows(FaultyDisk):
        def __getattr__(self, name):
            if name == "unlink":
                raise PermissionError("in use")
            return getattr(os, name)

    with monkeypatch.context() as patch:
        patch.setattr(files, "os", Windows(0, ""))
        write_model(example_state(2), tmp_path / "model")
    assert same(read_model(tmp_path / "model"), example_state(2))
    assert {path.name for path in (tmp_path / "model").iterdir()} > names_in_manifest(tmp_path / "model")
    write_model(example_state(3), tmp_path / "model")
    assert {path.name for path in (tmp_path / "model").iterdir()} == names_in_manifest(tmp_path / "model")


def test_a_reader_follows_a_save_that_removes_files_under_it(tmp_path, monkeypatch):
    from longtail.store import read

    write_model(example_state(1), tmp_path / "model")
    real, saved = read.open_plain, []

    def open_late(path):
        if path.suffix == ".npy" and not saved:
            saved.append(True)
            write_model(example_state(2), tmp_path / "model")
        return real(path)

    monkeypatch.setattr(read, "open_plain", open_late)
    assert same(read_model(tmp_path / "model"), example_state(2))


def test_an_unfinished_save_of_a_living_process_is_not_tidied_away(tmp_path):
    if sys.platform == "win32":
        pytest.skip("directories cannot be locked here")
    with files.sibling_of(tmp_path / "model") as sibling:
        write_model(example_state(1), tmp_path / "model")
        assert sibling.is_dir()
    assert not sibling.exists()


SAVER = """
import sys
sys.path.insert(0, sys.argv[2])
from tests.store.stored_states import example_state
from longtail.store import write_model
states = [example_state(shift, large=True) for shift in (1, 2)]
write_model(states[0], sys.argv[1])
print("saving", flush=True)
while True:
    for state in states:
        write_model(state, sys.argv[1])
"""


@pytest.mark.slow
def test_killed_processes_leave_whole_models(tmp_path):
    moments = random.Random(0)
    states = [example_state(shift, large=True) for shift in (1, 2)]
    model = tmp_path / "model"
    for _ in range(4):
        saver = subprocess.Popen(
            [sys.executable, "-c", SAVER, str(model), str(Path(__file__).parents[2])], stdout=subprocess.PIPE, text=True
        )
        try:
            assert saver.stdout is not None
            assert saver.stdout.readline() == "saving\n"
            until = time.monotonic() + moments.uniform(0.05, 0.4)
            while time.monotonic() < until:
                found = read_model(model)
                assert any(same(found, state) for state in states)
        finally:
            saver.send_signal(signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
            saver.wait()
        found = read_model(model)
        assert any(same(found, state) for state in states)
        assert inspect_model(model)["kind"] == "Tagger"
    write_model(states[0], model)
    assert {path.name for path in model.iterdir()} == names_in_manifest(model)
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
