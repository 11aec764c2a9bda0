"""A piece: the arrays that one task has made, in one file with a checksum, written whole or not at all.

The file holds a mark, the SHA-256 of all that follows, the length of a description, the description (names, types and
shapes as JSON) and the values, each array at a multiple of 64 bytes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from longtail.arrays import Array
from longtail.errors import ModelFormatError
from longtail.parallel import check_stop
from longtail.store.files import open_plain, sync_directory, write_file, writing
from longtail.store.layout import DTYPES, NAME, file_length, header
from longtail.store.mapped import map_whole
from longtail.store.spool import Spooled

_MARK = b"longtail piece 1"
_START = len(_MARK) + 32
_MOST_DESCRIPTION = 2**20
_ALIGNED = 64
_READ_AT_ONCE = 2**22
_SMALLEST_MAPPED = 2**16  # smaller files are read, because every mapped file keeps a descriptor open


def write_piece(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write a piece, replacing an earlier one; after a failure there is the earlier one, or none.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "sums"
    >>> write_piece(path, {"sums": np.array([1, 2])})
    >>> read_piece(path)["sums"].tolist()
    [1, 2]
    """
    blocks = list(_blocks(arrays))
    digest = sha256()
    for block in blocks:
        digest.update(block)
    _write(path, (_MARK, digest.digest(), *blocks))


def _write(path: Path, blocks: Iterable[Any]) -> None:
    with writing(path):
        write_file(path.parent, path.name, blocks)
        sync_directory(path.parent)


def _blocks(arrays: Mapping[str, Array]) -> Iterator[Any]:
    values = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    told = {name: [array.dtype.newbyteorder("<").str, array.shape] for name, array in values.items()}
    description = json.dumps(told).encode()
    yield len(description).to_bytes(8, "little")
    yield description
    place = _START + 8 + len(description)
    for array in values.values():
        yield bytes(-place % _ALIGNED)
        yield array.reshape(-1).view(np.uint8).data
        place += -place % _ALIGNED + array.nbytes


def read_piece(path: Path, *, verify: bool = False) -> dict[str, Array]:
    """The arrays of a piece, mapped; `verify` compares the checksum. Raises `ModelFormatError`."""
    try:
        with open_plain(path) as file:
            length = os.fstat(file.fileno()).st_size
            content: Any = file.read() if length < _SMALLEST_MAPPED else map_whole(file, path, length)
    except OSError as error:
        raise ModelFormatError(f"{path} cannot be read: {error.strerror or error}") from None
    if content[: len(_MARK)] != _MARK:
        raise ModelFormatError(f"{path} is not a piece of work of this version")
    if verify and sha256(memoryview(content)[_START:]).digest() != content[len(_MARK) : _START]:
        raise ModelFormatError(f"{path} does not match its checksum: it was damaged")
    try:
        return _arrays(content)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ModelFormatError(f"{path} is damaged: {error}") from None


def _arrays(content: Any) -> dict[str, Array]:
    arrays = {}
    place = _first_values(content)
    for name, dtype, shape, place in _described(content):
        count = int(np.prod(shape, dtype=np.int64))
        values = np.frombuffer(content, DTYPES[dtype], count, place) if count else np.zeros(0, DTYPES[dtype])
        arrays[name] = values.reshape(shape)
        place += values.nbytes
    if place != len(content):
        raise ValueError("it has another length than its description says")
    return arrays


def _first_values(content: Any) -> int:
    """Where the description ends."""
    size = int.from_bytes(content[_START : _START + 8], "little")
    if size > _MOST_DESCRIPTION:
        raise ValueError("its description is too long")
    return _START + 8 + size


def _described(content: Any) -> Iterator[tuple[str, str, tuple[int, ...], int]]:
    """Name, type, shape and place of each array; the content may end with the description."""
    place = _first_values(content)
    description = json.loads(content[_START + 8 : place])
    if not isinstance(description, dict):
        raise ValueError("its description is no object")
    for name, (dtype, shape) in description.items():
        shape = tuple(int(each) for each in shape)
        if not NAME.fullmatch(name) or min(shape, default=0) < 0:
            raise ValueError(f"{name!r} has the shape {shape}")
        length = file_length(dtype, shape) - len(header(dtype, shape))  # refuses shapes that no memory holds
        place += -place % _ALIGNED
        yield name, dtype, shape, place
        place += length


def join_pieces(paths: Sequence[Path], name: str, target: Path) -> Spooled:
    """Write the arrays of one name, one after another, to a `.npy` file; only a few megabytes are in memory.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for number in range(2):
    ...     write_piece(folder / f"part{number}", {"sums": np.array([number, 7])})
    >>> join_pieces([folder / "part0", folder / "part1"], "sums", folder / "sums.npy").values.tolist()
    [0, 7, 1, 7]
    """
    found = [_find(path, name) for path in paths]
    dtypes, length = {dtype for dtype, _, _ in found}, sum(length for _, length, _ in found)
    if len(dtypes) != 1:
        raise ModelFormatError(f"the arrays {name!r} of {target} have different types")
    dtype, digest = dtypes.pop(), sha256()

    def blocks() -> Iterator[bytes]:
        yield header(dtype, (length,))
        for path, (_, count, place) in zip(paths, found, strict=True):
            yield from _read(path, place, count * DTYPES[dtype].itemsize)

    def hashed() -> Iterator[bytes]:
        for block in blocks():
            check_stop()
            digest.update(block)
            yield block

    _write(target, hashed())
    return Spooled(target, dtype, (length,), digest.hexdigest())


def _find(path: Path, name: str) -> tuple[str, int, int]:
    """Type, length and place of an array of one dimension in a piece."""
    try:
        with open_plain(path) as file:
            head = file.read(_START + 8)
            head += file.read(_first_values(head) - len(head))
        [(dtype, (length,), place)] = [
            (dtype, shape, place) for each, dtype, shape, place in _described(head) if each == name
        ]
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise ModelFormatError(f"{path} cannot be read: {error}") from None
    return dtype, length, place


def _read(path: Path, place: int, size: int) -> Iterator[bytes]:
    with open_plain(path) as file:
        file.seek(place)
        while size:
            block = file.read(min(size, _READ_AT_ONCE))
            if not block:
                raise ModelFormatError(f"{path} is shorter than its description says")
            yield block
            size -= len(block)


def is_sound(path: Path) -> bool:
    """Whether there is a piece that matches its checksum."""
    try:
        read_piece(path, verify=True)
    except ModelFormatError:
        return False
    return True
