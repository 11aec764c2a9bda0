"""The fields of a protocol buffer, which ONNX files are made of: a number, a wire type and a value each."""

from __future__ import annotations

from collections.abc import Iterator

_MOST_BYTES = 10  # of a whole number: seven bits in each
# Of a message. Each becomes an object that is a hundred times as large as two bytes of a file.
_MOST_FIELDS = 1_000_000


class Damaged(Exception):
    """The bytes are no protocol buffer."""


def fields_of(content: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """The number and the value of each field: whole numbers, or bytes that are not copied.

    Examples
    --------
    >>> [(number, bytes(value) if isinstance(value, memoryview) else value)
    ...  for number, value in fields_of(memoryview(bytes([8, 150, 1, 18, 2, 104, 105])))]
    [(1, 150), (2, b'hi')]
    """
    place = n_fields = 0
    while place < len(content):
        n_fields += 1
        if n_fields > _MOST_FIELDS:
            raise Damaged
        key, place = _whole_number(content, place)
        wire = key & 7
        value: int | memoryview
        if wire == 0:
            value, place = _whole_number(content, place)
        elif wire in (1, 2, 5):
            length = {1: 8, 5: 4}.get(wire, 0)
            if wire == 2:
                length, place = _whole_number(content, place)
            if length > len(content) - place:
                raise Damaged
            value, place = content[place : place + length], place + length
        else:
            raise Damaged
        yield key >> 3, value


def whole_numbers_of(value: int | memoryview, most: int) -> list[int]:
    """The whole numbers of a field that holds one, or up to `most` side by side."""
    if isinstance(value, int):
        return [value]
    if len(value) > most * _MOST_BYTES:
        raise Damaged
    found = []
    place = 0
    while place < len(value):
        number, place = _whole_number(value, place)
        found.append(number)
    return found


def _whole_number(content: memoryview, place: int) -> tuple[int, int]:
    number = 0
    for step in range(_MOST_BYTES):
        if place + step >= len(content):
            raise Damaged
        byte = content[place + step]
        number |= (byte & 0x7F) << 7 * step
        if byte < 0x80:
            return number, place + step + 1
    raise Damaged
