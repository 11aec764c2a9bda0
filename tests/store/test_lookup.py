from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.errors import ModelFormatError
from longtail.store import StringTable, lookup

NAMES = st.lists(st.text(max_size=6), unique=True, max_size=30)


@given(NAMES, st.lists(st.text(max_size=6)))
def test_strings_are_found_where_they_stand(names: list[str], others: list[str]) -> None:
    found = StringTable.from_strings(names).find([*names, *others]).tolist()
    assert found == [*range(len(names)), *(names.index(other) if other in names else -1 for other in others)]


def test_strings_that_hash_alike_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "_hashes", lambda text, offsets: np.zeros(len(offsets) - 1, dtype=np.uint64))
    table = StringTable.from_strings(("a", "b", "", "ab"))
    assert table.find(["", "ab", "b", "ba"]).tolist() == [2, 3, 1, -1]


def test_a_run_of_names_that_hash_alike_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "_hashes", lambda text, offsets: np.zeros(len(offsets) - 1, dtype=np.uint64))
    names = [str(number) for number in range(300)]
    index = lookup.StringIndex(*table_of(names))
    read = lookup.StringIndex._bytes
    places: list[int] = []
    monkeypatch.setattr(lookup.StringIndex, "_bytes", lambda self, place: places.append(place) or read(self, place))
    assert not index.repeats()
    assert index.find(names).tolist() == list(range(300))
    assert len(places) == 600
    assert lookup.StringIndex(*table_of([*names, "7"])).repeats()


def test_many_blocks_of_strings_hash_like_one(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"name {number} {'x' * (number % 7)}" for number in range(500)]
    whole = lookup._hashes(*table_of(names))
    monkeypatch.setattr(lookup, "_BLOCK_BYTES", 10)
    assert np.array_equal(lookup._hashes(*table_of(names)), whole)
    assert len(set(whole.tolist())) == len(names)


def table_of(names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    table = StringTable.from_strings(names)
    return table.text, table.offsets


def test_strings_that_repeat_are_an_error_when_one_is_asked_for() -> None:
    with pytest.raises(ModelFormatError, match="repeat"):
        StringTable.from_strings(("a", "b", "a")).find(["b"])


@pytest.mark.parametrize("offsets", [[0, 5], [-1, 1], [2, 1]])
def test_offsets_that_lead_outside_are_an_error(offsets: list[int]) -> None:
    table = StringTable(np.frombuffer(b"ab", dtype=np.uint8), np.array(offsets, dtype=np.int64))
    with pytest.raises(ModelFormatError):
        table.find(["a"])


# Few letters, so that much is found; é shares its first byte with è, and capitals of it are letters of their own.
ALIKE = st.lists(st.text(alphabet="aAbB-éèÉ", max_size=5), max_size=20)
SOUGHT = st.text(alphabet="aAbBéÉ", max_size=4)


def small(text: str) -> bytes:
    return text.encode().lower()


def middle_of(names: list[str], before: list[str], after: list[str]) -> StringTable:
    """A table whose offsets cover only the middle of the text."""
    whole = StringTable.from_strings([*before, *names, *after])
    return StringTable(whole.text, whole.offsets[len(before) : len(before) + len(names) + 1])


@given(ALIKE, SOUGHT, ALIKE, ALIKE)
def test_a_prefix_finds_what_begins_so_in_capital_or_small_ascii_letters(
    names: list[str], prefix: str, before: list[str], after: list[str]
) -> None:
    expected = [place for place, name in enumerate(names) if small(name).startswith(small(prefix))]
    assert middle_of(names, before, after).with_prefix(prefix).tolist() == expected


@pytest.mark.parametrize("block", [1, 7, lookup._BLOCK_BYTES])
@given(names=ALIKE, cut=st.tuples(st.integers(0, 120), st.integers(0, 4)), before=ALIKE, after=ALIKE)
def test_a_part_finds_what_contains_it_in_capital_or_small_ascii_letters(
    block: int, names: list[str], cut: tuple[int, int], before: list[str], after: list[str]
) -> None:
    # Cut out of all names together, so that much of it is found across their ends.
    together = "".join([*before[-1:], *names, *after[:1]])
    start = cut[0] % (len(together) + 1)
    part = together[start : start + cut[1]].swapcase()
    expected = [place for place, name in enumerate(names) if small(part) in small(name)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lookup, "_BLOCK_BYTES", block)
        assert middle_of(names, before, after).containing(part).tolist() == expected


def test_a_part_is_not_found_across_two_strings() -> None:
    table = StringTable.from_strings(("numpy.linalg.lstsq", "sq", "", "lst", "sq", "LSTSQ"))
    assert table.containing("lstsq").tolist() == [0, 5]


@pytest.mark.parametrize("offsets", [[0, 9], [-1, 1], [2, 0], [0, 2, 1]])
def test_a_search_in_a_damaged_table_is_an_error(offsets: list[int]) -> None:
    table = StringTable(np.frombuffer(b"ab", dtype=np.uint8), np.array(offsets, dtype=np.int64))
    for search in (table.with_prefix, table.containing):
        with pytest.raises(ModelFormatError):
            search("a")
