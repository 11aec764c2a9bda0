"""Texts as the kernels take them: checked one by one as they are read, in blocks for threads, as UTF-8."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from longtail.errors import InvalidInput
from longtail.native.text import Text

# A few milliseconds of work, and little enough that several of them wait in memory unnoticed.
_BLOCK_BYTES = 1 << 19
_BYTES_OF_A_ROW = 64


def checked_texts(texts: Any) -> Iterator[str]:
    """The texts one by one, or `InvalidInput` with the row of what is none."""
    if isinstance(texts, str | bytes):
        raise InvalidInput("texts is one single text; expected a list of texts: [text]")
    if getattr(texts, "ndim", 1) != 1:
        raise InvalidInput(f"texts has {texts.ndim} dimensions; expected one text per row: pass a single column")
    try:
        items = iter(texts)
    except TypeError:
        raise InvalidInput(f"texts is {texts!r}; expected a list or another iterable of str") from None
    return _checked_rows(items)


def _checked_rows(items: Iterator[Any]) -> Iterator[str]:
    for row, text in enumerate(items):
        if not isinstance(text, str):
            hint = "decode it first" if isinstance(text, bytes) else "leave the row out or give ''"
            raise InvalidInput(
                f"row {row} of texts is {text!r:.40} of type {type(text).__name__}; expected str: {hint}"
            )
        yield text


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
