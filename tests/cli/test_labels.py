"""`longtail labels`, and the names that are suggested for mistyped ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import longtail as library
from longtail.errors import InvalidInput


def test_labels_with_their_rows_most_frequent_first(longtail: Callable, model: str, check_golden: Callable) -> None:
    result = longtail("labels", model)
    check_golden("labels", result.out)
    assert (result.code, result.err) == (0, "")


def test_some_labels(longtail: Callable, model: str) -> None:
    assert json.loads(longtail("labels", model, "--contains", "EA", "--json").out) == [{"label": "weather", "rows": 4}]
    assert [row["label"] for row in json.loads(longtail("labels", model, "--prefix", "r", "--json").out)] == ["red"]
    first = longtail("labels", model, "--limit", "1")
    assert [line.split() for line in first.out.splitlines()[2:]] == [["4", "weather"]]
    assert first.err == "the model has 3 labels; to see more of them, use --limit or --out\n"


def test_labels_in_a_file(longtail: Callable, model: str) -> None:
    result = longtail("labels", model, "--out", "labels.csv")
    assert (result.out, result.err) == ("", "wrote labels.csv: 3 labels\n")
    assert Path("labels.csv").read_text(encoding="utf-8-sig").splitlines() == [
        "label,rows",
        "weather,4",
        "fruit,3",
        "red,2",
    ]


def test_no_label_matches(longtail: Callable, model: str) -> None:
    result = longtail("labels", model, "--contains", "wether")
    assert (result.code, result.out) == (0, "")
    assert result.err == "none of the 3 labels matches; did you mean 'weather'?\n"


def test_a_wrong_ending_is_told_before_the_model_is_read(longtail: Callable) -> None:
    assert "labels are written as .csv" in longtail("labels", "absent", "--out", "labels.xls").err


@pytest.mark.parametrize("arguments", [["explain", "--label", "wheather"], ["predict", "--allow", "names"]])
def test_similar_names_are_suggested(longtail: Callable, model: str, arguments: list[str]) -> None:
    Path("names").write_text("fruit\nwheather\n", encoding="utf-8")
    result = longtail(arguments[0], model, "--text", "rain", *arguments[1:])
    source = "names" if "names" in arguments else "--label"
    known = "the model has no label 'wheather'; it knows 3 labels; did you mean 'weather'?"
    assert result.err == f"error: {source}: {known}\n"


def test_the_library_names_similar_labels(longtail: Callable, model: str) -> None:
    tagger = library.load(model)
    assert tagger.similar_labels("Fruits") == ["fruit"]
    assert tagger.similar_labels("vegetable") == []
    with pytest.raises(InvalidInput) as raised:
        tagger.predict(["rain"], deny=["weathr"])
    assert (raised.value.code, raised.value.name, raised.value.found) == ("unknown_label", "weathr", ("weather",))
