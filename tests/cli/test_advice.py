"""Advice of the command line: by code and facts, in place of the library's."""

import pytest

from longtail.cli.advice import reading, with_advice
from longtail.errors import DataFormatError, InvalidInput


@pytest.mark.parametrize(
    ("facts", "situation", "advice"),
    [
        (
            {"code": "missing_key", "name": "text", "found": ["texts"]},
            {},
            "these are groups, not rows: `longtail assign`",
        ),
        (
            {"code": "missing_key", "name": "text", "found": ["texts"]},
            {"grouped": "go"},
            "these are groups, not rows: go",
        ),
        ({"code": "missing_key", "name": "texts", "found": ["text"]}, {}, "these are rows, not groups"),
        ({"code": "missing_key", "name": "texts", "found": []}, {}, "name the key of the list of texts"),
        ({"code": "missing_key", "name": "labels", "found": ["text"]}, {}, "name the key of the labels"),
        ({"code": "missing_key", "name": "title", "found": []}, {}, ""),
        (
            {"code": "missing_column", "column": "text"},
            {},
            "name the columns of text and labels: --text-column and --label-column; if the first line has no names, "
            "use numbers and --no-header",
        ),
        (
            {"code": "missing_column", "column": "title"},
            {"several": True},
            "name the columns of text and labels: --text-column and --label-column. They must have the same names in "
            "all files, so rename others",
        ),
        ({"code": "missing_key", "name": "title", "found": []}, {"several": True}, "keys must have the same names in"),
        ({"code": "texts_differ", "advice": "read the rows as they are"}, {}, "make them equal, or leave out --merge"),
        (
            {"code": "ambiguous_column", "column": "text", "advice": "choose one by its number"},
            {},
            "choose one by its n",
        ),
        ({"code": "ambiguous_column", "column": "page"}, {"group_column": "page"}, "name the column of the groups"),
        ({"code": "column_out_of_range", "column": 7}, {}, ""),
        ({"code": "not_json"}, {"plain": "use --plain"}, "use --plain"),
        ({"code": "not_json"}, {}, ""),
        ({"code": "not_an_object"}, {}, "JSON lines have one object per line"),
        ({"code": "no_header", "advice": "header=False"}, {}, "a .txt file holds features; texts with labels go"),
        ({"code": "groups_file"}, {}, "this is a groups file: give the file of its rows"),
        ({}, {"plain": "use --plain", "grouped": "go"}, ""),
    ],
)
def test_a_reader_s_error_gets_the_advice_of_its_code(facts, situation, advice) -> None:
    with pytest.raises(DataFormatError) as caught, reading(**situation):
        raise DataFormatError("data", 1, "wrong", **facts)
    assert caught.value.advice.startswith(advice)
    assert bool(caught.value.advice) == bool(advice)
    assert caught.value.code == facts.get("code", "data_format")


def test_advice_names_options_instead_of_parameters() -> None:
    error = InvalidInput("no words", code="words_too_rare", advice="lower min_df=2")
    assert str(with_advice(error)) == "no words; use --min-df 1"
    other = InvalidInput("wrong", advice="look again")
    assert with_advice(other) is other
