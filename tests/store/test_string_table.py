"""Tables of strings equal the tuples they were made from; damage raises an error and never gives other bytes."""

from __future__ import annotations

import copy
import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.errors import ModelFormatError
from longtail.store import State, StringTable, read_model, write_model

texts = st.lists(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=5), max_size=12).map(tuple)


@given(texts)
def test_a_table_is_the_sequence_of_its_strings(strings):
    table = StringTable.from_strings(strings)
    table.check()
    assert table == strings
    assert strings == table
    assert table == StringTable.from_strings(strings)
    assert hash(table) == hash(strings)
    assert tuple(table) == strings
    assert [table[position] for position in range(-len(strings), len(strings))] == [*strings, *strings]
    assert table[1:-1:2] == strings[1:-1:2]
    assert copy.deepcopy(table) == pickle.loads(pickle.dumps(table)) == strings


def test_positions_that_are_not_there_are_told():
    table = StringTable.from_strings(("a", "b"))
    for position in (2, -3, 10**30):
        with pytest.raises(IndexError, match="2 strings"):
            table[position]
    with pytest.raises(TypeError):
        table["a"]
    assert table != ("a",)
    assert table != ["a", "b"]
    assert table[np.int64(1)] == "b"
    assert repr(StringTable.from_strings(("a", "b", "c", "d"))) == "<StringTable of 4: 'a', 'b', 'c', ...>"


@given(
    st.binary(max_size=12), st.lists(st.integers(-20, 20) | st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=6)
)
def test_whatever_the_bytes_a_string_is_decoded_from_its_own_or_refused(content, offsets):
    table = StringTable(np.frombuffer(content, np.uint8), np.array(offsets, np.int64))
    sound = offsets[0] == 0 and offsets[-1] == len(content)
    for position, (begin, end) in enumerate(pairwise(offsets)):
        try:
            found = table[position]
        except ModelFormatError:
            sound = False
        else:
            assert 0 <= begin <= end <= len(content)
            assert found == content[begin:end].decode("utf-8")
    if sound:
        table.check()
        assert len(tuple(table)) == len(offsets) - 1
    else:
        with pytest.raises(ValueError, match=r"."):
            table.check()


def test_a_cut_through_a_character_is_found_though_the_whole_text_is_valid():
    table = StringTable(np.frombuffer("aäz".encode(), np.uint8), np.array([0, 2, 4]))
    with pytest.raises(ValueError, match="middle of a character"):
        table.check()
    with pytest.raises(ModelFormatError, match="string 0 of a table"):
        table[0]
    with pytest.raises(ModelFormatError, match="strings 0 to 1"):
        list(table)


def test_a_table_that_was_read_can_be_saved_again_and_a_damaged_one_cannot(tmp_path):
    write_model(State("A", arrays={"names": ("ä", "b")}), tmp_path / "one")
    state = read_model(tmp_path / "one")
    write_model(state, tmp_path / "other")
    assert {path.name for path in (tmp_path / "one").iterdir()} == {
        path.name for path in (tmp_path / "other").iterdir()
    }
    damaged = StringTable(state.arrays["names"].text, np.array([0, 1, 3]))
    with pytest.raises(ValueError, match=r"Unicode|character"):
        write_model(State("A", arrays={"names": damaged}), tmp_path / "third")
