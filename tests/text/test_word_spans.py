from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.text import tokenize, word_spans
from longtail.text.tokens import lower


@given(st.text(), st.integers(1, 4))
def test_the_tokens_are_those_of_tokenize(text: str, min_length: int) -> None:
    assert [span.token for span in word_spans(text, min_length)] == tokenize(text, min_length)


@given(st.text(alphabet=st.sampled_from("aB é猫ネ1_.İΣ\u0301")))
def test_each_place_holds_its_token(text: str) -> None:
    for span in word_spans(text, 1):
        assert "".join(map(lower, text[span.start : span.end])) == span.token


@pytest.mark.parametrize("count", [3, 40_000])
def test_a_text_of_very_many_code_points_is_read(count: int) -> None:
    text = " ".join(chr(0x4E00 + number % 20_000) + chr(0x100 + number % 300) for number in range(count))
    assert [span.token for span in word_spans(text, 1)] == tokenize(text, 1)
