"""Tables of tags: every kind of file holds the same, opens where it should, and is read back as labelled data."""

from __future__ import annotations

import csv
import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.data import Column, TaggedRow, read_corpus, read_originals, writing_tags
from longtail.errors import InvalidInput, Unavailable

ROWS = [
    TaggedRow("a", 'red "apples",\nand pears', [("fruit", 0.9), ("red", 0.1234567)]),
    TaggedRow("b", "=HYPERLINK(1)", []),
    TaggedRow("c", "höhe", [("größe", 1.0)]),
]


def write(path: Path | str, rows: list[TaggedRow] = ROWS, **options: Any) -> None:
    with writing_tags(path, **options) as write_row:
        for row in rows:
            write_row(row)


def table(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        return list(csv.reader(stream, delimiter="\t" if path.suffix == ".tsv" else ","))


def parquet(path: Path) -> Any:
    return pytest.importorskip("pyarrow.parquet").read_table(path).to_pydict()


def test_a_csv_file_opens_in_excel(tmp_path: Path) -> None:
    write(tmp_path / "tags.csv")
    content = (tmp_path / "tags.csv").read_bytes()
    assert content.startswith(b"\xef\xbb\xbfid,text,labels,scores\r\n")
    assert content.endswith("c,höhe,größe,1.0\r\n".encode())
    assert table(tmp_path / "tags.csv")[1:3] == [
        ["a", 'red "apples",\nand pears', "fruit;red", "0.9;0.123457"],
        ["b", "'=HYPERLINK(1)", "", ""],
    ]


def test_a_tsv_file_has_no_byte_order_mark(tmp_path: Path) -> None:
    write(tmp_path / "tags.tsv")
    assert (tmp_path / "tags.tsv").read_bytes().startswith(b"id\ttext\tlabels\tscores\r\n")
    assert table(tmp_path / "tags.tsv")[3] == ["c", "höhe", "größe", "1.0"]


def test_json_lines_have_lists(tmp_path: Path) -> None:
    write(tmp_path / "tags.jsonl")
    first, *_ = (json.loads(line) for line in (tmp_path / "tags.jsonl").read_text(encoding="utf-8").splitlines())
    assert first == {"id": "a", "text": ROWS[0].text, "labels": ["fruit", "red"], "scores": [0.9, 0.123457]}


def test_parquet_has_lists(tmp_path: Path) -> None:
    write(tmp_path / "tags.parquet")
    found = parquet(tmp_path / "tags.parquet")
    assert found["labels"] == [["fruit", "red"], [], ["größe"]]
    assert (found["id"], found["scores"][0]) == (["a", "b", "c"], [0.9, 0.123457])


def test_parquet_is_written_in_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrow = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr("longtail.data.tables.parquet._MOST_ROWS", 2)
    write(tmp_path / "tags.parquet")
    assert arrow.ParquetFile(tmp_path / "tags.parquet").metadata.num_row_groups == 2
    monkeypatch.setattr("longtail.data.tables.parquet._MOST_CHARACTERS", 1)
    write(tmp_path / "tags.parquet")
    assert arrow.ParquetFile(tmp_path / "tags.parquet").metadata.num_row_groups == 3
    write(tmp_path / "tags.parquet", [])
    assert parquet(tmp_path / "tags.parquet")["id"] == []


@pytest.mark.parametrize("name", ["tags.csv", "tags.tsv", "tags.jsonl", "tags.parquet"])
def test_a_row_for_each_tag(tmp_path: Path, name: str) -> None:
    write(tmp_path / name, layout="tag", with_texts=False)
    expected = [["a", 1, "fruit", 0.9], ["a", 2, "red", 0.123457], ["c", 1, "größe", 1.0]]
    if name.endswith(".jsonl"):
        found = [list(json.loads(line).values()) for line in (tmp_path / name).read_text("utf-8").splitlines()]
    elif name.endswith(".parquet"):
        columns = parquet(tmp_path / name)
        assert list(columns) == ["id", "rank", "label", "score"]
        found = [list(row) for row in zip(*columns.values(), strict=True)]
    else:
        head, *found = table(tmp_path / name)
        assert head == ["id", "rank", "label", "score"]
        expected = [[str(value) for value in row] for row in expected]
    assert found == expected


@pytest.mark.parametrize("name", ["tags.csv", "tags.tsv.gz", "tags.jsonl.gz"])
def test_tags_are_read_back_as_labelled_rows(tmp_path: Path, name: str) -> None:
    rows = [*ROWS, TaggedRow("-@x", "+ and\ttabs", [("-5 %", 0.5), ("=a", 0.25)]), TaggedRow("'=d", "'=e", [("'-", 1)])]
    write(tmp_path / name, rows)
    options = {"unknown": "ignore"} if "jsonl" in name else {}
    corpus = read_corpus(tmp_path / name, **options)
    assert corpus.row_names == [row.name for row in rows]
    assert corpus.texts == [row.text for row in rows]
    for row, known in zip(rows, corpus.labels.toarray(), strict=True):
        labels = {name for name, there in zip(corpus.label_names, known, strict=True) if there}
        assert labels == {label for label, _ in row.tags}


CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8) | st.sampled_from(
    ["=1", "'=1", "-5", "'-5", "''@", "+x", "\t", "\r\nx", "-", "1e5", "\uff1d1"]
)


@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=5))
def test_every_cell_is_read_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, cells: list[Any]) -> None:
    path = tmp_path_factory.mktemp("cells") / "tags.csv"
    kept = [Column("text"), Column("other")]
    write(path, [TaggedRow(1, text, [], [text, other]) for text, other in cells], kept=kept)
    for written in table(path)[1:]:
        for cell in written[:2]:
            assert cell[:1] not in ("=", "@", "\t", "\r", "\n")
            assert cell[:1] not in ("+", "-") or float(cell) is not None
    assert [fields[:2] for _, fields in read_originals(path, labels=None).rows] == [list(pair) for pair in cells]


def test_kept_columns_stand_in_front_and_no_column_is_called_twice(tmp_path: Path) -> None:
    kept = [Column("labels"), Column("year"), Column("text")]
    row = TaggedRow("a", "red", [("fruit", 0.5)], ["gold", "-5", "red"])
    write(tmp_path / "tags.csv", [row], kept=kept)
    assert table(tmp_path / "tags.csv") == [
        ["labels", "year", "text", "predicted_labels", "scores"],
        ["gold", "-5", "red", "fruit", "0.5"],
    ]


def test_fields_of_json_keep_their_kinds_where_there_are_kinds(tmp_path: Path) -> None:
    lines = [
        {"text": "a", "n": 1, "x": 1, "yes": True, "tags": ["p", "q"], "any": {"b": [1]}, "none": None},
        {"text": "b", "n": 2, "x": 0.5, "yes": None, "tags": [], "any": "text"},
    ]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    for name in ("out.jsonl", "out.csv", "out.parquet"):
        if name == "out.parquet":
            pytest.importorskip("pyarrow")
        found = read_originals(tmp_path / "in.jsonl", require_labels=False, unknown="ignore")
        rows = [TaggedRow(record.row_name or 1, record.text, [("z", 0.5)], fields) for record, fields in found.rows]
        write(tmp_path / name, rows, kept=found.columns)
    own = {"labels": ["z"], "scores": [0.5]}
    again = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    assert again == [{**line, **own} for line in lines]
    assert table(tmp_path / "out.csv")[1:] == [
        ["a", "1", "1", "true", '["p", "q"]', '{"b": [1]}', "", "z", "0.5"],
        ["b", "2", "0.5", "", "[]", "text", "", "z", "0.5"],
    ]
    found = parquet(tmp_path / "out.parquet")
    assert (found["n"], found["x"], found["yes"]) == ([1, 2], [1.0, 0.5], [True, None])
    assert (found["tags"], found["any"]) == ([["p", "q"], []], ['{"b": [1]}', '"text"'])


def test_a_label_with_the_separator_is_refused_and_the_old_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "tags.csv"
    path.write_text("old", encoding="utf-8")
    rows = [TaggedRow(1, "a", [("x", 1.0)]), TaggedRow(2, "b", [("p;q", 1.0)])]
    with pytest.raises(InvalidInput, match="the label 'p;q' cannot stand in a list") as raised:
        write(path, rows)
    assert (raised.value.code, raised.value.name) == ("label_has_separator", "p;q")
    assert [(file.name, file.read_text("utf-8")) for file in tmp_path.iterdir()] == [("tags.csv", "old")]
    write(path, rows, label_separator="|")
    assert table(path)[2] == ["2", "b", "p;q", "1.0"]
    write(path, rows, layout="tag")
    assert table(path)[2] == ["2", "b", "1", "p;q", "1.0"]


def test_a_failure_leaves_no_parquet_file(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    unknown = ROWS[0]._replace(tags=[("a", "no number")])
    with pytest.raises(TypeError):
        write(tmp_path / "tags.parquet", [ROWS[0], unknown])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("tags.xlsx", "Excel opens .csv files"),
        ("tags.json", "one JSON object per line is called .jsonl"),
        ("tags", "tables are written as .csv, .tsv, .jsonl or .parquet, also with .gz, not as "),
        ("tags.pdf", "not as "),
        ("tags.parquet.gz", "leave out .gz"),
    ],
)
def test_other_endings_are_refused(tmp_path: Path, name: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as raised:
        write(tmp_path / name)
    assert raised.value.code == "unknown_ending"
    assert list(tmp_path.iterdir()) == []


def test_without_pyarrow_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(Unavailable, match=r"longtail\[arrow\]"):
        write(tmp_path / "tags.parquet")


def test_zipped_files_have_equal_bytes(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder / "tags.csv.gz")
    one, two = ((tmp_path / folder / "tags.csv.gz").read_bytes() for folder in ("one", "two"))
    assert one == two
    assert gzip.decompress(one).startswith(b"\xef\xbb\xbfid,")
