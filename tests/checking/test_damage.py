"""Damage to texts: found where it is, and not where it is not."""

from __future__ import annotations

import pytest

from longtail.checking.damage import DAMAGE, damages


@pytest.mark.parametrize(
    "text", ["café", "Ängström für Âge", "“quoted” \u2013 dash…", "naïve œuvre", "Привет, мир", "Ελλάδα"]
)
@pytest.mark.parametrize("wrong", ["latin-1", "cp1252"])
def test_texts_read_in_the_wrong_encoding_are_found(text: str, wrong: str) -> None:
    assert damages(text) == []
    misread = text.encode().decode(wrong, "ignore")
    assert "wrong_encoding" in [damage.code for damage in damages(misread)]


@pytest.mark.parametrize(
    "text",
    [
        "AT&T",
        "R&D; tea",
        "&unknownentity;",
        "a\tb\nc",
        "ÉCOLE «Âge»",
        "PÃO",
        "Ångström",
        "Ãbc",
        "soft\u00adhyphen",
        "👍🏽",
    ],
)
def test_good_texts_are_not_damaged(text: str) -> None:
    assert damages(text) == []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a \ufffd b", "lost_characters"),
        ("bell \x07", "control_characters"),
        ("c1 \x96 dash", "control_characters"),
        ("&nbsp;", "html_entities"),
        ("&#8217;", "html_entities"),
        ("&#x2019;", "html_entities"),
    ],
)
def test_each_kind_of_damage_is_found(text: str, code: str) -> None:
    assert [damage.code for damage in damages(text)] == [code]
    assert code in DAMAGE


def test_the_excerpt_is_around_the_damage() -> None:
    [damage] = damages("x" * 100 + "\ufffd" + "y" * 100)
    assert damage.excerpt == "x" * 30 + "\ufffd" + "y" * 29
