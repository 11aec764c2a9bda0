"""The text kernels and their twins give the same tokens, counts, order and weights on any text."""

from __future__ import annotations

import sys
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from longtail import native
from longtail.native.text import word_ngrams
from longtail.text.blocks import blocks_of
from longtail.text.tokens import page_of_code_points, tokenize

# Letters whose lower case is longer or shorter in UTF-8, combining marks, Han and Kana, surrogates, controls.
AWKWARD = (
    "aZ09 .-_\x00\x7f\x80éÉİ\u0131Σ\u03c3ςßẞK\u212aȺɐ"
    "\u0301\u200d猫カﾊ々\ud800\udfff𐐀\U0001d518👍🏽\U0002f800\U000e0100\U0010ffff"
)
CHARACTERS = st.one_of(st.sampled_from(AWKWARD), st.characters(), st.sampled_from("abc "))
TEXTS = st.lists(st.text(CHARACTERS, max_size=60), max_size=6)
NGRAMS = st.sampled_from([(1, 1), (1, 2), (2, 3), (3, 3), (1, 1 << 30)])
SUBWORDS = st.sampled_from([0, 3, 4, 5, 20])


@pytest.fixture(autouse=True)
def _needs_both(request):
    if "kernels" not in request.fixturenames and not native.is_native():
        pytest.skip("the native kernels are not built here")


def encoded(texts):
    return [text for block in blocks_of(texts) for text in block]


def learn(kernels, texts, min_length=2, ngrams=(1, 1), subwords=0, keep=True):
    vocabulary = kernels.GrowingVocabulary()
    rule = kernels.CodePoints(page_of_code_points), min_length, *ngrams, subwords
    return vocabulary, vocabulary.count(encoded(texts), *rule, keep)


def features_of(text, min_length, ngrams, subwords):
    """The features as the documentation states them."""
    tokens = tokenize(text, min_length)
    found = Counter(word_ngrams(tokens, *ngrams))
    for token in tokens if subwords else ():
        marked = f"<{token}"
        runs = [marked[start : start + subwords] for start in range(len(marked) - subwords + 1)]
        found.update(run if start == 0 else f"~{run}" for start, run in enumerate(runs))
    return found


def table(names):
    pieces = [name.encode() for name in names]
    offsets = np.cumsum([0, *map(len, pieces)], dtype=np.int64)
    return np.frombuffer(b"".join(pieces), dtype=np.uint8), offsets


def names_of(kernels, vocabulary):
    ids = vocabulary.sorted(np.arange(len(vocabulary.frequencies())))
    return ids, kernels.strings(*vocabulary.tokens(ids))


def assert_same(first, second):
    for one, other in zip(first, second, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@given(TEXTS, st.integers(1, 4), NGRAMS, SUBWORDS)
@example(["İstanbul ΟΔΟΣ οδος", "", "\x00", "\ud800x\udfff"], 1, (1, 2), 4)
@example(["Ⱥ" * 300 + "𐐀" * 300, "猫" * 500, "a" * 70000 + " " + "é" * 70000], 2, (1, 1), 0)
@example(["Ⱥ" * 300 + "𐐀" * 300, "猫" * 500, "a" * 700 + " " + "\U0001d518e\u0301é9" * 70], 2, (1, 1), 20)
def test_every_text_gives_the_features_of_the_rule(texts, min_length, ngrams, subwords):
    for kernels in (native.kernels, native.twins):
        vocabulary, (ends, columns, values) = learn(kernels, texts, min_length, ngrams, subwords)
        ids, names = names_of(kernels, vocabulary)
        name_of = dict(zip(ids.tolist(), names, strict=True))
        for row, text in enumerate(texts):
            cut = slice(ends[row], ends[row + 1])
            found = {name_of[c]: v for c, v in zip(columns[cut].tolist(), values[cut].tolist(), strict=True)}
            assert found == features_of(text, min_length, ngrams, subwords)


def test_every_code_point_gives_the_tokens_of_the_rule(kernels):
    texts = ["".join(map(chr, range(start, start + 512))) for start in range(0, sys.maxunicode + 1, 512)]
    vocabulary, _ = learn(kernels, texts, min_length=1)
    _, names = names_of(kernels, vocabulary)
    assert list(names) == sorted({token for text in texts for token in tokenize(text, 1)})


@given(TEXTS, TEXTS, st.integers(1, 3), NGRAMS, SUBWORDS)
def test_a_fixed_vocabulary_counts_alike_in_kernel_and_twin(known, texts, min_length, ngrams, subwords):
    names = sorted({name for text in known for name in features_of(text, min_length, ngrams, subwords)})
    found = []
    for kernels in (native.kernels, native.twins):
        vocabulary = kernels.Vocabulary(*table(names))
        rule = kernels.CodePoints(page_of_code_points), min_length, *ngrams, subwords
        found.append(vocabulary.count(encoded(known + texts), *rule))
        assert_same(found[-1], vocabulary.count(encoded(known + texts), *rule))
    assert_same(*found)
    assert found[0][0][len(known)] == sum(len(features_of(text, min_length, ngrams, subwords)) for text in known)


@given(TEXTS, TEXTS, NGRAMS, SUBWORDS)
def test_merged_vocabularies_know_what_one_alone_would(first, second, ngrams, subwords):
    for kernels in (native.kernels, native.twins):
        alone, _ = learn(kernels, first + second, ngrams=ngrams, subwords=subwords)
        merged, _ = learn(kernels, first, ngrams=ngrams, subwords=subwords)
        other, _ = learn(kernels, second, ngrams=ngrams, subwords=subwords, keep=False)
        ids = merged.merge(other)
        _, wanted = names_of(kernels, other)
        assert kernels.strings(*merged.tokens(ids[other.sorted(np.arange(len(ids)))].astype(np.int64))) == wanted
        own, names = names_of(kernels, merged)
        alone_own, alone_names = names_of(kernels, alone)
        assert names == alone_names == tuple(sorted(names))
        np.testing.assert_array_equal(merged.frequencies()[own], alone.frequencies()[alone_own])


@given(st.integers(0, 2**32 - 1))
def test_renumbering_and_scaling_agree_to_the_last_bit(seed):
    rng = np.random.default_rng(seed)
    n_rows, n_old, n_new = 6, 300, 200
    numbers = np.full(n_old, -1, dtype=np.int32)
    numbers[rng.permutation(n_old)[:n_new]] = np.arange(n_new, dtype=np.int32)
    rows = [rng.permutation(n_old)[: rng.integers(0, 80)].astype(np.int32) for _ in range(n_rows)]
    ends = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    columns = np.concatenate(rows)
    values = rng.integers(1, 50, size=len(columns)).astype(np.float32)
    weights = (1 + rng.random(n_new)).astype(np.float32)
    found = []
    for kernels in (native.kernels, native.twins):
        ends_, columns_, values_ = kernels.renumber(ends, columns, values, numbers, n_new)
        assert all((np.diff(columns_[a:b]) > 0).all() for a, b in pairwise(ends_))
        kernels.scale_rows(ends_, columns_, values_, weights)
        found.append((ends_, columns_, values_))
    assert_same(*found)


@given(st.lists(st.text(st.sampled_from("ab\x00é猫𐐀\uffff"), max_size=12)))
def test_order_is_that_of_code_points_also_behind_equal_beginnings(names):
    for kernels in (native.kernels, native.twins):
        assert kernels.strings(*table(names)) == tuple(names)
        assert kernels.ascending(*table(names)) == (names == sorted(set(names)))


def test_more_features_than_a_table_begins_with(kernels):
    words = [f"word{i}" for i in range(20_000)]
    vocabulary, (ends, columns, values) = learn(kernels, [" ".join(words), " ".join(words[::-1])])
    _, names = names_of(kernels, vocabulary)
    assert names == tuple(sorted(words))
    assert ends.tolist() == [0, 20_000, 40_000]
    assert set(values.tolist()) == {1.0}
    assert columns[:20_000].tolist() == columns[:19_999:-1].tolist()
    assert vocabulary.frequencies().tolist() == [2] * 20_000


def test_subwords_that_would_not_fit_are_refused():
    with pytest.raises(ValueError, match="too long"):
        learn(native.kernels, ["a" * 100], subwords=21)


def test_a_page_that_fails_says_so(kernels):
    def page(number):
        raise ValueError(f"no page {number}")

    vocabulary = kernels.Vocabulary(*table(["aa"]))
    with pytest.raises(ValueError, match="no page 3"):
        vocabulary.count(encoded(["Σ"]), kernels.CodePoints(page), 1, 1, 1, 0)
    [_, columns, _] = vocabulary.count(encoded(["aa Σ"]), kernels.CodePoints(page_of_code_points), 1, 1, 1, 0)
    assert columns.tolist() == [0]
