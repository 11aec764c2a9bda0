"""JSON lines: what is read, what is refused and where, and the round trip."""

from __future__ import annotations

import gzip
import io
import json
import tempfile
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.data import Corpus, iter_jsonl, read_jsonl, write_jsonl
from longtail.errors import DataFormatError, InvalidInput
from tests.data.corpora import assert_same_corpus, text_corpora


def stream(*lines):
    return io.BytesIO("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines).encode())


def test_texts_labels_and_ids_are_read():
    corpus = read_jsonl(
        stream({"id": 7, "text": "a", "labels": ["y", "x", "y"]}, "", {"id": "b", "text": "é", "labels": []})
    )
    assert list(corpus.texts) == ["a", "é"]
    assert corpus.label_names == ("x", "y")
    assert corpus.labels.toarray().tolist() == [[1, 1], [0, 0]]
    assert list(corpus.row_names) == ["7", "b"]


def test_other_keys_may_hold_text_and_labels():
    corpus = read_jsonl(stream({"body": "a", "tags": ["x"]}), text_key="body", labels_key="tags")
    assert (list(corpus.texts), corpus.label_names) == (["a"], ("x",))


def test_a_byte_order_mark_and_windows_line_ends_are_fine():
    corpus = read_jsonl(io.BytesIO(b'\xef\xbb\xbf{"text": "a", "labels": []}\r\n\r\n'))
    assert list(corpus.texts) == ["a"]


def test_labels_may_be_absent_where_they_are_not_required():
    corpus = read_jsonl(stream({"text": "a"}, {"text": "b"}), require_labels=False)
    assert corpus.labels.shape == (2, 0)


FAULTS = [
    ("{", "not JSON: Expecting property name"),
    ("[1]", "expected an object {...}, found a list"),
    ('{"labels": []}', "no key 'text'; the keys are 'labels'"),
    ('{"text": "a"}', "no key 'labels'; the keys are 'text'"),
    ('{"text": null, "labels": []}', "'text' is null; expected a text"),
    ('{"text": "a", "labels": "x"}', "'labels' is a text; expected a list"),
    ('{"text": "a", "labels": [1]}', "'labels' holds a number; labels are names"),
    ('{"text": "a", "labels": [""]}', "'labels' holds an empty name"),
    ('{"text": "a", "labels": [], "id": []}', "'id' is a list"),
    ('{"text": "a", "labels": [], "id": true}', "'id' is true or false"),
    ('{"text": "\\ud800", "labels": []}', "half of a surrogate pair"),
    ('{"text": "a", "labels": ["\\ud800"]}', "half of a surrogate pair"),
    ("[" * 200_000, "nested too deeply"),
    ('{"text": "a", "labels": [], "id": ' + "1" * 5000 + "}", "not readable JSON"),
    ('{"text": "a", "labels": []} {}', "not JSON: Extra data at character 29"),
]


@pytest.mark.parametrize(("line", "reason"), FAULTS, ids=[reason for _, reason in FAULTS])
def test_faults_name_the_line_and_the_reason(line, reason):
    good = {"text": "a", "labels": []}
    with pytest.raises(DataFormatError) as caught:
        read_jsonl(stream(good, "", line, good))
    assert caught.value.line == 3
    assert reason in str(caught.value)


def test_ids_must_be_everywhere_or_nowhere():
    with pytest.raises(DataFormatError, match="the stream:2: the row has no 'id'"):
        read_jsonl(stream({"text": "a", "labels": [], "id": 1}, {"text": "a", "labels": []}))
    with pytest.raises(DataFormatError, match="the stream:2: the row has an 'id'"):
        read_jsonl(stream({"text": "a", "labels": []}, {"text": "a", "labels": [], "id": 1}))


@pytest.mark.parametrize(
    ("content", "advice"),
    [
        ("text,labels\na,x\n", "if this is a table, name the file .csv"),
        ('[\n{"text": "a", "labels": []}\n]\n', "one whole object in each line; `jq -c '.[]'` makes them"),
        ('{\n"text": "a"\n}\n', "one whole object in each line"),
    ],
)
def test_a_first_line_that_is_no_object_says_what_json_lines_are(content, advice):
    with pytest.raises(DataFormatError, match="the stream:1: not JSON") as caught:
        read_jsonl(io.BytesIO(content.encode()))
    assert advice in caught.value.advice


def test_labels_that_are_not_read_can_be_anything(recwarn):
    rows = [{"text": "a", "labels": "x;y"}, {"text": "b", "labels": None}, {"text": "c", "label": 1.5}]
    assert read_jsonl(stream(*rows), labels_key=None).labels.shape == (3, 0)
    assert not recwarn.list
    assert read_jsonl(stream({"text": "b", "labels": None}), require_labels=False).n_labels == 0
    with pytest.raises(
        DataFormatError, match=r"'labels' is null; expected a list of names, which is \[\] if there are"
    ):
        read_jsonl(stream({"text": "b", "labels": None}))


def test_whole_numbers_with_a_decimal_point_are_names():
    corpus = read_jsonl(stream({"text": "a", "label": 12.0, "id": 7.0}))
    assert (corpus.label_names, corpus.row_names) == (("12",), ["7"])
    with pytest.raises(DataFormatError, match="'id' is a number; expected a text or a whole number"):
        read_jsonl(stream({"text": "a", "labels": [], "id": 7.5}))


@pytest.mark.parametrize("nothing", [None, "", " "])
def test_a_blank_id_is_none(nothing):
    assert read_jsonl(stream({"text": "a", "labels": [], "id": nothing})).row_names is None


def test_a_line_that_is_not_utf8_is_an_error():
    with pytest.raises(DataFormatError, match=r"the stream:1: byte 1 of the line is not UTF-8"):
        read_jsonl(io.BytesIO('\xe4{"text": "a", "labels": []}'.encode("latin-1")))


def test_a_line_may_not_outgrow_its_limit():
    with pytest.raises(DataFormatError, match=":1: the line is longer than 1000 bytes"):
        read_jsonl(stream({"text": "a" * 1000, "labels": []}), line_limit=1000)


def test_unknown_keys_are_reported_once_or_ignored_or_refused():
    lines = [{"text": "a", "labels": [], "year": 1}, {"text": "b", "labels": [], "year": 2, "place": 3}]
    with pytest.warns(UserWarning, match="'year' in 2 lines, 'place' in 1 lines") as caught:
        read_jsonl(stream(*lines))
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_jsonl(stream(*lines), unknown="ignore").n_rows == 2
    with pytest.raises(DataFormatError, match=":1: unknown key 'year'"):
        read_jsonl(stream(*lines), unknown="error")
    with pytest.raises(InvalidInput, match="unknown is 'maybe'"):
        iter_jsonl(stream(*lines), unknown="maybe")


def test_records_come_one_at_a_time():
    records = iter_jsonl(stream({"text": "a", "labels": ["x", "x"]}, "broken"))
    first = next(records)
    assert (first.line, first.text, first.labels, first.row_name) == (1, "a", ("x",), None)
    with pytest.raises(DataFormatError, match=":2: not JSON"):
        next(records)


@given(text_corpora(), st.sampled_from(["a.jsonl", "a.jsonl.gz"]))
def test_a_corpus_comes_back(corpus, name):
    with tempfile.TemporaryDirectory() as folder:
        write_jsonl(corpus, Path(folder) / name)
        assert_same_corpus(corpus, read_jsonl(Path(folder) / name))


def test_a_corpus_of_features_has_no_place_in_the_format(tmp_path):
    with pytest.raises(InvalidInput, match="only features"):
        write_jsonl(Corpus(labels=[[1]], label_names=["x"], features=[[1.0]]), tmp_path / "a.jsonl")


@pytest.mark.slow
def test_real_texts_keep_every_label(benchmark_data):
    path = benchmark_data("eurlex57k") / "dev.jsonl.gz"
    corpus = read_jsonl(path)
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    assert_same_corpus(corpus, Corpus.from_lists([row["text"] for row in rows], [row["labels"] for row in rows]))


def test_a_row_may_have_one_label_by_itself():
    lines = b'{"text": "a", "label": "x"}\n{"text": "b", "labels": ["x", "y"]}\n{"text": "c", "label": 7}\n'
    corpus = read_jsonl(io.BytesIO(lines))
    assert corpus.label_names == ("7", "x", "y")
    assert corpus.labels.toarray().tolist() == [[0, 1, 0], [0, 1, 1], [1, 0, 0]]
    assert not corpus.is_single_label
    named = read_jsonl(io.BytesIO(b'{"text": "a", "topic": "x"}\n{"text": "b", "topic": ["y"]}'), labels_key="topic")
    assert named.is_single_label
    assert read_jsonl(io.BytesIO(b'{"text": "a", "label": null}'), require_labels=False).labels.nnz == 0


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"text": "a", "label": "x", "labels": ["y"]}', "both 'label' and 'labels'"),
        (b'{"text": "a", "label": ["x"]}', "'label' is a list; expected one label"),
        (b'{"text": "a", "label": null}', "'label' is null"),
        (b'{"text": "a", "label": true}', "'label' is true or false"),
        (b'{"text": "a", "label": ""}', "empty name"),
        (b'{"text": "a", "labels": "x"}', "expected a list of names"),
    ],
)
def test_one_label_must_be_a_name_or_a_number(line, reason):
    with pytest.raises(DataFormatError, match=reason) as raised:
        read_jsonl(io.BytesIO(line))
    assert raised.value.line == 1
    assert (raised.value.code == "label_and_labels") == ("both" in reason)
