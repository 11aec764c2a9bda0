"""The size of the cache of files from object stores."""

from __future__ import annotations

import mmap
import os
import sys
import time
from hashlib import sha256
from pathlib import Path

import pytest

from longtail.errors import InvalidInput
from longtail.store import cache, files
from longtail.store.layout import StoredFile

DAY = 86_400


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LONGTAIL_CACHE", str(tmp_path))
    monkeypatch.setenv("LONGTAIL_CACHE_SIZE", "3K")
    return tmp_path / "arrays"


def put(letter: str, days: float | None = None) -> Path:
    """Put a file of 1 KiB into the cache, which was used last some days ago."""
    content = letter.encode() * 1024
    digest = sha256(content).hexdigest()
    stored = StoredFile(f"{letter}-{digest[:16]}.npy", digest, len(content), "|u1", (len(content),))
    path = cache.put(stored, lambda folder: files.write_file(folder, stored.name, [content]), verify=False)
    if days is not None:
        os.utime(path.parent, (time.time() - days * DAY,) * 2)
    return path


def letters(folder: Path) -> str:
    return "".join(sorted(path.name[0] for path in folder.glob("*/*")))


def test_the_least_recently_used_files_make_room_for_a_new_one(folder: Path) -> None:
    for letter, days in {"a": 3, "b": 4, "c": 2}.items():
        put(letter, days)
    put("d", 1)
    assert letters(folder) == "acd"
    put("a")
    put("e")
    assert letters(folder) == "ade"
    put("c")
    assert letters(folder) == "ace"


def test_files_that_were_just_used_or_are_being_written_stay(folder: Path) -> None:
    for letter in "abcd":
        put(letter)
    assert letters(folder) == "abcd"
    with files.locked(put("a", 1).parent):
        put("b", 1)
        put("e")
    assert letters(folder) == "acde"


def test_a_cache_without_a_size_keeps_all_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LONGTAIL_CACHE_SIZE")
    for letter in "abcde":
        put(letter, 1)
    assert letters(folder) == "abcde"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not remove a mapped file")
def test_a_mapped_file_that_is_removed_can_still_be_read(folder: Path) -> None:
    with open(put("a", 1), "rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    for letter in "bcd":
        put(letter)
    assert letters(folder) == "bcd"
    assert mapped[:] == b"a" * 1024


def test_files_of_others_stay(folder: Path) -> None:
    path = put("a", 1)
    (path.parent / "notes.txt").write_text("mine")
    os.utime(path.parent, (time.time() - DAY,) * 2)
    for letter in "bcd":
        put(letter)
    assert letters(folder) == "bcdn"


def test_a_folder_or_a_file_that_vanishes_leaves_the_others_to_make_room(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for letter, days in {"a": 4, "b": 3, "c": 2}.items():
        put(letter, days)
    listed = Path.iterdir
    (folder / ".DS_Store").write_text("a file among the folders")
    vanished = [folder / "vanished", put("c").parent / "vanished.npy"]
    monkeypatch.setattr(
        Path, "iterdir", lambda path: [*listed(path), *(each for each in vanished if each.parent == path)]
    )
    put("d", 1)
    assert letters(folder) == "bcd"


def test_a_size_that_is_none_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGTAIL_CACHE_SIZE", "much")
    with pytest.raises(InvalidInput, match="'much' is not a size"):
        put("a")
