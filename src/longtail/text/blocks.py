"""Texts as the kernels take them: in blocks for threads, as UTF-8."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from longtail.native import Text

# A few milliseconds of work, and little enough that several of them wait in memory unnoticed.
_BLOCK_BYTES = 1 << 19
_BYTES_OF_A_ROW = 64


def blocks_of(texts: Iterable[str]) -> Iterator[list[Text]]:
    """Neighbouring texts together, about half a megabyte at a time; those that are not ASCII are encoded.

    ASCII strings hold their UTF-8 already. The interpreter would keep the UTF-8 of any other beside it for as long as
    the string lives, so those are encoded here, for as long as the block lives.

    >>> list(blocks_of(["red", "größe"]))
    [['red', b'gr\\xc3\\xb6\\xc3\\x9fe']]
    """
    block: list[Text] = []
    size = 0
    for text in texts:
        block.append(text if text.isascii() else text.encode("utf-8", "surrogatepass"))
        size += len(text) + _BYTES_OF_A_ROW
        if size >= _BLOCK_BYTES:
            yield block
            block, size = [], 0
    if block:
        yield block
