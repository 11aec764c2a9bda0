"""Files as streams: blocks and lines of plain or gzipped files.

Gzip is recognised by its first bytes, not by the name. Memory holds at most a block and a line.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Any, TypeVar

from longtail.data.encodings import as_utf8, check_encoding, not_utf8
from longtail.errors import DataFormatError, InvalidInput
from longtail.files import PathName
from longtail.progress import task

Block = TypeVar("Block")

_BLOCK = 2**20
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WINDOW = 31
LINE_LIMIT = 2**24
# A gigabyte of blank lines takes a kilobyte of gzip, so their number, and their number per other line, is limited.
_BLANK_LIMIT = 1_000_000
_BLANK_SHARE = 10
_SHOWN = 40


def _raw_blocks(stream: IO[bytes]) -> Iterator[bytes]:
    """Blocks as they arrive, so that a pipe is read while it is written; the first contains all magic bytes."""
    read = getattr(stream, "read1", stream.read)
    start = b""
    while block := read(_BLOCK):
        if not isinstance(block, bytes):
            raise InvalidInput("the stream yields text; open it in binary mode, as in open(path, 'rb')")
        start += block
        if len(start) >= len(_GZIP_MAGIC):
            yield start
            start = b""
    if start:
        yield start


def _unzipped(blocks: Iterable[bytes], name: str) -> Iterator[tuple[bytes, int]]:
    """Plain or unzipped blocks, each with the number of bytes that were read for it."""
    member: Any = None
    plain = None
    for raw in blocks:
        if plain is None:
            plain = not raw.startswith(_GZIP_MAGIC)
        if plain:
            yield raw, len(raw)
            continue
        rest, consumed = raw, len(raw)
        while rest:
            if member is None:
                # Tapes and some tools pad gzip files with zeros after the last member.
                rest = rest.lstrip(b"\0")
                if not rest:
                    break
                member = zlib.decompressobj(_GZIP_WINDOW)
            try:
                block = member.decompress(rest, 2 * _BLOCK)
            except zlib.error as error:
                raise DataFormatError(name, None, f"the gzip stream is damaged ({error}); get the file again") from None
            rest = member.unused_data if member.eof else member.unconsumed_tail
            if member.eof:
                member = None
            if block:
                yield block, consumed
                consumed = 0
    if member is not None:
        raise DataFormatError(name, None, "the gzip stream ends early: the file is truncated; download it again")


@contextmanager
def _opened(source: PathName | IO[bytes]) -> Iterator[tuple[IO[bytes], str, int | None]]:
    """The stream, its name for messages, and its size if it is known."""
    if not isinstance(source, str | os.PathLike):
        yield source, source_name(source), None
        return
    try:
        stream = open(source, "rb")  # noqa: SIM115 - closed below, apart from errors of opening
    except OSError as error:
        raise DataFormatError(source, None, f"cannot be opened: {error.strerror or error}") from None
    with stream:
        yield stream, str(source), os.fstat(stream.fileno()).st_size


def read_blocks(source: PathName | IO[bytes]) -> Generator[bytes]:
    """The content of a plain or gzipped file or stream; a separate thread unzips a file one block ahead."""
    with _opened(source) as (stream, name, size), task(f"reading {Path(name).name}", total=size) as advance:
        blocks = _unzipped(_raw_blocks(stream), name)
        # A thread that waits for a stream could not be interrupted.
        for block, consumed in blocks if size is None else _one_ahead(blocks):
            advance(consumed)
            yield block


def _one_ahead(blocks: Iterator[Block]) -> Generator[Block]:
    pool = ThreadPoolExecutor(1)
    try:
        ahead = pool.submit(next, blocks, None)
        while (found := ahead.result()) is not None:
            ahead = pool.submit(next, blocks, None)
            yield found
    finally:
        # The garbage collector may run this while a thread starts; waiting for another thread would then never end.
        pool.shutdown(wait=False)


def read_lines(
    source: PathName | IO[bytes], limit: int = LINE_LIMIT, comment: bytes = b""
) -> Iterator[tuple[int, bytes]]:
    """Lines with their line ends, numbered from 1.

    A line of more than `limit` bytes is an error. So is a file of mostly blank lines or lines that start with
    `comment`: more than a million, and more than ten for each other line.
    """
    with closing(read_blocks(source)) as blocks:
        yield from _lines(blocks, source_name(source), limit, comment)


def _lines(blocks: Iterable[bytes], name: str, limit: int, comment: bytes) -> Iterator[tuple[int, bytes]]:
    number = 1
    blank = 0
    carry: list[bytes] = []
    carried = 0
    for block in blocks:
        for piece in block.splitlines(keepends=True) if b"\r" not in block else _split_at_line_feeds(block):
            carried += len(piece)
            if carried > limit:
                raise DataFormatError(name, number, f"the line is longer than {limit} bytes; see `line_limit`")
            carry.append(piece)
            if piece.endswith(b"\n"):
                line = b"".join(carry)
                content = line.lstrip()
                if not content or (comment and content.startswith(comment)):
                    blank += 1
                    if blank > _BLANK_LIMIT and blank > _BLANK_SHARE * (number - blank):
                        raise DataFormatError(
                            name, number, f"{blank:,} of the lines so far are empty; is this the right file?"
                        )
                yield number, line
                carry, carried = [], 0
                number += 1
    if carry:
        yield number, b"".join(carry)


def _split_at_line_feeds(block: bytes) -> Iterator[bytes]:
    start = 0
    while (newline := block.find(b"\n", start)) >= 0:
        yield block[start : newline + 1]
        start = newline + 1
    if start < len(block):
        yield block[start:]


def read_text_lines(
    source: PathName | IO[bytes], limit: int = LINE_LIMIT, comment: bytes = b"", encoding: str | None = None
) -> Iterator[tuple[int, str]]:
    """Like `read_lines`, decoded, without a byte-order mark at the start.

    Without `encoding`, the mark says whether the file is UTF-16 or UTF-32; a file without a mark is UTF-8.
    """
    check_encoding(encoding)
    name = source_name(source)
    with closing(read_blocks(source)) as blocks:
        for number, line in _lines(as_utf8(blocks, name, encoding), name, limit, comment):
            try:
                text = line.decode("utf-8")
            except UnicodeDecodeError as undecodable:
                raise not_utf8(name, number, line, undecodable) from None
            yield number, text.removeprefix("\ufeff") if number == 1 else text


def source_name(source: PathName | IO[bytes]) -> str:
    """The name of a file or stream for messages."""
    return str(source if isinstance(source, str | os.PathLike) else getattr(source, "name", "the stream"))


def suffix_of(path: PathName) -> str:
    """The extension of a file in lower case, without ``.gz``.

    >>> suffix_of("Notes.JSONL.gz")
    '.jsonl'
    """
    return Path(Path(path).name.lower().removesuffix(".gz")).suffix


def shown(content: bytes) -> str:
    """The start of a line or field, in quotes, for messages."""
    return repr(content[:_SHOWN].decode("ascii", "backslashreplace").rstrip("\r\n"))


def read_names(path: PathName) -> list[str]:
    """Read a file with one distinct name per line."""
    names: dict[str, int] = {}
    for number, line in read_text_lines(path):
        name = line.rstrip("\r\n")
        first = names.setdefault(name, number)
        if first != number:
            raise DataFormatError(path, number, f"the name {name!r} is already in line {first}; names must differ")
    return list(names)
