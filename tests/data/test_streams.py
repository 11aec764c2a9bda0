"""Blocks and lines of plain and gzipped files, and files that appear only when complete."""

from __future__ import annotations

import gzip
import io
import os
import threading

import pytest

from longtail.cli.inputs import is_blank
from longtail.data import read_arff, read_delimited, read_grouped_jsonl, read_jsonl
from longtail.data.streams import _one_ahead, read_blocks, read_lines, read_names, read_text_lines
from longtail.errors import DataFormatError, InvalidInput
from longtail.labels import read_taxonomy
from longtail.progress import listening

CONTENT = b"".join(b"line %d\n" % number for number in range(400_000))


def test_gzip_is_told_by_its_bytes_not_by_its_name(tmp_path):
    (tmp_path / "zipped.txt").write_bytes(gzip.compress(CONTENT, 1))
    (tmp_path / "plain.gz").write_bytes(CONTENT)
    assert b"".join(read_blocks(tmp_path / "zipped.txt")) == CONTENT
    assert b"".join(read_blocks(tmp_path / "plain.gz")) == CONTENT


def test_several_members_and_zero_padding_make_one_stream(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"one\n") + gzip.compress(b"") + gzip.compress(b"two\n") + b"\0" * 512)
    assert b"".join(read_blocks(path)) == b"one\ntwo\n"


def test_no_block_of_a_gzip_bomb_is_large(tmp_path):
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(bytes(50_000_000)))
    assert max(map(len, read_blocks(path))) <= 2**21


@pytest.mark.parametrize("cut", [3, 15, 1000, -1])
def test_a_gzip_file_cut_short_is_an_error(tmp_path, cut):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(CONTENT)[:cut])
    with pytest.raises(DataFormatError, match=r"a\.gz: the gzip stream ends early"):
        list(read_blocks(path))


def test_a_damaged_gzip_file_is_an_error(tmp_path):
    path = tmp_path / "a.gz"
    damaged = bytearray(gzip.compress(CONTENT))
    damaged[-6] ^= 0xFF
    path.write_bytes(damaged)
    with pytest.raises(DataFormatError, match="the gzip stream is damaged"):
        list(read_blocks(path))


def test_progress_adds_up_to_the_size_of_the_file(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(CONTENT))
    told = []

    class Listener:
        def __init__(self, description, total):
            told.append((description, total))

        def __enter__(self):
            return told.append

        def __exit__(self, *_):
            pass

    with listening(Listener):
        list(read_blocks(path))
    assert told[0] == ("reading a.gz", path.stat().st_size)
    assert sum(told[1:]) == path.stat().st_size


def test_lines_keep_their_ends_and_numbers():
    lines = list(read_lines(io.BytesIO(b"a\r\nb\rc\n\nd")))
    assert lines == [(1, b"a\r\n"), (2, b"b\rc\n"), (3, b"\n"), (4, b"d")]


def test_lines_across_blocks_are_whole(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(CONTENT)
    assert [line for _, line in read_lines(path)] == CONTENT.splitlines(keepends=True)


def test_a_line_may_not_outgrow_its_limit():
    assert list(read_lines(io.BytesIO(b"a\nbbb\n"), limit=4)) == [(1, b"a\n"), (2, b"bbb\n")]
    with pytest.raises(DataFormatError, match=r"the stream:2: the line is longer than 3 bytes"):
        list(read_lines(io.BytesIO(b"a\nbbb\n"), limit=3))


def test_text_drops_a_byte_order_mark_and_refuses_other_bytes():
    assert list(read_text_lines(io.BytesIO(b"\xef\xbb\xbfa\n\xef\xbb\xbfb"))) == [(1, "a\n"), (2, "\ufeffb")]
    with pytest.raises(DataFormatError, match=r"the stream:2: byte 3 of the line is not UTF-8"):
        list(read_text_lines(io.BytesIO(b"a\nb \xff\n")))


def test_a_text_stream_is_refused():
    with pytest.raises(InvalidInput, match="binary mode"):
        list(read_blocks(io.StringIO("text")))


def test_a_pipe_is_read_while_it_is_written():
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as source, os.fdopen(writer, "wb", buffering=0) as sink:
        lines = read_lines(source)
        sink.write(b"one\n")
        assert next(lines) == (1, b"one\n")
        sink.write(b"two\n")
        assert next(lines) == (2, b"two\n")


def test_gzip_is_told_even_if_its_bytes_come_singly():
    class Slow(io.BytesIO):
        def read1(self, size=-1):
            return self.read(1)

    assert b"".join(read_blocks(Slow(gzip.compress(b"text")))) == b"text"
    assert b"".join(read_blocks(Slow(b"\x1f"))) == b"\x1f"


def test_a_missing_file_is_an_error_with_its_name(tmp_path):
    with pytest.raises(DataFormatError, match=r"absent\.txt: cannot be opened"):
        list(read_blocks(tmp_path / "absent.txt"))


def test_names_must_differ(tmp_path):
    path = tmp_path / "labels.txt"
    path.write_bytes(b"a\r\nb c\r\na\r\n")
    with pytest.raises(DataFormatError, match=r"labels\.txt:3: the name 'a' is already in line 1"):
        read_names(path)


def zipped(path, *parts):
    with gzip.open(path, "wb", compresslevel=1) as file:
        for part in parts:
            file.write(part)
    return path


@pytest.mark.parametrize(
    ("name", "line", "read"),
    [
        ("a.jsonl.gz", b"\n", read_jsonl),
        ("a.jsonl.gz", b"\r\n", read_jsonl),
        ("a.jsonl.gz", b" \t\n", read_grouped_jsonl),
        ("a.jsonl.gz", b"\n", is_blank),
        ("a.csv.gz", b"\n", read_delimited),
        ("a.tsv.gz", b"\n", lambda path: read_taxonomy(path, ["a"])),
        ("a.arff.gz", b"\n", lambda path: read_arff(path, path.with_name("labels.xml"))),
        ("a.arff.gz", b" %\n", lambda path: read_arff(path, path.with_name("labels.xml"))),
    ],
)
def test_a_file_of_blank_lines_is_told_before_it_takes_minutes(tmp_path, name, line, read):
    (tmp_path / "labels.xml").write_text('<labels><label name="red"/></labels>', encoding="utf-8")
    path = zipped(tmp_path / name, line * 1_100_000)
    with pytest.raises(DataFormatError, match=f"{name}:1000001: 1,000,001 of the lines so far are empty"):
        read(path)


def test_blank_lines_between_others_are_passed_over(tmp_path):
    record = b'{"text": "a", "labels": ["x"]}'
    few = zipped(tmp_path / "few.jsonl.gz", (record + b"\n\n\n") * 100, b"\n" * 50_000)
    assert read_jsonl(few).n_rows == 100
    many = zipped(tmp_path / "many.txt.gz", (b"a" + b"\n" * 10) * 120_000)
    assert sum(1 for _ in read_lines(many)) == 1_200_000


def test_a_reading_that_is_given_up_does_not_wait_for_the_thread_that_reads_ahead():
    asked, goes_on = threading.Event(), threading.Event()

    def blocks():
        yield b"one"
        asked.set()
        goes_on.wait(60)
        yield b"two"

    reading = _one_ahead(blocks())
    assert next(reading) == b"one"
    assert asked.wait(60)
    closing = threading.Thread(target=reading.close)
    closing.start()
    closing.join(60)
    assert not closing.is_alive()
    goes_on.set()
