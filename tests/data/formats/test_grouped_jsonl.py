"""JSON lines of groups: what is read, what is refused and where, and the round trip."""

from __future__ import annotations

import gzip
import io
import json
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.data import (
    GroupedCorpus,
    holds_groups,
    iter_grouped_jsonl,
    read_grouped_jsonl,
    write_grouped_jsonl,
)
from longtail.data.formats import grouped_jsonl
from longtail.data.streams import LINE_LIMIT
from longtail.errors import DataFormatError, InvalidInput
from tests.data.corpora import assert_same_groups, grouped_corpora


def stream(*lines):
    return io.BytesIO("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines).encode())


def test_groups_are_read_in_order_and_repeated_labels_count():
    corpus = read_grouped_jsonl(
        stream(
            {"id": 7, "texts": ["b", "a"], "labels": ["y", "x", "y"]},
            "",
            {"id": "empty", "texts": [], "labels": ["z"]},
            {"id": "bare", "texts": ["é"], "labels": []},
        )
    )
    assert list(corpus.texts) == ["b", "a", "é"]
    assert corpus.groups.toarray().tolist() == [[1, 0, 0], [1, 0, 0], [0, 0, 1]]
    assert corpus.label_names == ("x", "y", "z")
    assert corpus.group_labels.toarray().tolist() == [[1, 2, 0], [0, 0, 1], [0, 0, 0]]
    assert list(corpus.group_names) == ["7", "empty", "bare"]
    assert corpus.row_names is None


def test_equal_texts_of_a_group_are_rows_of_their_own():
    assert read_grouped_jsonl(stream({"texts": ["a", "a"], "labels": []})).n_rows == 2


def test_other_keys_may_hold_texts_and_labels():
    corpus = read_grouped_jsonl(stream({"parts": ["a"], "tags": ["x"]}), texts_key="parts", labels_key="tags")
    assert (list(corpus.texts), corpus.label_names) == (["a"], ("x",))


def test_a_file_without_lines_has_no_groups():
    corpus = read_grouped_jsonl(io.BytesIO(b"\n"))
    assert (corpus.n_rows, corpus.n_groups, corpus.n_labels) == (0, 0, 0)


FAULTS = [
    ("{", "not JSON: Expecting property name"),
    ("[1]", "expected an object {...}, found a list"),
    ('{"labels": []}', "no key 'texts'; the keys are 'labels'"),
    ('{"text": "a", "labels": []}', "no key 'texts'; the keys are 'labels', 'text'"),
    ('{"texts": ["a"]}', "no key 'labels'; the keys are 'texts'"),
    ('{"texts": "a", "labels": []}', "'texts' is a text; expected a list of texts"),
    ('{"texts": null, "labels": []}', "'texts' is null; expected a list of texts"),
    ('{"texts": ["a", 1], "labels": []}', "'texts' holds a number; expected texts only"),
    ('{"texts": [["a"]], "labels": []}', "'texts' holds a list; expected texts only"),
    ('{"texts": [], "labels": "x"}', "'labels' is a text; expected a list"),
    ('{"texts": [], "labels": {"x": 2}}', "'labels' is an object; expected a list"),
    ('{"texts": [], "labels": [1]}', "'labels' holds a number; labels are names"),
    ('{"texts": [], "labels": [""]}', "'labels' holds an empty name"),
    ('{"texts": [], "labels": [], "id": []}', "'id' is a list"),
    ('{"texts": ["\\ud800"], "labels": []}', "half of a surrogate pair"),
    ('{"texts": [], "labels": ["\\ud800"]}', "half of a surrogate pair"),
    ('{"texts": ' + "[" * 200_000, "nested too deeply"),
    ('{"texts": [], "labels": [], "id": ' + "1" * 5000 + "}", "not readable JSON"),
    ('{"texts": [], "labels": []} {}', "not JSON: Extra data at character 29"),
]


@pytest.mark.parametrize(("line", "reason"), FAULTS, ids=[reason for _, reason in FAULTS])
def test_faults_name_the_line_and_the_reason(line, reason):
    good = {"texts": ["a"], "labels": []}
    with pytest.raises(DataFormatError) as caught:
        read_grouped_jsonl(stream(good, "", line, good))
    assert caught.value.line == 3
    assert reason in str(caught.value)


def test_ids_must_be_everywhere_or_nowhere():
    named, plain = {"texts": [], "labels": [], "id": 1}, {"texts": [], "labels": []}
    with pytest.raises(DataFormatError, match="the stream:2: the group has no 'id', but earlier ones have one"):
        read_grouped_jsonl(stream(named, plain))
    with pytest.raises(DataFormatError, match="the stream:2: the group has an 'id', but earlier ones have"):
        read_grouped_jsonl(stream(plain, named))


def test_a_line_that_is_not_utf8_or_too_long_is_an_error():
    with pytest.raises(DataFormatError, match="the stream:1: byte 13 of the line is not UTF-8"):
        read_grouped_jsonl(io.BytesIO(b'{"texts": ["\xe9"], "labels": []}'))
    with pytest.raises(DataFormatError, match=":1: the line is longer than 1000 bytes"):
        read_grouped_jsonl(stream({"texts": ["a"] * 1000, "labels": []}), line_limit=1000)


def test_unknown_keys_are_reported_once_or_ignored_or_refused():
    lines = [{"texts": [], "labels": [], "year": 1}, {"texts": [], "labels": [], "year": 2}]
    with pytest.warns(UserWarning, match="'year' in 2 lines"):
        read_grouped_jsonl(stream(*lines))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_grouped_jsonl(stream(*lines), unknown="ignore").n_groups == 2
    with pytest.raises(DataFormatError, match=":1: unknown key 'year'"):
        read_grouped_jsonl(stream(*lines), unknown="error")
    with pytest.raises(InvalidInput, match="unknown is 'maybe'"):
        iter_grouped_jsonl(stream(*lines), unknown="maybe")


def test_groups_come_one_at_a_time():
    records = iter_grouped_jsonl(stream({"texts": ["a"], "labels": ["x", "x"]}, "broken"))
    first = next(records)
    assert (first.line, first.texts, first.labels, first.group_name) == (1, ("a",), ("x", "x"), None)
    with pytest.raises(DataFormatError, match=":2: not JSON"):
        next(records)


@given(grouped_corpora(), st.sampled_from(["a.jsonl", "a.jsonl.gz"]))
def test_groups_come_back(corpus, name):
    with tempfile.TemporaryDirectory() as folder:
        write_grouped_jsonl(corpus, Path(folder) / name)
        found = read_grouped_jsonl(Path(folder) / name)
    assert_same_groups(corpus, found)
    assert list(corpus.group_names or []) == list(found.group_names or [])


def test_more_labels_than_a_line_may_list_are_refused_whatever_they_come_from(tmp_path, monkeypatch):
    monkeypatch.setattr(grouped_jsonl, "LISTED_LIMIT", 10)
    for counts, refused in (([[1, 0], [4, 6]], False), ([[1, 0], [4, 7]], True), ([[1, 0], [2**53, 2**53]], True)):
        corpus = GroupedCorpus([[1, 0], [0, 1]], counts, ["x", "y"], texts=["a", "b"])
        if refused:
            with pytest.raises(
                InvalidInput, match=r"group 1 has more labels, .* than the 10 that a line can list; use a"
            ):
                write_grouped_jsonl(corpus, tmp_path / "a.jsonl")
        else:
            write_grouped_jsonl(corpus, tmp_path / "a.jsonl")
            assert read_grouped_jsonl(tmp_path / "a.jsonl").group_labels.toarray().tolist() == counts


def test_as_many_labels_as_a_line_may_list_can_be_read_again():
    assert grouped_jsonl.LISTED_LIMIT * len('"x", ') < LINE_LIMIT


def test_rows_come_back_in_the_order_of_their_groups(tmp_path):
    corpus = GroupedCorpus([[0, 1], [1, 0], [0, 1]], [[1], [3]], ["x"], texts=["a", "b", "c"])
    write_grouped_jsonl(corpus, tmp_path / "a.jsonl")
    found = read_grouped_jsonl(tmp_path / "a.jsonl")
    assert list(found.texts) == ["b", "a", "c"]
    assert found.group_labels.toarray().tolist() == [[1], [3]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"groups": [[1, 1], [1, 0]]}, "row 0 is in 2 groups"),
        ({"groups": [[1, 0], [0, 0]]}, "row 1 is in 0 groups"),
        ({"texts": None, "features": np.eye(2)}, "only features"),
        ({"group_labels": [[0], [2**40]]}, "group 1 has more labels"),
    ],
)
def test_what_has_no_place_in_the_format_is_refused(tmp_path, change, message):
    corpus = GroupedCorpus(np.eye(2), [[1], [1]], ["x"], texts=["a", "b"])
    with pytest.raises(InvalidInput, match=message):
        write_grouped_jsonl(replace(corpus, **change), tmp_path / "a.jsonl")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "key", "expected"),
    [
        (b'\n{"texts": [], "labels": []}', None, True),
        (gzip.compress(b'{"texts": [], "labels": []}', mtime=0), None, True),
        (b'{"text": "a", "labels": []}', None, False),
        (b'{"text": "a", "texts": [], "labels": []}', None, False),
        (b'{"parts": ["a"], "labels": []}', "parts", True),
        (b'{"parts": "a", "labels": []}', "parts", False),
        (b"", None, False),
        (b"{", None, False),
        (b"[]", None, False),
        (b'{"texts": ["\xff"]}', None, False),
        (b"\x1f\x8b\x08\x00", None, False),
    ],
)
def test_the_first_line_tells_groups_from_rows(tmp_path, content, key, expected):
    (tmp_path / "a.jsonl").write_bytes(content)
    assert holds_groups(tmp_path / "a.jsonl", key) is expected
