"""The token rule, on every code point and on the edge cases its page names."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.native.text import word_ngrams
from longtail.text.tokens import lower, stands_alone, tokenize

TEXTS = st.text(st.characters(), max_size=80)


def test_lower_case_is_one_code_point_and_stays_a_letter_for_every_code_point() -> None:
    for point in range(sys.maxunicode + 1):
        character = chr(point)
        small = lower(character)
        assert len(small) == 1
        assert lower(small) == small
        assert unicodedata.category(small)[0] == unicodedata.category(character)[0]


def test_only_two_code_points_differ_from_the_language_s_own_lower_case() -> None:
    different = [chr(p) for p in range(sys.maxunicode + 1) if lower(chr(p)) != chr(p).lower()]
    assert different == ["\u0130", "\u03c2"]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        (" \t\n\u00a0\u3000", []),
        ("Red APPLES, red!", ["red", "apples", "red"]),
        ("İstanbul", ["istanbul"]),
        ("STRAẞE Straße STRASSE", ["straße", "straße", "strasse"]),
        ("ΟΔΟΣ οδος", ["οδοσ", "οδοσ"]),
        ("don't min_df e-mail C++17", ["don", "min", "df", "mail", "17"]),
        ("हिन्दी", ["हिन्दी"]),
        ("cafe\u0301 café", ["cafe\u0301", "café"]),
        ("10½ Ⅻ ⅻ x²", ["10½", "x²"]),
        ("1.5", []),
        ("東京tower", ["東", "京", "tower"]),
        ("カナ、かな", ["カ", "ナ", "か", "な"]),
        ("한국어 ไทย", ["한국어", "ไทย"]),
        ("bad\ud800surrogate\x00nul", ["bad", "surrogate", "nul"]),
        ("👍🏽 ok", ["ok"]),
        ("\u0645\u06cc\u200c\u0628\u0631", ["\u0645\u06cc", "\u0628\u0631"]),
    ],
)
def test_edge_cases(text: str, tokens: list[str]) -> None:
    assert tokenize(text) == tokens


def test_shorter_tokens_are_kept_when_asked_for() -> None:
    assert tokenize("a bc d", min_length=1) == ["a", "bc", "d"]
    assert tokenize("a bc def 猫", min_length=3) == ["def", "猫"]


@given(TEXTS)
def test_tokens_are_the_maximal_runs_of_letters_marks_and_numbers(text: str) -> None:
    expected, run = [], ""
    for character in [*text, " "]:
        kept = unicodedata.category(character)[0] in "LMN"
        if kept and not stands_alone(character):
            run += lower(character)
            continue
        expected += [run] if len(run) >= 2 else []
        expected += [character] if kept else []
        run = ""
    assert tokenize(text) == expected


@given(TEXTS)
def test_tokenizing_the_tokens_again_changes_nothing(text: str) -> None:
    tokens = tokenize(text)
    assert tokenize(" ".join(tokens)) == tokens
    assert all(token.encode("utf-8").decode("utf-8") == token for token in tokens)


@given(TEXTS)
def test_lower_casing_the_text_first_changes_nothing(text: str) -> None:
    assert tokenize("".join(map(lower, text))) == tokenize(text)


@given(TEXTS, TEXTS)
def test_texts_apart_and_joined_by_a_blank_have_the_same_tokens(first: str, second: str) -> None:
    assert tokenize(f"{first} {second}") == tokenize(first) + tokenize(second)


@given(st.lists(st.sampled_from("abc"), max_size=8), st.integers(1, 4), st.integers(0, 3))
def test_ngrams_are_every_run_of_neighbours(tokens: list[str], shortest: int, more: int) -> None:
    longest = shortest + more
    runs = [
        " ".join(tokens[start : start + length])
        for length in range(shortest, longest + 1)
        for start in range(len(tokens) - length + 1)
    ]
    assert list(word_ngrams(tokens, shortest, longest)) == runs
