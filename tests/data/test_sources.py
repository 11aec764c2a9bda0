"""Several files at once, of different kinds; options for each; files that are refused; rows merged by id."""

from __future__ import annotations

import sqlite3

import pytest

from longtail.data import Source, iter_batches, iter_records, read_corpus
from longtail.errors import DataFormatError, InvalidInput
from tests.data.corpora import rows_of


@pytest.fixture
def files(tmp_path):
    """Write files, by name, and return their paths."""

    def write(**contents):
        paths = []
        for name, content in contents.items():
            paths.append(tmp_path / name.replace("_", "."))
            paths[-1].write_text(content, encoding="utf-8", newline="")
        return paths

    return write


JSONL = '{"text": "a", "labels": ["x"]}\n{"text": "b", "labels": ["z", "y"]}\n'
CSV = "text,labels\nc,y; w\n"


def test_files_of_different_kinds_are_one_corpus(files):
    corpus = read_corpus(files(one_jsonl=JSONL, two_csv=CSV, three_tsv="labels\ttext\nx\td\n"))
    assert rows_of(corpus) == [("a", ["x"]), ("b", ["y", "z"]), ("c", ["w", "y"]), ("d", ["x"])]
    assert corpus.row_names is None


def test_records_and_batches_go_through_all_files(files):
    paths = files(one_jsonl=JSONL, two_csv=CSV)
    assert [(record.line, record.text) for record in iter_records(paths)] == [(1, "a"), (2, "b"), (2, "c")]
    assert [batch.rows for batch in iter_batches(paths)] == [["a", "b"], ["c"]]


def test_each_file_takes_the_options_that_its_reader_knows(files):
    paths = files(one_jsonl='{"body": "a", "tags": ["x"], "n": 1}\n', two_csv="body,tags,n\nb,y|z,2\n")
    corpus = read_corpus(paths, text="body", labels="tags", id="n", label_separator="|")
    assert rows_of(corpus) == [("a", ["x"]), ("b", ["y", "z"])]
    assert list(corpus.row_names) == ["1", "2"]
    with pytest.raises(InvalidInput, match="sheet is no option of the readers of these files"):
        read_corpus(paths, sheet="Sheet1")
    sources = [Source(paths[0], options={"text_key": "body", "labels_key": "tags", "unknown": "ignore"}), paths[1]]
    assert read_corpus(sources, text="body", labels=None).texts == ["a", "b"]


def test_names_of_columns_are_keys_of_json_lines(files):
    [path] = files(one_jsonl='{"title": "a", "tags": ["x"], "n": 1}\n')
    assert list(read_corpus(path, text="title", labels="tags", id="n").row_names) == ["1"]
    assert read_corpus(path, text="title", labels=None).labels.nnz == 0


def test_texts_under_several_keys_are_joined(files):
    lines = '{"title": "a", "abstract": "b", "labels": []}\n{"title": "c", "abstract": null, "labels": []}\n'
    [path] = files(one_jsonl=lines + '{"title": "d", "labels": []}\n{"title,abstract": "e", "labels": []}\n')
    assert read_corpus(path, text="title,abstract").texts == ["a\nb", "c", "d", "e"]
    [path] = files(one_jsonl='{"text": "a", "labels": []}\n')
    with pytest.raises(DataFormatError, match=r"one\.jsonl:1: no key 'title'; the keys are 'labels', 'text'"):
        read_corpus(path, text=["title", "abstract"])


def test_errors_name_the_file(files):
    with pytest.raises(DataFormatError, match=r"two\.csv:1: no column is named 'text'"):
        read_corpus(files(one_jsonl=JSONL, two_csv="a,b\n"))
    with pytest.raises(InvalidInput, match=r"rows\.txt is not a file of texts; its format is repository"):
        read_corpus(files(one_jsonl=JSONL, rows_txt="1 1 1\n0 0:1\n"))
    with pytest.raises(InvalidInput, match="there is no file to read"):
        read_corpus([])


def test_ids_are_kept_if_all_rows_have_one_of_their_own(files):
    with_ids = "id,text,labels\n1,a,x\n2,b,y\n"
    corpus = read_corpus(files(one_csv=with_ids, two_csv="id,text,labels\n3,c,x\n"))
    assert list(corpus.row_names) == ["1", "2", "3"]
    with pytest.warns(UserWarning, match="some of the files have no ids; the ids of the others are dropped"):
        assert read_corpus(files(one_csv=with_ids, two_csv=CSV)).row_names is None
    with pytest.warns(UserWarning, match="the id '2' is in several files; ids are dropped.*--merge-by id"):
        assert read_corpus(files(one_csv=with_ids, two_csv="id,text,labels\n2,c,x\n")).row_names is None


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("a.xls", "save it as .xlsx or as CSV"),
        ("a.ods", "File > Save As > Text CSV"),
        ("a.numbers", "File > Export To > CSV"),
        ("a.docx", "put each text with its labels in a row of a spreadsheet"),
        ("a.PDF", "copy its texts out"),
        ("a.json", "write one object per line"),
        ("a.pkl", "never loaded; write the data as .parquet"),
        ("a.zip", "unpack it"),
    ],
)
def test_other_files_are_refused_with_what_to_do(tmp_path, name, advice):
    for read in (read_corpus, lambda path: list(iter_records(path)), lambda path: read_corpus([path, path])):
        with pytest.raises(InvalidInput, match=advice) as caught:
            read(tmp_path / name)
        assert caught.value.code == "refused_format"


TAGS = "id,text,labels\n7,a,x\n8,b,y\n7,a,z\n9,c,\n7,a,x\n8,b,x\n"
MERGED = [("a", ["x", "z"]), ("b", ["x", "y"]), ("c", [])]


def test_rows_with_one_id_become_one_row(files):
    [path] = files(one_csv=TAGS)
    corpus = read_corpus(path, merge_by="id")
    assert rows_of(corpus) == MERGED
    assert list(corpus.row_names) == ["7", "8", "9"]
    records = list(iter_records(path, merge_by="id"))
    assert [(record.line, record.labels) for record in records] == [(2, ("x", "z")), (3, ("y", "x")), (5, ())]
    assert [batch.rows for batch in iter_batches(path, n_rows=2, merge_by="id")] == [["a", "b"], ["c"]]


def test_rows_of_several_files_are_merged(files):
    paths = files(one_csv=TAGS, two_jsonl='{"id": 9, "text": "c", "labels": ["w"]}\n')
    assert rows_of(read_corpus(paths, merge_by="id")) == [*MERGED[:2], ("c", ["w"])]


def test_rows_to_merge_must_have_one_text_and_an_id(files):
    with pytest.raises(DataFormatError, match=r"one\.csv:3: the row has the id '7' of line 2, but another text"):
        read_corpus(files(one_csv="id,text,labels\n7,a,x\n7,b,y\n"), merge_by="id")
    with pytest.raises(DataFormatError, match=r"two\.csv:2: the row has the id '7' of .*one\.csv:2, but another text"):
        read_corpus(files(one_csv="id,text,labels\n7,a,x\n", two_csv="id,text,labels\n7,b,x\n"), merge_by="id")
    for content in (CSV, "id,text,labels\n,a,x\n"):
        with pytest.raises(DataFormatError, match="the row has no id to merge by") as caught:
            read_corpus(files(one_csv=content), merge_by="id")
        assert caught.value.code == "no_id"
    with pytest.raises(InvalidInput, match="merge_by is 'text'"):
        read_corpus(files(one_csv=TAGS), merge_by="text")


def test_rows_that_are_merged_wait_on_disk(files, monkeypatch):
    connected = []
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda name, **options: connected.append(name) or connect(name, **options))
    assert len(list(iter_records(files(one_csv=TAGS), merge_by="id"))) == 3
    assert connected == [""]  # a file without a name, which SQLite deletes


def test_rows_that_could_be_merged_are_noticed(files):
    with pytest.warns(UserWarning, match=r"3 rows repeat the id and the text .* example '7'.*--merge-by id"):
        read_corpus(files(one_csv=TAGS))


def test_batches_tell_once_of_rows_that_could_be_merged(files):
    with pytest.warns(UserWarning, match="rows? repeats? the id and the text") as told:
        assert len(list(iter_batches(files(one_csv="id,text,labels\n7,a,x\n7,a,y\n8,b,x\n8,b,y\n"), n_rows=2))) == 2
    assert len(told) == 1


def test_the_first_id_that_is_in_two_files_is_told(files):
    rows = "id,text,labels\n" + "".join(f"{row},text {row},x\n" for row in range(20))
    with pytest.warns(UserWarning, match="the id '3' is in several files"):
        read_corpus(files(one_csv=rows, two_csv="id,text,labels\n30,a,x\n3,b,y\n4,c,y\n"))
