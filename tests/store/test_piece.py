"""Pieces of work: read as written, or found to be damaged."""

from __future__ import annotations

import errno
import json
import os
import sys
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from longtail.errors import ModelFormatError, Unavailable
from longtail.store import (
    file_behind,
    is_sound,
    join_pieces,
    read_piece,
    release_pages,
    scratch_behind,
    write_piece,
)
from longtail.store import piece as piece_module
from longtail.store.layout import DTYPES
from longtail.store.spool import Spool

ARRAYS = {
    "rows": np.arange(6).reshape(2, 3),
    "none": np.zeros((0, 4), np.float32),
    "names": np.array([1, 255], np.uint8),
}


@pytest.fixture
def piece(tmp_path: Path) -> Path:
    write_piece(tmp_path / "piece", ARRAYS)
    return tmp_path / "piece"


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_of_every_type_are_read_as_written(tmp_path: Path, dtype: str) -> None:
    values = np.array([[0, 1], [1, 1]]).astype(dtype)
    write_piece(tmp_path / "piece", {"values": values, "large": np.zeros(10**5, dtype)})
    found = read_piece(tmp_path / "piece", verify=True)
    np.testing.assert_array_equal(found["values"], values)
    assert found["values"].dtype == values.dtype
    assert len(found["large"]) == 10**5


def test_shapes_are_kept(piece: Path) -> None:
    found = read_piece(piece)
    assert {name: array.shape for name, array in found.items()} == {"rows": (2, 3), "none": (0, 4), "names": (2,)}


def test_any_changed_byte_is_found(piece: Path) -> None:
    content = piece.read_bytes()
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1 + place % 255
        piece.write_bytes(damaged)
        assert not is_sound(piece), place


def test_a_piece_that_is_too_short_or_too_long_is_found(piece: Path) -> None:
    content = piece.read_bytes()
    for length in range(len(content)):
        piece.write_bytes(content[:length])
        assert not is_sound(piece)
    piece.write_bytes(content + b"\0")
    assert not is_sound(piece)
    with pytest.raises(ModelFormatError):
        read_piece(piece)


@pytest.mark.parametrize(
    "description",
    [
        b"",
        b"[]",
        b"7",
        b'{"a": 1}',
        b'{"a": ["<f4", [-1]]}',
        b'{"a": ["<f4", [4611686018427387904, 4]]}',
        b'{"a": ["|O", [1]]}',
        b'{"../a": ["<f4", [1]]}',
        b'{"a": ["<f4", ["x"]]}',
        b"[" * 100_000,
    ],
)
def test_hostile_descriptions_are_refused(tmp_path: Path, description: bytes) -> None:
    rest = len(description).to_bytes(8, "little") + description
    (tmp_path / "piece").write_bytes(b"longtail piece 1" + sha256(rest).digest() + rest)
    with pytest.raises(ModelFormatError):
        read_piece(tmp_path / "piece", verify=True)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.recursive(
        st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_no_description_gives_another_error(tmp_path: Path, description: Any) -> None:
    encoded = json.dumps(description).encode()
    rest = len(encoded).to_bytes(8, "little") + encoded
    (tmp_path / "piece").write_bytes(b"longtail piece 1" + sha256(rest).digest() + rest)
    if description == {}:
        assert read_piece(tmp_path / "piece") == {}
        return
    with pytest.raises(ModelFormatError):
        read_piece(tmp_path / "piece")


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_a_full_disk_is_told_and_leaves_the_earlier_piece(
    piece: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(f"longtail.store.files.os.{call}", full)
    with pytest.raises(Unavailable, match="No space left on device"):
        write_piece(piece, {"other": np.ones(3)})
    monkeypatch.undo()
    assert is_sound(piece)
    assert "rows" in read_piece(piece)


def test_the_file_of_a_mapped_array_is_known(tmp_path: Path) -> None:
    with Spool(tmp_path / "values.npy", np.int64) as spool:
        spool.append(np.arange(1000))
    values = spool.finished().values
    assert file_behind(values) == file_behind(values.reshape(-1)) == tmp_path / "values.npy"
    assert file_behind(values[:-1]) is file_behind(values[1:]) is file_behind(values.copy()) is None
    os.replace(tmp_path / "values.npy", tmp_path / "moved.npy")
    assert file_behind(values) is None
    (tmp_path / "values.npy").write_bytes(b"another file")
    assert file_behind(values) is None


@given(st.lists(st.integers(0, 40), min_size=1, max_size=5), st.integers(1, 64))
def test_joined_pieces_are_their_arrays_one_after_another(sizes: list[int], read_at_once: int) -> None:
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        folder = Path(name)
        patch.setattr(piece_module, "_READ_AT_ONCE", read_at_once)
        parts = [np.arange(size, dtype=np.int32) for size in sizes]
        paths = [folder / f"part{number}" for number in range(len(parts))]
        for path, part in zip(paths, parts, strict=True):
            write_piece(path, {"others": np.ones(3), "values": part})
        joined = join_pieces(paths, "values", folder / "values.npy")
        assert np.load(joined.path).tolist() == joined.values.tolist() == np.concatenate(parts).tolist()
        assert joined.sha256() == joined.read_sha256()
        assert scratch_behind(joined.values) == (joined if sum(sizes) else None)


def test_pieces_that_cannot_be_joined_are_told(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    write_piece(one, {"values": np.arange(100)})
    write_piece(other, {"values": np.ones(3)})
    for paths, name, told in (
        ([one, other], "values", "different types"),
        ([one], "absent", "cannot be read"),
        ([tmp_path / "missing"], "values", "cannot be read"),
    ):
        with pytest.raises(ModelFormatError, match=told):
            join_pieces(paths, name, tmp_path / "joined.npy")
    one.write_bytes(one.read_bytes()[:-8])
    with pytest.raises(ModelFormatError, match="shorter than"):
        join_pieces([one], "values", tmp_path / "joined.npy")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "other"]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems count memory in other ways")
def test_mapped_pages_leave_the_memory_and_come_back(tmp_path: Path) -> None:
    with Spool(tmp_path / "values.npy", np.float64) as spool:
        spool.append(np.arange(10**6))
    values = spool.finished().values
    total = values.sum()
    before = psutil.Process().memory_info().rss
    release_pages()
    assert psutil.Process().memory_info().rss < before - 4 * 10**6
    assert values.sum() == total
