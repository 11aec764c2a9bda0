"""Encodings of text files: byte-order marks are recognised, other encodings are named, and all become UTF-8."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator

from longtail.errors import DataFormatError, InvalidInput

# What most files are that are not UTF-8: exports of office programs in Western Europe and America.
LIKELY = "cp1252"
# UTF-32 goes first, because its mark starts with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Files that are often taken for text files, and what to do with them.
_OTHERS = {
    b"PK\x03\x04": ("an Excel workbook or a zip archive", "name a workbook .xlsx, and unpack an archive"),
    b"\xd0\xcf\x11\xe0": ("a workbook in the old format of Excel", "save it as .xlsx or as CSV UTF-8"),
    b"PAR1": ("a Parquet file", "name it .parquet"),
    b"ARROW1": ("an Arrow file", "name it .arrow"),
    b"%PDF-": ("a PDF document", "put each text with its labels in a row of a spreadsheet, and save it as CSV UTF-8"),
    b"SQLite format 3\0": ("a database", "export it as CSV"),
    b"\x28\xb5\x2f\xfd": ("compressed with zstd", "unpack it, or compress it with gzip"),
    b"\xfd7zXZ\0": ("compressed with xz", "unpack it, or compress it with gzip"),
    b"BZh91AY&SY": ("compressed with bzip2", "unpack it, or compress it with gzip"),
}
_WORD = re.compile(rb"""[^\s,;|"'(){}\[\]]+""")
_SHOWN = 40


def check_encoding(encoding: str | None) -> None:
    """Check the parameter `encoding` of a reader."""
    if encoding is None:
        return
    try:
        # Also refuses codecs that are not encodings of text, such as zlib.
        b"a".decode(encoding, "replace")
    except (LookupError, TypeError, ValueError):
        raise InvalidInput(
            f"there is no encoding {encoding!r}; expected a name such as utf-8, utf-16, cp1252 or shift_jis",
            code="unknown_encoding",
            name=str(encoding),
        ) from None


def as_utf8(blocks: Iterable[bytes], name: str, encoding: str | None) -> Iterator[bytes]:
    """The blocks of a file in UTF-8; a byte-order mark tells their encoding, else it is `encoding`, or UTF-8."""
    blocks = _with_mark(blocks)
    first = next(blocks, b"")
    for start, (what, advice) in _OTHERS.items():
        if first.startswith(start):
            raise DataFormatError(name, None, f"this is no text file but {what}", code="other_format", advice=advice)
    chosen = next((named for mark, named in _MARKS if first.startswith(mark)), encoding or "utf-8")
    if codecs.lookup(chosen).name in ("utf-8", "utf-8-sig"):
        if b"\0" in first[:2]:
            order = "le" if first[1:2] == b"\0" else "be"
            raise DataFormatError(
                name,
                1,
                "the file starts like UTF-16 without a byte-order mark",
                code="not_utf8",
                name=f"utf-16-{order}",
                advice=f"give the encoding utf-16-{order}, or save the file as UTF-8",
            )
        yield first
        yield from blocks
        return
    decoder = codecs.getincrementaldecoder(chosen)()
    line = 1
    for block in _and_end(first, blocks):
        try:
            text = decoder.decode(block or b"", final=block is None)
            yield text.encode("utf-8")
        except UnicodeDecodeError as error:
            before = error.object[: error.start].decode(chosen, "replace")
            raise DataFormatError(
                name,
                line + before.count("\n"),
                f"{error.object[error.start : error.start + 1]!r} is not {chosen} ({error.reason}); give the encoding "
                f"of the file, or save it as UTF-8",
                code="not_in_encoding",
                name=chosen,
            ) from None
        except UnicodeError as error:
            raise DataFormatError(
                name, line, f"the file is not {chosen} ({error})", code="not_in_encoding", name=chosen
            ) from None
        line += text.count("\n")


def not_utf8(name: str, number: int, line: bytes, error: UnicodeDecodeError) -> DataFormatError:
    """The error about a line that is not UTF-8; it shows how the word would read in a likely encoding."""
    word = next((found[0] for found in _WORD.finditer(line) if found.start() <= error.start < found.end()), b"")
    try:
        likely = word.decode(LIKELY) if len(word) <= _SHOWN else ""
    except UnicodeDecodeError:
        likely = ""
    return DataFormatError(
        name,
        number,
        f"byte {error.start + 1} of the line is not UTF-8 ({error.reason})",
        code="not_utf8",
        name=LIKELY,
        found=(likely,) if likely else (),
        advice="save the file as UTF-8"
        + (f", or, if this word is {likely!r}, give the encoding {LIKELY}" if likely else ""),
    )


def _with_mark(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The same blocks, of which the first holds a whole mark; nothing else is waited for."""
    start, whole = b"", False
    for block in blocks:
        if whole:
            yield block
            continue
        start += block
        whole = not any(mark.startswith(start) and mark != start for mark, _ in _MARKS)
        if whole:
            yield start
    if not whole and start:
        yield start


def _and_end(first: bytes, blocks: Iterable[bytes]) -> Iterator[bytes | None]:
    yield first
    yield from blocks
    yield None
