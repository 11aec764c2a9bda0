"""The cache of vectors: what was written comes back, and what was damaged never does."""

from __future__ import annotations

import logging
import os
import zlib
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.errors import InvalidInput
from longtail.neural.vector_cache import VectorCache

WIDTH = 3
ROW = 36 + 4 * WIDTH


def vector_of(text: str) -> np.ndarray:
    return np.random.default_rng(zlib.crc32(text.encode())).random(WIDTH, np.float32)


def fill(cache: VectorCache, texts: list[str]) -> None:
    cache.append([cache.key(text) for text in texts], np.array([vector_of(text) for text in texts]))


def lookup(cache: VectorCache, texts: list[str]) -> np.ndarray:
    """Which texts are found; vectors that are found are right, and others are zero."""
    found, vectors = cache.lookup([cache.key(text) for text in texts])
    for text, there, vector in zip(texts, found, vectors, strict=True):
        assert (vector == (vector_of(text) if there else 0)).all()
    return found


def opened(folder: Path, **options: int) -> VectorCache:
    return VectorCache(folder, ("weights", 128, "float32"), WIDTH, **options)


def files(folder: Path) -> list[Path]:
    return [next(folder.glob(f"*/{name}")) for name in ("hashes.bin", "vectors.bin")]


TEXTS = [f"text {number}" for number in range(10)]


def test_an_empty_cache_finds_nothing(tmp_path):
    assert not lookup(opened(tmp_path), TEXTS).any()
    assert lookup(opened(tmp_path), []).shape == (0,)


@pytest.mark.parametrize("recent", [2, 1000])
def test_rows_of_several_calls_and_objects_are_found(tmp_path, monkeypatch, recent):
    monkeypatch.setattr("longtail.neural.vector_cache._RECENT_ROWS", recent)
    first, second = opened(tmp_path), opened(tmp_path)
    for start in range(0, 10, 2):
        fill(first if start % 4 else second, TEXTS[start : start + 2])
        for cache in (first, second, opened(tmp_path)):
            assert lookup(cache, TEXTS[::-1]).sum() == start + 2


def test_another_identity_finds_nothing(tmp_path):
    fill(opened(tmp_path), TEXTS)
    other = VectorCache(tmp_path, ("weights", 64, "float32"), WIDTH)
    assert not lookup(other, TEXTS).any()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1), st.integers(0, 400), st.integers(0, 3))
def test_a_file_that_is_cut_anywhere_gives_no_wrong_vector_and_grows_again(tmp_path_factory, which, size, cut):
    folder = tmp_path_factory.mktemp("cut")
    fill(opened(folder), TEXTS)
    reader = opened(folder)
    assert lookup(reader, TEXTS).all()
    os.truncate(files(folder)[which], min(size + cut, files(folder)[which].stat().st_size))
    kept = lookup(reader, TEXTS)
    assert kept.tolist() == sorted(kept.tolist(), reverse=True)
    fill(reader, [text for text, there in zip(TEXTS, kept, strict=True) if not there])
    assert lookup(reader, TEXTS).all()
    assert lookup(opened(folder), TEXTS).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1), st.integers(0, 10_000), st.integers(1, 255))
def test_a_damaged_byte_costs_one_row_which_is_then_replaced(tmp_path_factory, which, place, change):
    folder = tmp_path_factory.mktemp("damaged")
    fill(opened(folder), TEXTS)
    path = files(folder)[which]
    content = bytearray(path.read_bytes())
    content[place % len(content)] ^= change
    path.write_bytes(content)
    reader = opened(folder)
    kept = lookup(reader, TEXTS)
    assert kept.sum() == 9
    fill(reader, [TEXTS[int(np.argmin(kept))]])
    assert lookup(reader, TEXTS).all()
    assert lookup(opened(folder), TEXTS).all()


def test_a_vector_that_is_not_finite_is_not_returned(tmp_path):
    cache = opened(tmp_path)
    cache.append([cache.key("a")], np.array([[1, np.nan, 0]], np.float32))
    assert not lookup(cache, ["a"]).any()


def write_many(folder: Path, start: int) -> None:
    cache = opened(folder)
    for number in range(start, start + 150):
        fill(cache, [f"text {number}", f"text {number} again"])


def test_several_may_write_at_the_same_time(tmp_path):
    # The lock belongs to an opened file, so it separates the threads of a test just as it separates processes.
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(partial(write_many, tmp_path), (0, 100)))
    texts = [f"text {number}{more}" for number in range(250) for more in ("", " again")]
    assert lookup(opened(tmp_path), texts).all()
    assert [path.stat().st_size for path in files(tmp_path)] == [600 * 36, 600 * 4 * WIDTH]


def test_a_full_cache_stops_growing_and_says_so_once(tmp_path, caplog):
    cache = opened(tmp_path, max_bytes=4 * ROW + 5)
    with caplog.at_level(logging.WARNING):
        for text in TEXTS:
            fill(cache, [text])
    assert lookup(cache, TEXTS).tolist() == [True] * 4 + [False] * 6
    assert [record.getMessage() for record in caplog.records] == [
        f"the cache of vectors in {tmp_path} has reached its limit of {4 * ROW + 5} B; further vectors are not kept"
    ]


def test_vectors_of_all_encoders_count_towards_the_limit(tmp_path):
    fill(opened(tmp_path), TEXTS)
    other = VectorCache(tmp_path, ("other", 128, "float32"), WIDTH, max_bytes=11 * ROW)
    fill(other, TEXTS)
    assert lookup(other, TEXTS).sum() == 1


def test_a_file_where_the_folder_should_be_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match=r"cannot use .*file as a cache"):
        opened(tmp_path / "file")


def test_a_cache_that_cannot_be_written_only_warns(tmp_path, caplog):
    cache = opened(tmp_path)
    (next(tmp_path.iterdir()) / "vectors.bin").mkdir()
    with caplog.at_level(logging.WARNING):
        fill(cache, TEXTS)
        fill(cache, TEXTS)
    assert not lookup(cache, TEXTS).any()
    assert len(caplog.records) == 1
    assert "cannot be written" in caplog.text


@pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="the system cannot refuse links")
def test_links_are_not_followed(tmp_path):
    cache = opened(tmp_path / "cache")
    (tmp_path / "target").write_text("precious")
    (next((tmp_path / "cache").iterdir()) / "hashes.bin").symlink_to(tmp_path / "target")
    fill(cache, TEXTS)
    assert not lookup(cache, TEXTS).any()
    assert (tmp_path / "target").read_text() == "precious"


def test_the_texts_are_not_stored(tmp_path):
    fill(opened(tmp_path), ["a secret"])
    assert not any(b"secret" in path.read_bytes() for path in files(tmp_path))
