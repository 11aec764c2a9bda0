"""Tables in memory: data frames of pandas and polars, Arrow tables, mappings of columns, and missing cells."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from longtail import Ridge, Tagger, TextFeatures
from longtail.data import Corpus, read_corpus
from longtail.errors import DataFormatError, InvalidInput, Unavailable
from tests.data.corpora import rows_of

COLUMNS = {
    "title": ["red apples and pears", "green apples", "clear blue sky", "grey sky and rain"],
    "tags": [["fruit", "red"], ["fruit"], ["weather"], ["weather"]],
    "number": [1, 2, 3, 4],
}
FRAMES = [COLUMNS, pd.DataFrame(COLUMNS), pl.DataFrame(COLUMNS), pa.table(COLUMNS)]
NAMES = ["mapping", "pandas", "polars", "arrow"]


@pytest.mark.parametrize("frame", FRAMES, ids=NAMES)
def test_all_frames_give_the_same_corpus(frame):
    corpus = Corpus.from_table(frame, text="title", labels="tags", id="number")
    assert rows_of(corpus) == list(zip(COLUMNS["title"], COLUMNS["tags"], strict=True))
    assert list(corpus.row_names) == ["1", "2", "3", "4"]


@pytest.mark.parametrize("frame", FRAMES, ids=NAMES)
def test_a_tagger_learns_from_a_frame_as_from_lists(frame):
    tagger = Tagger(TextFeatures(min_df=1), Ridge()).fit(frame, text="title", labels="tags")
    other = Tagger(TextFeatures(min_df=1), Ridge()).fit(COLUMNS["title"], COLUMNS["tags"])
    assert tagger.predict(["rain"], k=1) == other.predict(["rain"], k=1)
    assert tagger.label_names_ == ("fruit", "red", "weather")


@pytest.mark.parametrize("frame", FRAMES[1:3], ids=NAMES[1:3])
def test_a_tagger_learns_from_two_series(frame):
    tagger = Tagger(TextFeatures(min_df=1), Ridge()).fit(frame["title"], frame["tags"])
    assert tagger.predict(frame["title"], k=1)[3][0].label == "weather"


def test_columns_of_text_are_joined():
    frame = pd.DataFrame({"title": ["a", None], "abstract": ["b", "c"], "labels": ["x; y", "y"]})
    corpus = Corpus.from_table(frame, text=["title", "abstract"])
    assert rows_of(corpus) == [("a\nb", ["x", "y"]), ("c", ["y"])]


@pytest.mark.parametrize(
    "cells",
    [
        [("x", "y"), ["y"], []],
        [{"x", "y"}, {"y"}, set()],
        [np.array(["x", "y"]), np.array(["y"]), np.array([], dtype=object)],
        ["x;y", " y ", ""],
        ["['x', 'y']", "['y']", "[]"],
        ["['x' 'y']", "['y']", "[]"],
    ],
    ids=["tuples", "sets", "arrays", "texts", "written lists", "written arrays"],
)
def test_labels_can_be_any_list(cells):
    corpus = Corpus.from_table(pd.DataFrame({"text": ["a", "b", "c"], "labels": cells}))
    assert [sorted(found) for _, found in rows_of(corpus)] == [["x", "y"], ["y"], []]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_missing_cells_are_kept_and_counted(make):
    frame = make({"text": ["a", None, "c"], "labels": ["x", "y", None]})
    with pytest.warns(UserWarning, match="the table: 1 text and 1 cell of labels are missing"):
        corpus = Corpus.from_table(frame)
    assert rows_of(corpus) == [("a", ["x"]), ("", ["y"]), ("c", [])]


@pytest.mark.filterwarnings("ignore:.*missing")
@pytest.mark.parametrize("nothing", [None, float("nan"), np.nan, pd.NA, pd.NaT])
def test_every_kind_of_missing_cell_is_empty(nothing):
    frame = pd.DataFrame({"text": pd.Series(["a", nothing], dtype=object), "labels": pd.Series([["x"], nothing])})
    assert rows_of(Corpus.from_table(frame)) == [("a", ["x"]), ("", [])]


@pytest.mark.parametrize("series", [pd.Series, pl.Series, pa.chunked_array], ids=["pandas", "polars", "arrow"])
def test_missing_cells_of_series_are_kept_and_counted(series):
    labels = [["x"], None] if series is not pa.chunked_array else [[["x"], None]]
    texts = ["a", None] if series is not pa.chunked_array else [["a", None]]
    with pytest.warns(UserWarning, match="missing") as told:
        corpus = Corpus.from_lists(series(texts), series(labels))
    assert [str(each.message).partition(" missing")[0] for each in told] == [
        "1 cell of texts is",
        "1 cell of labels is",
    ]
    assert rows_of(corpus) == [("a", ["x"]), ("", [])]


def test_faults_name_the_row_and_the_columns():
    with pytest.raises(DataFormatError, match="the table: no column is named 'body'; the columns are 'title'"):
        Corpus.from_table(pd.DataFrame(COLUMNS), text="body", labels="tags")
    with pytest.raises(DataFormatError, match="the table:1: the column 'text' holds a list"):
        Corpus.from_table(pd.DataFrame(COLUMNS), text="tags", labels="title")
    with pytest.raises(InvalidInput, match=r"a table is a data frame .* found a list"):
        Corpus.from_table([1, 2])
    with pytest.raises(InvalidInput, match="columns of different lengths"):
        Corpus.from_table({"text": ["a"], "labels": []})
    with pytest.raises(InvalidInput, match="a ChunkedArray is no table with columns"):
        Corpus.from_table(pa.chunked_array([["a", "b"]]))


def test_pandas_needs_no_pyarrow_and_others_say_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert Corpus.from_table(pd.DataFrame(COLUMNS), text="title", labels="tags").n_rows == 4
    with pytest.raises(Unavailable, match=r"pip install 'longtail\[arrow\]', or pass a pandas data frame"):
        Corpus.from_table(pl.DataFrame(COLUMNS), text="title", labels="tags")


def written(frame, folder, kind):
    """The frame itself, or a file of it."""
    path = folder / f"classes.{kind}"
    if kind == "parquet":
        frame.to_parquet(path)
    elif kind == "arrow":
        frame.to_feather(path)
    elif kind == "xlsx":
        frame.to_excel(path, index=False)
    else:
        frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow", "xlsx", None])
def test_a_column_label_holds_one_label_in_tables_of_all_kinds(tmp_path, kind):
    frame = pd.DataFrame({"text": ["red apple", "sky"], "label": ["fruit; fresh", "['weather']"]})
    table = frame if kind is None else written(frame, tmp_path, kind)
    corpus = Corpus.from_table(table) if kind is None else read_corpus(table)
    assert rows_of(corpus) == [("red apple", ["fruit; fresh"]), ("sky", ["['weather']"])]
    assert corpus.is_single_label
    both = frame.assign(labels="x")
    table = both if kind is None else written(both, tmp_path, kind)
    with pytest.raises(DataFormatError, match="'label' and 'labels'"):
        Corpus.from_table(table) if kind is None else read_corpus(table)


def test_classes_by_number_and_lists_in_a_column_label():
    table = {"text": ["a", "b"], "label": [3, 5]}
    assert Corpus.from_table(table).label_names == ("3", "5")
    with pytest.raises(DataFormatError, match=r"'label' holds a list; expected one label; .*labels='label'"):
        Corpus.from_table({"text": ["a"], "label": [["x", "y"]]})
    assert Corpus.from_table({"text": ["a"], "label": [["x", "y"]]}, labels="label").label_names == ("x", "y")


def test_a_tagger_takes_weights_of_the_rows_of_a_table():
    frame = {"text": ["red apple", "green apple", "grey sky"], "labels": ["fruit", "fruit", "weather"]}
    tagger = Tagger(TextFeatures(min_df=1), Ridge())
    tagger.fit(frame, "labels", [1, 0, 1], text="text")
    assert tagger.n_rows_ == 2


@pytest.mark.parametrize("series", [pd.Series, pl.Series, pa.chunked_array], ids=["pandas", "polars", "arrow"])
def test_columns_of_classes_and_of_lists_train_a_tagger(series):
    def column(values):
        return series([values]) if series is pa.chunked_array else series(values)

    tagger = Tagger(TextFeatures(min_df=1), Ridge())
    texts = column(["red apple", "grey sky", "rain"])
    assert list(tagger.fit(texts, column(["fruit", "weather", "weather"])).classes_) == ["fruit", "weather"]
    with pytest.warns(UserWarning, match="1 cell of labels is missing"):
        tagger.fit(texts, column([["fruit"], None, ["weather"]]))
    assert tagger.label_names_ == ("fruit", "weather")
