from __future__ import annotations

import pytest

from longtail.report.markup import element, escape, join, name, shortened


def test_long_names_break_between_words_first() -> None:
    assert name("internal market of agricultural products") == "<bdi>internal market of agricultural products</bdi>"
    assert name("see scipy.sparse.linalg.norm") == "<bdi>see scipy.<wbr>sparse.<wbr>linalg.<wbr>norm</bdi>"
    assert name("a " + "x" * 31) == f'<bdi>a <span class="long">{"x" * 31}</span></bdi>'


def test_texts_are_escaped_and_markup_is_not_escaped_twice() -> None:
    assert element("p", "a < b", element("b", "&")) == "<p>a &lt; b<b>&amp;</b></p>"
    assert element("p", title='"') == '<p title="&quot;"></p>'
    assert join(["<", None, escape("<")]) == "&lt;&lt;"
    assert "title" not in name("short")


@pytest.mark.parametrize("text", ["", "word", "x" * 5000, "a b " * 3000, "\n\n \t", "é" * 500])
def test_long_texts_are_cut(text: str) -> None:
    assert len(shortened(text, 40)) <= 41
