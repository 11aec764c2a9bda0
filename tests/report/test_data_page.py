"""The page about data: findings, pictures, and nothing that the data could smuggle in."""

from __future__ import annotations

from longtail.checking import Bin, Check, Rows, check
from longtail.data import Record
from longtail.report import DataHeading, render_check
from longtail.report.charts import bar_chart

HEADING = DataHeading("notes.jsonl", "2026-01-31T12:00:00+00:00", "test.jsonl")


def checked(*pairs: tuple[str, list[str]]) -> Check:
    return check(Rows(texts=[Record(line, text, tuple(labels), None) for line, (text, labels) in enumerate(pairs, 1)]))


def test_the_page_has_the_findings_and_a_picture_of_each_distribution() -> None:
    page = render_check(checked(("red apples", ["Red"]), ("red roses", ["red"]), ("sky", [])), HEADING)
    assert "1 row has no label." in page
    assert "rows_without_labels" in page
    assert "differ from another one only in case" in page
    assert page.count("<svg") == 3
    assert "2026-01-31 12:00 UTC" in page
    assert "http" not in page.replace("http-equiv", "")


def test_the_page_escapes_what_comes_from_the_data() -> None:
    evil = "<script>alert(1)</script>"
    page = render_check(checked((evil, []), ("two", [evil]), ("three", ["x"])), DataHeading(evil, "", evil))
    assert "<script" not in page


def test_bars_are_named_by_their_ranges_or_by_the_lower_ends() -> None:
    few = bar_chart([Bin(1, 1, 4), Bin(2, 2, 0), Bin(3, 4, 2)], "labels of a row", "row")
    assert ">3-4<" in few
    assert "<title>4 rows with 1</title>" in few
    many = bar_chart([Bin(10**power, 10 ** (power + 1) - 1, 1) for power in range(8)], "words", "text")
    assert ">10k+<" in many
