"""Files that are written whole or not at all, and the cache folder."""

import gzip

import pytest

from longtail.errors import InvalidInput
from longtail.files import cache_directory, whole_file, writing

CONTENT = b"first\nsecond\n" * 100


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail():
        with writing(path) as stream:
            stream.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("a.txt", "old")]


def test_equal_content_makes_equal_bytes(tmp_path):
    for name in ("a.gz", "b.gz"):
        with writing(tmp_path / name) as stream:
            stream.write(CONTENT)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == CONTENT


def test_writing_into_a_missing_directory_says_so(tmp_path):
    with pytest.raises(InvalidInput, match="cannot write"), writing(tmp_path / "absent" / "a.txt"):
        pass


def test_missing_folders_are_created_on_request(tmp_path):
    path = tmp_path / "a" / "b" / "c.txt"
    with whole_file(path, parents=True) as file:
        file.write(CONTENT)
    assert path.read_bytes() == CONTENT


def test_the_cache_folder_can_be_chosen(monkeypatch, tmp_path):
    monkeypatch.setenv("LONGTAIL_CACHE", str(tmp_path))
    assert cache_directory() == tmp_path
    monkeypatch.delenv("LONGTAIL_CACHE")
    assert cache_directory().is_absolute()
