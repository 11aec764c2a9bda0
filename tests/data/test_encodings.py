"""Encodings: byte-order marks, named encodings, and errors that show how a word would read."""

from __future__ import annotations

import gzip
import io

import pytest

from longtail.data import read_corpus, read_delimited, read_jsonl, read_text_lines
from longtail.errors import DataFormatError, InvalidInput
from tests.data.corpora import rows_of

CONTENT = "text,labels\r\ncafé crème,déjà; vu\r\n日本,x\r\n"
EXPECTED = [("café crème", ["déjà", "vu"]), ("日本", ["x"])]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzipped"])
def test_a_byte_order_mark_tells_the_encoding(tmp_path, encoding, pack):
    (tmp_path / "a.csv").write_bytes(pack(CONTENT.encode(encoding)))
    assert rows_of(read_corpus(tmp_path / "a.csv")) == EXPECTED


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "UTF8", "gb18030"])
def test_an_encoding_can_be_named(tmp_path, encoding):
    (tmp_path / "a.csv").write_bytes(CONTENT.encode(encoding))
    assert rows_of(read_corpus(tmp_path / "a.csv", encoding=encoding)) == EXPECTED
    line = '{"text": "café", "labels": []}\n'.encode(encoding)
    assert read_jsonl(io.BytesIO(line), encoding=encoding).texts == ["café"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_counts_more_than_a_named_encoding(tmp_path, encoding):
    (tmp_path / "a.csv").write_bytes(CONTENT.encode(encoding))
    assert rows_of(read_corpus(tmp_path / "a.csv", encoding="cp1252")) == EXPECTED


def test_characters_across_blocks_are_whole():
    text = "é" * 3_000_001
    assert [line for _, line in read_text_lines(io.BytesIO(text.encode("utf-16")), limit=2**24)] == [text]


def test_a_line_that_is_not_utf8_shows_how_its_word_would_read(tmp_path):
    (tmp_path / "a.csv").write_bytes("text,labels\na café (small),x\n".encode("cp1252"))
    with pytest.raises(DataFormatError, match=r"a\.csv:2: byte 6 of the line is not UTF-8 .*word is 'café'") as caught:
        read_corpus(tmp_path / "a.csv")
    assert (caught.value.code, caught.value.name, caught.value.found) == ("not_utf8", "cp1252", ("café",))
    assert read_corpus(tmp_path / "a.csv", encoding="cp1252").texts == ["a café (small)"]


def test_a_word_that_no_likely_encoding_has_is_not_shown():
    with pytest.raises(DataFormatError, match=r"save the file as UTF-8$") as caught:
        list(read_text_lines(io.BytesIO(b"a\n\x81\n")))
    assert caught.value.found == ()


def test_bytes_outside_a_named_encoding_are_errors_with_their_line():
    with pytest.raises(DataFormatError, match=r"the stream:2: b'\\x81' is not cp1252") as caught:
        list(read_text_lines(io.BytesIO(b"a\nb \x81\n"), encoding="cp1252"))
    assert caught.value.code == "not_in_encoding"
    with pytest.raises(DataFormatError, match="is not utf-16-le"):
        list(read_text_lines(io.BytesIO(b"\xff\xfea\0\n\0\x00\xd8x")))


def test_utf_16_without_a_mark_is_told():
    for order in ("le", "be"):
        with pytest.raises(DataFormatError, match=f"starts like UTF-16 without .* give the encoding utf-16-{order}"):
            list(read_text_lines(io.BytesIO("text\n".encode(f"utf-16-{order}"))))


@pytest.mark.parametrize("encoding", ["cp125", "zlib", "rot13", "undefined", "a\0b", ""])
def test_what_is_no_encoding_of_texts_is_refused(encoding):
    with pytest.raises(InvalidInput, match="there is no encoding") as caught:
        read_delimited("a.csv", encoding=encoding)
    assert caught.value.code == "unknown_encoding"


@pytest.mark.parametrize(
    ("start", "advice"),
    [
        (b"PK\x03\x04\x14\0", "name a workbook .xlsx"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "save it as .xlsx"),
        (b"PAR1\x15\x04", "name it .parquet"),
        (b"%PDF-1.7\n", "spreadsheet"),
        (b"\x28\xb5\x2f\xfd\x04", "compress it with gzip"),
    ],
)
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_files_that_are_no_text_are_told_by_their_first_bytes(tmp_path, start, advice, name):
    (tmp_path / name).write_bytes(start + bytes(100))
    for encoding in (None, "cp1252"):
        with pytest.raises(DataFormatError, match=rf"{name}: this is no text file but .*; .*{advice}") as caught:
            read_corpus(tmp_path / name, encoding=encoding)
        assert caught.value.code == "other_format"
