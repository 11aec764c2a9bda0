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
from tests.data.corpora import NAMES, assert_same_corpus, rows_of, text_corpora


@pytest.fixture
def write(tmp_path):
    def to_file(content, name="a.csv"):
        path = tmp_path / name
        path.write_bytes(content.encode())
        return path

    return to_file


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


@pytest.mark.parametrize(
    ("content", "options", "ids"),
    [
        ("ID;text;labels\n7;a;x\n8;b;y\n", {}, ["7", "8"]),
        ("ID,id,text,labels\n1,7,a,x\n2,8,b,y\n", {}, ["7", "8"]),
        ("ID,Id,text,labels\n7,1,a,x\n8,2,b,y\n", {}, None),
        ("Id,labels\nsome text,x\n", {"text": "id"}, None),
    ],
)
def test_a_column_of_ids_is_found_in_any_case(write, content, options, ids):
    assert read_delimited(write(content), **options).row_names == ids


def test_empty_cells_are_no_ids(write):
    assert read_delimited(write("id,text,labels\n,a,x\n ,b,y\n")).row_names is None
    with pytest.raises(DataFormatError, match=":3: the row has no 'id', but earlier ones have one; give every row an"):
        read_delimited(write("id,text,labels\n7,a,x\n,b,y\n"))


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
    (
        "text,text,labels\na,b,x\n",
        1,
        "2 columns are named 'text'; the columns are 'text', 'text', 'labels'; choose one by its number",
    ),
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


def test_the_first_line_of_excel_names_the_delimiter(write):
    for first in ("sep=;\r\n", '"sep=;"\n', "SEP=;\n"):
        assert rows_of(read_delimited(write(first + "text;labels\na, b;x\n"))) == [("a, b", ["x"])]
    with pytest.raises(DataFormatError) as caught:
        read_delimited(write("sep=,\ntext,labels\na\n"))
    assert caught.value.line == 3


@pytest.mark.parametrize(
    ("content", "name"),
    [
        ('text;labels\r\na, b;"x;y"\r\n', "semicolons.csv"),
        ("text\tlabels\r\na, b\tx;y\r\n", "tabs.csv"),
        ('\r\n\r\n"text","labels"\r\n"a, b","x;y"\r\n', "blank lines.csv"),
        ('"text, with, commas";text;labels\n1;a, b;"x;y"\n', "commas in names.csv"),
        ('text,labels,,,\n"a, b",x;y,,,\n,,,,\n,,,,\n', "empty columns.csv"),
        ('text,labels,,,\n"a, b",x;y\n', "short rows.csv"),
        ('text,labels\n"a, b",x;y,,,\n,,,\n', "long rows.csv"),
        ('Text, LABELS \n"a, b",x;y\n', "capitals.csv"),
    ],
)
def test_the_mess_of_exports_is_read(write, content, name):
    assert rows_of(read_delimited(write(content, name))) == [("a, b", ["x", "y"])]


def test_blank_rows_below_a_table_with_ids_are_left_out(write):
    assert rows_of(read_delimited(write("id,text,labels\n1,a,x\n,,\n, ,\n"))) == [("a", ["x"])]
    assert rows_of(read_delimited(write("text,labels\na,x\n,\n"))) == [("a", ["x"]), ("", [])]


def test_an_unnamed_column_with_content_is_a_column(write):
    assert rows_of(read_delimited(write("text,labels,\na,x,a note\n"))) == [("a", ["x"])]
    with pytest.raises(DataFormatError, match=r":3: 4 columns, expected 2 .*needs quotes"):
        read_delimited(write("text,labels,\na,x,a note\na,x,,b\n"))


def test_lines_that_end_in_carriage_returns_only_are_told(write):
    with pytest.raises(DataFormatError, match="the lines end in carriage returns only; save the file"):
        read_delimited(write("text,labels\ra,x\rb,y\r"))


@pytest.mark.parametrize(
    "cells",
    [
        ['["x", "y z"]', '["x"]', "[]"],
        ["['x', 'y z']", "['x']", "[]"],
        ["('x', 'y z')", "('x',)", "()"],
        ["{'x', 'y z'}", "{'x'}", "set()"],
        ["['x' 'y z']", "['x']", "[]"],
        ["['x'\n 'y z']", "['x']", "[]"],
        ["array(['x', 'y z'], dtype=object)", "array(['x'], dtype=object)", "array([], dtype=object)"],
        ["frozenset({'x', 'y z'})", "frozenset({'x'})", "frozenset()"],
        [" [ 'x' , 'y z' , ] ", "['x', None, nan]", ""],
        ["['x', 'y z']", "['x']", " "],
        ['["\\u0078", "y\\u0020z"]', "['\\x78']", "[]"],
    ],
)
def test_lists_in_cells_are_lists(tmp_path, cells):
    with open(tmp_path / "a.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["text", "labels"], *([f"text {i}", cell] for i, cell in enumerate(cells))])
    assert [found for _, found in rows_of(read_delimited(tmp_path / "a.csv"))] == [["x", "y z"], ["x"], []]


@pytest.mark.parametrize("cell", ["[x]", "[sic]; [b]", "['a'; 'b']", "['a", "[a, b]", "(a)", "[['a']]", "['a': 1]"])
def test_other_brackets_are_part_of_a_name(write, cell):
    [(_, found)] = rows_of(read_delimited(write(f'text,labels\na,"{cell}"\n')))
    assert found == sorted(part.strip() for part in cell.split(";"))


def test_a_few_lists_among_names_are_names(write):
    corpus = read_delimited(write("text,labels\na,x\nb,y\nc,['z']\nd,w\n"))
    assert corpus.label_names == ("['z']", "w", "x", "y")


def test_a_label_that_looks_like_a_list_is_refused_when_written(tmp_path):
    with pytest.raises(InvalidInput, match="looks like a list and would be read back as one"):
        write_delimited(Corpus.from_lists(["a"], [["['x']"]]), tmp_path / "a.csv")


def test_a_file_without_names_of_columns_is_noticed(write):
    path = write("fruit,a red apple and a pear on the table\nsky,blue\n")
    with pytest.raises(DataFormatError, match=r"first line looks like data.*text=1, and header=False") as caught:
        read_delimited(path)
    assert (caught.value.code, caught.value.found) == ("headerless", ("1", "0"))
    assert rows_of(read_delimited(path, text=1, labels=0, header=False))[1] == ("blue", ["sky"])


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("a red apple,fruit\na pear,fruit; green\nsky,blue\n", 0),
        ("one two three four five six,fruit\nsky,blue\n", "0"),
        ("7,fruit\n8,blue\n", 0),
    ],
)
def test_a_row_that_is_taken_for_names_of_columns_is_told(write, content, text):
    with pytest.warns(UserWarning, match=r"the first line is taken for names of columns .* set header=False"):
        read_delimited(write(content), text=text, labels=1)


@pytest.mark.parametrize(("text", "labels"), [("0", "1"), ("text", "1"), (0, "labels")])
def test_columns_by_number_below_names_are_no_reason_for_doubt(write, text, labels, recwarn):
    assert read_delimited(write("text,labels\na red apple,fruit\n"), text=text, labels=labels).n_rows == 1
    assert not recwarn.list


@pytest.mark.parametrize(
    ("content", "name", "advice"),
    [
        ('{"text": "a", "labels": ["x"]}\n', "a.csv", "looks like JSON; .* name the file .jsonl"),
        ('[{"text": "a", "labels": ["x"]}]\n', "a.csv", "looks like JSON"),
        ("text;labels\na;x\n", "a.tsv", "if ';' separates columns, name the file .csv"),
        ('"text;labels"\n"a;x"\n', "a.csv", "if ';' separates columns, leave out the quotes around lines"),
    ],
)
def test_a_file_with_the_name_of_another_format_is_noticed(write, content, name, advice):
    with pytest.raises(DataFormatError, match=f":1: no column is named 'text'; .*{advice}") as caught:
        read_delimited(write(content, name))
    assert caught.value.code == "other_format"


def test_several_columns_of_text_are_joined_by_line_ends(write):
    path = write('title,"note, long",labels\na,b,x\n,c,y\nd, ,z\n')
    for text in ('title,"note, long"', ["title", "note, long"], "0,1", [0, 1]):
        assert read_delimited(path, text=text).texts == ["a\nb", "c", "d"]
    assert read_delimited(path, text="note, long").texts == ["b", "c", " "]
    with pytest.raises(DataFormatError, match="no column is named 'body'"):
        read_delimited(path, text="title,body")


def test_the_column_of_ids_is_chosen_by_name(write):
    path = write("id,n,text,labels\n7,1,a,x\n")
    assert list(read_delimited(path, id="n").row_names) == ["1"]
    with pytest.raises(DataFormatError, match="no column is named 'key'"):
        read_delimited(path, id="key")
