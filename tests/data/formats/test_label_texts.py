"""Files of label texts: what is read from each format, and what is refused and where."""

from __future__ import annotations

import gzip
import json

import pytest

from longtail.data import LabelTexts, read_label_texts
from longtail.data.formats import label_texts as reader
from longtail.errors import DataFormatError, InvalidInput, NotEnoughMemory
from longtail.memory import limit

APPLE = ("apple", "apples", "malus", "fruit of the apple tree")
EXPECTED = LabelTexts(("Q89", "Q1"), (APPLE, ("Q1",)))
LINES = (
    '{"label": "Q89", "name": "apple", "alt": ["apples", "malus"], "description": "fruit of the apple tree", "x": 1}\n'
    '\n{"label": "Q1", "alt": null}\n'
)
OBJECT = json.dumps(
    {"Q89": {"name": "apple", "alt": ["apples", "malus"], "description": "fruit of the apple tree", "x": []}, "Q1": {}}
)
TABLE = "label\tname\talt\tdescription\nQ89\tapple\tapples| malus ||\tfruit of the apple tree\n\nQ1\t\t\t\n"


@pytest.fixture
def read(tmp_path):
    def from_content(name, content):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return read_label_texts(path)

    return from_content


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", LINES),
        ("a.ndjson", LINES.replace("\n", "\r\n")),
        ("a.json", OBJECT),
        ("a.tsv", TABLE),
        ("a.TSV", "\ufeff" + TABLE.replace("\n", "\r\n")),
        ("a.csv", TABLE.replace("\t", ",")),
    ],
)
def test_every_format_gives_the_same_texts_plain_or_gzipped(read, name, content):
    assert read(name, content) == EXPECTED
    assert read(f"{name}.gz", gzip.compress(content.encode())) == EXPECTED


def test_one_alternative_name_needs_no_list(read):
    assert read("a.jsonl", '{"label": "a", "alt": "b"}').texts == (("a", "b"),)
    assert read("a.json", '{"a": {"alt": "b"}}').texts == (("a", "b"),)


def test_repeated_and_blank_texts_of_a_label_are_left_out(read):
    found = read("a.jsonl", '{"label": "a", "name": " ", "alt": ["a", "", "b", "b"], "description": "b"}')
    assert found.texts == (("a", "b"),)


@pytest.mark.parametrize("name", ["name", "prefLabel", "label"])
@pytest.mark.parametrize("alt", ["alt", "altLabels", "alt_labels"])
def test_one_object_may_use_the_keys_of_vocabularies(read, name, alt):
    assert read("a.json", json.dumps({"3": {name: "adhesive", alt: ["glue"]}})).texts == (("adhesive", "glue"),)


def test_one_object_may_hold_texts_instead_of_objects(read):
    found = read("a.json", '{"1": "apple", "2": ["pear", "pears"], "3": [], "4": null}')
    assert found.texts == (("apple",), ("pear", "pears"), ("3",), ("4",))


def test_columns_may_be_in_any_order_among_others(read):
    found = read("a.tsv", 'broader\tName\tLabel\nfruit\t"big ""red"" apple"\tQ89\n')
    assert (found.labels, found.texts) == (("Q89",), (('big "red" apple',),))
    assert read("b.tsv", "label\nQ89\n").texts == (("Q89",),)


def test_ids_and_names_without_a_header_are_taken_as_they_are(read):
    lines = '\n<http://a.org/1>\t"red" apple\t58.3\nhttp://a.org/2\tlabel\n<http://a.org/3>\t\n'
    found = read("a.tsv", lines)
    assert found.labels == ("http://a.org/1", "http://a.org/2", "http://a.org/3")
    assert found.names == ['"red" apple', "label", "http://a.org/3"]
    assert read("b.tsv", "Q1\tlabel\n").names == ["label"]


@pytest.mark.parametrize(
    ("name", "same", "other"),
    [
        ("a.jsonl", '{"label": "a", "alt": []}', '{"label": "a", "name": "b"}'),
        ("a.tsv", "a\ta", "a\tb"),
    ],
)
def test_a_label_may_repeat_only_with_the_same_texts(read, name, same, other):
    assert read(name, f"{same}\n{same}\n").labels == ("a",)
    with pytest.raises(DataFormatError, match=r"label 'a' has other texts in line 1; merge the two") as caught:
        read(name, f"{same}\n\n{other}\n")
    assert caught.value.line == 3


def test_a_key_of_one_object_may_repeat_only_with_the_same_value(read):
    assert read("a.json", '{"a": {"alt": "b"}, "a": {"alt": "b"}}').texts == (("a", "b"),)
    with pytest.raises(DataFormatError, match="the key 'a' is there twice, with different values"):
        read("a.json", '{"a": {"alt": "b"}, "a": {"alt": "c"}}')


FAULTS = [
    ("a.jsonl", "", None, "the file has no labels"),
    ("a.jsonl", "\n\n", None, "the file has no labels"),
    ("a.jsonl", '{"label": "a"}\n{"name": "b"}', 2, "no key 'label'; the keys are 'name'"),
    ("a.jsonl", '{"label": ""}', 1, "the label is empty"),
    ("a.jsonl", '{"label": 7}', 1, "'label' is a number; expected a text"),
    ("a.jsonl", '{"label": "a", "name": ["b"]}', 1, "'name' is a list; expected a text"),
    ("a.jsonl", '{"label": "a", "alt": {"en": "b"}}', 1, "'alt' is an object; expected a text or a list of texts"),
    ("a.jsonl", '{"label": "a", "alt": ["b", null]}', 1, "'alt' holds null; expected texts only"),
    ("a.jsonl", '{"label": "a", "alt": ["\\ud800"]}', 1, "half of a surrogate pair"),
    ("a.jsonl", '{"label": "a"}\n["a"]', 2, "expected an object {...}, found a list"),
    ("a.jsonl", '{"label": "a"}\n{"label": "b\n', 2, "not JSON"),
    ("a.jsonl", b'{"label": "a"}\n{"label": "\xe4"}\n', 2, "is not UTF-8"),
    ("a.jsonl", "[" * 200_000, 1, "nested too deeply"),
    ("a.json", "", 1, "not JSON"),
    ("a.json", "{}", None, "the file has no labels"),
    ("a.json", '[{"label": "a"}]', None, "expected an object {...}, found a list"),
    ("a.json", '{\n"a": "b",\n"c"}', 3, "not JSON: Expecting ':' delimiter at character 4"),
    ("a.json", '{"a": ' + "[" * 200_000, None, "nested too deeply"),
    ("a.json", '{"a": {"name": 1}}', None, "label 'a': 'name' is a number; expected a text"),
    ("a.json", '{"a": 1}', None, "label 'a': 'a' is a number; expected a text or a list of texts"),
    ("a.json", '{"": {}}', None, "label '': the label is empty"),
    ("a.json", '{"\\ud800": {}}', None, "half of a surrogate pair"),
    ("a.json", b'{\n"a": "\xff"}', 2, "is not UTF-8"),
    ("a.tsv", "", None, "the file has no labels"),
    ("a.tsv", "label\tname\n", None, "the file has no labels"),
    ("a.tsv", "label\tname\na\tb\tc\n", 2, "3 columns, expected 2 as in the first line"),
    ("a.tsv", "label\tname\n\tb\n", 2, "the label is empty"),
    ("a.tsv", "label\tname\tname\n", 1, "several columns are named 'name'"),
    ("a.tsv", 'label\tname\na\t"b\n', 2, "check the quotes of the row that starts here"),
    ("a.tsv", "a\tb\n<>\t\tx\ty\n", 2, "4 columns; expected an id and a name, separated by a tab"),
    ("a.tsv", "a b\n", 1, "1 column; expected an id and a name"),
    ("a.tsv", "a\tb\n\tc\n", 2, "the label is empty"),
    ("a.tsv", b"a\tb\nc\t\xe4\n", 2, "is not UTF-8"),
    ("a.csv", "id,title\na,b\n", 1, "no column is named 'label'; the columns are 'id', 'title'"),
    ("a.tsv.gz", gzip.compress(b"a\tb\n", mtime=0)[:-9], None, "the file is truncated"),
]


@pytest.mark.parametrize(("name", "content", "line", "reason"), FAULTS)
def test_what_is_wrong_and_where_is_told(read, tmp_path, name, content, line, reason):
    with pytest.raises(DataFormatError) as caught:
        read(name, content)
    assert reason in str(caught.value)
    assert (caught.value.path, caught.value.line) == (str(tmp_path / name), line)


@pytest.mark.parametrize("name", ["a.jsonl", "a.tsv", "a.csv"])
def test_a_huge_line_is_refused(read, name):
    with pytest.raises(DataFormatError, match="the line is longer than") as caught:
        read(f"{name}.gz", gzip.compress(b"label\n" * (name != "a.jsonl") + b"x" * (2**24 + 1), 1))
    assert caught.value.line == (1 if name == "a.jsonl" else 2)


@pytest.mark.parametrize("line_end", ["", "\n"])
def test_a_huge_object_is_refused(read, monkeypatch, line_end):
    monkeypatch.setattr(reader, "_OBJECT_LIMIT", 100)
    with pytest.raises(DataFormatError, match="is longer than 100"):
        read("a.json", f'{{{line_end}"a": {line_end}"{"b" * 50}",{line_end} "c": "{"b" * 50}"}}')


def test_an_object_that_would_not_fit_into_memory_is_refused(read):
    with limit("1K"), pytest.raises(NotEnoughMemory, match="Use JSON lines"):
        read("a.json", OBJECT)


def test_a_file_of_another_kind_or_none_is_refused(read, tmp_path):
    with pytest.raises(InvalidInput, match=r"extension '\.txt' of .* is unknown; files of label texts end in \.jsonl"):
        read("a.txt", "a")
    with pytest.raises(DataFormatError, match="cannot be opened"):
        read_label_texts(tmp_path / "none.jsonl")


def test_a_real_vocabulary_of_ids_and_names(benchmark_data):
    found = read_label_texts(benchmark_data("yso-sv") / "vocabulary.tsv.gz")
    assert len(found.labels) == 27_729
    assert (found.labels[0], found.texts[0]) == ("http://www.yso.fi/onto/yso/p10", ("miljömedvetande",))


def test_a_real_object_of_all_labels(benchmark_data):
    found = read_label_texts(benchmark_data("eurlex57k") / "label_info.json.gz")
    assert len(found.labels) == 4_271
    assert (found.labels[0], found.texts[0]) == ("3", ("adhesive", "glue"))
