"""The token rule: a table maps code points, and tokens are maximal runs of the result.

The rule reads one code point at a time and ignores the locale, so kernels that work on UTF-8 bytes give the same tokens
from the same table, that of the running Python. `docs/text.md` states the rule in full, with its edge cases.
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

import numpy as np

from longtail.arrays import Array
from longtail.native import PAGE_SIZE, STANDS_ALONE, CodePoints

# Scripts without blanks between words: a run is a clause, not a word, so each character is a token.
_WITHOUT_BLANKS = (
    (0x3005, 0x3007),  # ideographic iteration mark, closing mark and zero
    (0x3041, 0x30FF),  # Hiragana, Katakana
    (0x31F0, 0x31FF),  # small Katakana
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9D),  # half-width Katakana
    (0x1AFF0, 0x1B16F),  # old Kana
    (0x20000, 0x3FFFF),  # Han outside the basic plane
)


def stands_alone(character: str) -> bool:
    """Whether `character` is a letter or number of a script without blanks between words, and so a token by itself.

    >>> stands_alone("\u732b"), stands_alone("\u30cd"), stands_alone("e"), stands_alone("\u3001")
    (True, True, False, False)
    """
    point = ord(character)
    return unicodedata.category(character)[0] in "LN" and any(low <= point <= high for low, high in _WITHOUT_BLANKS)


def lower(character: str) -> str:
    """The lower-case form of one code point, always one code point.

    >>> [lower(character) for character in "A\u0130\u03a3\u03c2\u1e9e"]
    ['a', 'i', 'σ', 'σ', 'ß']
    """
    if character == "\u0130":  # the only code point whose full lower case is two code points
        return "i"
    small = character.lower()
    return "\u03c3" if small == "\u03c2" else small


def page_of_code_points(number: int) -> Array:
    """The 256 code points from ``256 * number`` as the kernels map them.

    0 is a blank; `STANDS_ALONE` marks a code point that is a token by itself.

    >>> page_of_code_points(0)[[ord("A"), ord("b"), ord("-")]].tolist() == [ord("a"), ord("b"), 0]
    True
    """
    return np.array([_becomes(chr(PAGE_SIZE * number + offset)) for offset in range(PAGE_SIZE)], dtype=np.uint32)


def _becomes(character: str) -> int:
    if unicodedata.category(character)[0] not in "LMN":
        return 0
    return ord(character) | STANDS_ALONE if stands_alone(character) else ord(lower(character))


_code_points = CodePoints(page_of_code_points)


def tokenize(text: str, min_length: int = 2) -> list[str]:
    """Split a text into lower-case tokens.

    A token is a maximal run of letters, marks and numbers (Unicode categories L, M and N), each code point in lower
    case, of at least `min_length` code points; or one letter or number of a script written without blanks (Han, Kana).

    Parameters
    ----------
    text : str
    min_length : int
        Minimum length of a token, except in scripts without blanks between words.

    Examples
    --------
    >>> tokenize("The 3 Straßen of O'Neill: ÉCOLE, e_mail2")
    ['the', 'straßen', 'of', 'neill', 'école', 'mail2']
    >>> tokenize("猫2匹 a cat")
    ['猫', '匹', 'cat']
    """
    return _code_points.tokens(text, min_length)


class WordSpan(NamedTuple):
    """A token and its position in the text: ``text[start:end]``."""

    token: str
    start: int
    end: int


class _LowerCase(dict[int, str]):
    """Maps each code point to one character, a blank or the lower case, so that positions stay the same."""

    def __missing__(self, point: int) -> str:
        character = chr(point)
        small = lower(character) if unicodedata.category(character)[0] in "LMN" else " "
        if len(self) >= _REMEMBERED:  # bounds the memory
            self.clear()
        self[point] = small
        return small


_lower_case = _LowerCase()
_RUN = re.compile("[^ ]+")
_REMEMBERED = 1 << 14


def word_spans(text: str, min_length: int = 2) -> list[WordSpan]:
    """The tokens of `tokenize` with their positions.

    Examples
    --------
    >>> word_spans("The \u732b, O'Neill")
    [WordSpan(token='the', start=0, end=3), WordSpan(token='\u732b', start=4, end=5), WordSpan(token='neill', start=9, end=14)]
    """  # noqa: E501
    spans: list[WordSpan] = []
    for run in _RUN.finditer(text.translate(_lower_case)):
        start, end, small = run.start(), run.end(), run.group()
        if small.isascii():
            if end - start >= min_length:
                spans.append(WordSpan(small, start, end))
            continue
        begun = start
        for position in range(start, end):
            if stands_alone(text[position]):
                if position - begun >= min_length:
                    spans.append(WordSpan(small[begun - start : position - start], begun, position))
                spans.append(WordSpan(text[position], position, position + 1))
                begun = position + 1
        if end - begun >= min_length:
            spans.append(WordSpan(small[begun - start :], begun, end))
    return spans
