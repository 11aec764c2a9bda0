from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.text import Segment, TextFeatures, segments

WORDS = st.sampled_from(["fit", "a", "line", "Line", "猫", "x", "straße"])


@given(st.text(), st.lists(st.tuples(st.text(min_size=1), st.floats(-1, 1))))
def test_segments_are_the_text(text: str, contributions: list[tuple[str, float]]) -> None:
    assert "".join(piece.text for piece in segments(text, contributions)) == text


@given(st.lists(WORDS, min_size=2, max_size=12), st.data())
def test_what_stands_in_the_text_is_shared_out_in_full(words: list[str], data: st.DataObject) -> None:
    tokens = [word.lower() for word in words if len(word) > 1 or word == "猫"]
    features = {*tokens, *(" ".join(pair) for pair in pairwise(tokens))}
    contributions = [(feature, data.draw(st.floats(-1, 1))) for feature in sorted(features)]
    added = sum(piece.contribution for piece in segments(" ".join(words), contributions))
    assert added == pytest.approx(sum(contribution for _, contribution in contributions), abs=1e-9)


@given(st.lists(st.sampled_from(["Seaside", "sea", "inside", "straße", "猫", "a"]), max_size=8), st.data())
def test_subwords_are_shared_out_in_full(words: list[str], data: st.DataObject) -> None:
    text = " ".join([*words, "seaside"])
    features = TextFeatures(min_df=1, subwords=4).fit([text]).feature_names_
    contributions = [(feature, data.draw(st.floats(-1, 1))) for feature in features]
    found = segments(text, contributions)
    assert "".join(piece.text for piece in found) == text
    assert sum(piece.contribution for piece in found) == pytest.approx(sum(adds for _, adds in contributions), abs=1e-9)
    assert all(" " not in piece.text for piece in found if piece.contribution)


def test_a_subword_marks_its_letters_at_each_place() -> None:
    found = segments("Kulturhus, kultur", [("~ultur", 1.0)])
    assert [(piece.text, round(piece.contribution, 9)) for piece in found] == [
        ("K", 0.0),
        ("ultur", 0.5),
        ("hus, k", 0.0),
        ("ultur", 0.5),
    ]


def test_a_beginning_is_marked_only_at_the_beginning() -> None:
    found = segments("kulturer subkultur", [("<kult", 1.0)])
    assert found == [Segment("kult", 1.0), Segment("urer subkultur", 0.0)]


def test_a_word_is_cut_where_letters_turn_from_for_to_against() -> None:
    found = segments("seaside", [("seaside", 0.7), ("<sea", 0.3), ("~side", -1.2)])
    assert [piece.text for piece in found] == ["sea", "side"]
    assert [piece.contribution for piece in found] == pytest.approx([0.6, -0.8])


def test_marks_in_the_text_are_not_subwords() -> None:
    assert segments("<kult ~ultur", [("<", 1.0), ("~", 1.0)]) == [Segment("<kult ~ultur", 0.0)]


def test_a_word_that_stands_twice_shares_its_contribution() -> None:
    found = segments("Rain, rain.", [("rain", 1.0)])
    assert found == [Segment("Rain", 0.5), Segment(", ", 0.0), Segment("rain", 0.5), Segment(".", 0.0)]


def test_what_is_not_in_the_text_changes_nothing() -> None:
    assert segments("fit a line", [("curve", 1.0), ("line fit", 1.0)]) == [Segment("fit a line", 0.0)]
