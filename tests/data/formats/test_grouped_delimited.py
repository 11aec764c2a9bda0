from __future__ import annotations

from pathlib import Path

import pytest

from longtail.data import read_grouped_delimited
from longtail.errors import DataFormatError, InvalidInput


def written(folder: Path, text: str, name: str = "pages.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


@pytest.mark.parametrize(
    "rows",
    [
        "p,one,a;b\np,two,a;b\nq,three,b\n",  # on every row
        "p,one,a;b\np,two,\nq,three,b\n",  # on the first alone
        "p,one,a\nq,three,b\np,two,b\n",  # here and there, and groups not in one piece
    ],
)
def test_the_group_has_the_labels_of_its_rows_wherever_they_stand(tmp_path: Path, rows: str) -> None:
    corpus = read_grouped_delimited(written(tmp_path, f"page,text,labels\n{rows}"), group="page")
    assert list(corpus.group_names) == ["p", "q"]
    assert corpus.label_names == ("a", "b")
    assert corpus.group_labels.toarray().tolist() == [[1, 1], [0, 1]]
    members = {(text, corpus.group_names[g]) for text, g in zip(corpus.texts, corpus.groups.indices, strict=True)}
    assert members == {("one", "p"), ("two", "p"), ("three", "q")}


def test_a_label_counts_as_often_as_the_row_that_lists_it_most_often(tmp_path: Path) -> None:
    path = written(tmp_path, "page,text,labels\np,one,a;a\np,two,a\np,three,a;a;b\n")
    assert read_grouped_delimited(path, group="page").group_labels.toarray().tolist() == [[2, 1]]


def test_columns_may_be_numbers_and_rows_may_have_names(tmp_path: Path) -> None:
    path = written(tmp_path, "id\tgroup\twords\ttags\nr1\t7\tone\ta|b\nr2\t7\ttwo\t\n", "pages.tsv")
    corpus = read_grouped_delimited(path, group=1, text="words", labels="tags", label_separator="|")
    assert (list(corpus.row_names), list(corpus.group_names)) == (["r1", "r2"], ["7"])
    assert corpus.label_names == ("a", "b")
    # The group may be what otherwise names rows.
    assert read_grouped_delimited(path, group="id", text="words", labels="tags", label_separator="|").row_names is None


def test_what_is_wrong_is_told_with_its_line(tmp_path: Path) -> None:
    path = written(tmp_path, "page,text,labels\np,one,a\n ,two,a\n")
    with pytest.raises(DataFormatError, match=r"pages\.csv:3: the column 'page' is empty"):
        read_grouped_delimited(path, group="page")
    with pytest.raises(DataFormatError, match="no column is named 'sheet'; the columns are 'page', 'text', 'labels'"):
        read_grouped_delimited(path, group="sheet")
    with pytest.raises(DataFormatError, match="the file is empty"):
        read_grouped_delimited(written(tmp_path, ""), group="page")
    with pytest.raises(InvalidInput, match="without a header"):
        read_grouped_delimited(path, group="page", text=1, labels=2, header=False)


def test_lists_written_with_another_separator_are_doubted(tmp_path: Path) -> None:
    path = written(tmp_path, 'page,text,labels\np,one,"a,b"\nq,two,"b,c"\n')
    with pytest.warns(UserWarning, match="If it separates labels"):
        read_grouped_delimited(path, group="page")
