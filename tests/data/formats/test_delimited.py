"""Comma- and tab-separated files: columns, separators, errors with their line, and the round trip."""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.data import Corpus, read_delimited, write_delimited
from longtail.errors import DataFormatError, InvalidInput
from tests.data.corpora import NAMES, assert_same_corpus, text_corpora


@pytest.fixture
def write(tmp_path):
    def to_file(content, name="a.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode())
        return path

    return to_file


def rows_of(corpus):
    names = corpus.label_names
    bounds = zip(corpus.labels.indptr[:-1], corpus.labels.indptr[1:], strict=True)
    labels = [[names[i] for i in corpus.labels.indices[a:b]] for a, b in bounds]
    return list(zip(corpus.texts, labels, strict=True))


EXPECTED = [("a, b", ["x", "y z"]), ("line\nbreak", [])]


@pytest.mark.parametrize(
    ("content", "name", "options"),
    [
        ('text,labels\n"a, b", y z ;x;;x\n\n"line\nbreak",\n', "a.csv", {}),
        ('\ufefftext,labels\r\n"a, b",x;y z\r\n"line\nbreak",\r\n', "a.csv", {}),
        ('labels\ttext\nx;y z\ta, b\n\t"line\nbreak"\n', "a.tsv", {}),
        ('labels|text\nx;y z|a, b\n|"line\nbreak"', "a.csv", {}),
        (
            'body:n:tags\na, b:1:x/y z\n"line\nbreak":2:\n',
            "a.data",
            {"delimiter": ":", "text": "body", "labels": "tags", "label_separator": "/"},
        ),
        ('x;y z,"a, b"\n,"line\nbreak"\n', "a.csv", {"header": False, "text": 1, "labels": 0}),
    ],
)
def test_texts_and_labels_are_found(write, content, name, options):
    assert rows_of(read_delimited(write(content, name), **options)) == EXPECTED


def test_a_column_named_id_names_the_rows(write):
    assert list(read_delimited(write("id,text,labels\n7,a,x\n8,b,y\n")).row_names) == ["7", "8"]


def test_texts_to_be_tagged_need_no_labels(write):
    corpus = read_delimited(write("text\na\nb\n"), labels=None)
    assert corpus.labels.shape == (2, 0)


def test_fields_may_be_longer_than_the_csv_module_likes(write):
    before = csv.field_size_limit()
    assert len(read_delimited(write("text,labels\n" + "a" * 300_000 + ",x\n")).texts[0]) == 300_000
    assert csv.field_size_limit() == before


FAULTS = [
    ("", 1, "the file is empty"),
    ("text,tags\na,x\n", 1, "no column is named 'labels'; the columns are 'text', 'tags'"),
    ("text,text,labels\na,b,x\n", 1, "2 columns are named 'text'"),
    ('text,labels\n"a\nb",x\na\n', 4, "1 columns, expected 2"),
    ("text,labels\na,x,y\n", 2, "3 columns, expected 2"),
    ('text,labels\na,x\n"a,x\nb,y\n', 3, "unexpected end of data"),
    ('text,labels\n"a"b,x\n', 2, "expected after"),
]


@pytest.mark.parametrize(("content", "line", "reason"), FAULTS, ids=[reason for _, _, reason in FAULTS])
def test_faults_name_the_line_and_the_reason(write, content, line, reason):
    with pytest.raises(DataFormatError) as caught:
        read_delimited(write(content))
    assert caught.value.line == line
    assert reason in str(caught.value)


def test_a_name_that_is_a_number_comes_before_the_number(write):
    path = write("2024,1\na red apple,fruit\n")
    corpus = read_delimited(path, text="2024", labels="1")
    assert (corpus.texts, corpus.label_names) == (["a red apple"], ("fruit",))
    assert read_delimited(write("1,0\na red apple,fruit\n"), text="1", labels="0").texts == ["a red apple"]
    assert read_delimited(write("1,0\nfruit,a red apple\n"), text=1, labels=0).texts == ["a red apple"]
    assert read_delimited(write("a,b\nfruit,a red apple\n"), text="1", labels="0").texts == ["a red apple"]
    assert read_delimited(write("t,1,1\na red apple,fruit,x\n"), text="t", labels="1").label_names == ("fruit",)
    assert read_delimited(path, text=np.int64(0), labels=np.int64(1)).texts == ["a red apple"]


def test_columns_by_number_must_exist(write):
    with pytest.raises(DataFormatError, match="no column 5: there are 2, numbered from 0"):
        read_delimited(write("a,x\n"), text=5, labels=1, header=False)
    with pytest.raises(InvalidInput, match="give the numbers"):
        read_delimited(write("a,x\n"), header=False)


@pytest.mark.parametrize("options", [{"delimiter": "ab"}, {"delimiter": '"'}, {"label_separator": ""}])
def test_separators_that_cannot_separate_are_refused(write, options):
    with pytest.raises(InvalidInput, match=r"delimiter|label_separator"):
        read_delimited(write("text,labels\n"), **options)


@given(
    text_corpora(NAMES.map(lambda name: name.replace(";", "")).filter(lambda name: name and name == name.strip())),
    st.sampled_from(["a.csv", "a.tsv", "a.csv.gz"]),
)
def test_a_corpus_comes_back(corpus, name):
    with tempfile.TemporaryDirectory() as folder:
        write_delimited(corpus, Path(folder) / name)
        assert_same_corpus(corpus, read_delimited(Path(folder) / name))


def test_a_label_that_holds_the_separator_is_refused(tmp_path):
    corpus = Corpus.from_lists(["a"], [["x;y"]])
    with pytest.raises(InvalidInput, match="the label 'x;y' would not be read back"):
        write_delimited(corpus, tmp_path / "a.csv")
    write_delimited(corpus, tmp_path / "a.csv", label_separator="|")
    assert_same_corpus(corpus, read_delimited(tmp_path / "a.csv", label_separator="|"))


def test_labels_that_look_like_lists_raise_a_doubt_about_the_separator(tmp_path):
    path = tmp_path / "notes.csv"
    path.write_text('text,labels\none,"a,b"\ntwo,"b,c"\n', encoding="utf-8")
    with pytest.warns(
        UserWarning, match=r"the label column has no ';', but most labels contain ','.*--label-separator"
    ):
        read_delimited(path)


def test_a_column_label_holds_one_label_whatever_its_characters(tmp_path):
    path = tmp_path / "classes.csv"
    path.write_text("id,text,label\n1,red apple,fruit; fresh\n2,sky, weather \n3,nothing,\n", encoding="utf-8")
    corpus = read_delimited(path)
    assert corpus.label_names == ("fruit; fresh", "weather")
    assert corpus.row_names == ["1", "2", "3"]
    assert corpus.labels.sum(axis=1).tolist() == [1, 1, 0]
    assert not corpus.is_single_label
    assert corpus.select([0, 1]).is_single_label
    assert read_delimited(path, labels="label").label_names == ("fresh", "fruit", "weather")


def test_columns_label_and_labels_are_refused_together(tmp_path):
    path = tmp_path / "both.csv"
    path.write_text("text,label,labels\nred apple,fruit,fruit\n", encoding="utf-8")
    with pytest.raises(DataFormatError, match="'label' and 'labels'") as raised:
        read_delimited(path)
    assert raised.value.code == "label_and_labels"
    assert read_delimited(path, labels=2).label_names == ("fruit",)
