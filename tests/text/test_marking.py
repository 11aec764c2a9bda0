from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.text import Segment, segments

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


def test_a_word_that_stands_twice_shares_its_contribution() -> None:
    found = segments("Rain, rain.", [("rain", 1.0)])
    assert found == [Segment("Rain", 0.5), Segment(", ", 0.0), Segment("rain", 0.5), Segment(".", 0.0)]


def test_what_is_not_in_the_text_changes_nothing() -> None:
    assert segments("fit a line", [("curve", 1.0), ("line fit", 1.0)]) == [Segment("fit a line", 0.0)]
