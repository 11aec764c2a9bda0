"""Texts to tf-idf rows: equal to scikit-learn's under matching settings, in one pass, and safe to save."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

from longtail import native
from longtail.errors import InvalidInput, ModelFormatError
from longtail.store import State
from longtail.text import TextFeatures, tokenize
from longtail.text import features as module
from longtail.text.tokens import page_of_code_points

TEXTS = [
    "The red apple and the green apple",
    "A green sky, a red sky",
    "the sea is green; THE SEA is wide",
    "",
    "wide wide wide",
    "Straße zur See, ÉCOLE de la mer",
    "a red apple by the wide sea is a red apple; the sea is red",
]
CORPORA = st.lists(st.text(st.characters(), max_size=40), min_size=1, max_size=8)
SUBWORDS = st.sampled_from([None, 3, 5])


def same(first: Any, second: Any) -> bool:
    return first.shape == second.shape and (first != second).nnz == 0


@pytest.mark.parametrize("ngrams", [(1, 1), (1, 2), (2, 3)])
@pytest.mark.parametrize(("min_df", "max_df"), [(1, 1.0), (2, 1.0), (0.2, 0.4), (1, 2)])
@pytest.mark.parametrize("sublinear", [True, False])
def test_equals_scikit_learn_under_matching_settings(
    ngrams: tuple[int, int], min_df: float, max_df: float, sublinear: bool
) -> None:
    ours = TextFeatures(ngrams=ngrams, min_df=min_df, max_df=max_df, sublinear=sublinear)
    theirs = TfidfVectorizer(
        tokenizer=tokenize,
        token_pattern=None,
        lowercase=False,
        ngram_range=ngrams,
        min_df=min_df,
        max_df=max_df,
        sublinear_tf=sublinear,
    )
    X, expected = ours.fit_transform(TEXTS), theirs.fit_transform(TEXTS)
    assert list(ours.feature_names_) == list(theirs.get_feature_names_out())
    np.testing.assert_allclose(ours.idf_, theirs.idf_, rtol=1e-6)
    np.testing.assert_allclose(X.toarray(), expected.toarray(), atol=1e-6)
    unseen = ["green green apple of the sea", "nothing known here"]
    np.testing.assert_allclose(ours.transform(unseen).toarray(), theirs.transform(unseen).toarray(), atol=1e-6)


def test_token_pattern_of_scikit_learn_gives_the_same_tokens_on_plain_english() -> None:
    text = "Every red apple, 22 of them; the sea-side isn't far."
    assert tokenize(text) == TfidfVectorizer().build_analyzer()(text)


def test_rows_are_float32_csr_with_sorted_32_bit_indices_and_unit_length() -> None:
    X = TextFeatures(min_df=1).fit_transform(TEXTS)
    assert isinstance(X, sparse.csr_array)
    assert X.dtype == np.float32
    assert X.indices.dtype == np.int32
    assert X.has_canonical_format
    lengths = np.sqrt((X.toarray() ** 2).sum(axis=1))
    np.testing.assert_allclose(lengths, [1, 1, 1, 0, 1, 1, 1], rtol=1e-6)


@given(CORPORA, st.sampled_from([(1, 1), (1, 2)]))
def test_transform_of_the_fitted_texts_equals_fit_transform(texts: list[str], ngrams: tuple[int, int]) -> None:
    texts = [*texts, "one word more"]
    features = TextFeatures(min_df=1, ngrams=ngrams)
    X = features.fit_transform(texts)
    fitted = TextFeatures(min_df=1, ngrams=ngrams).fit(texts)
    assert fitted.feature_names_ == features.feature_names_
    assert np.array_equal(fitted.idf_, features.idf_)
    assert same(fitted.transform(texts), X)
    assert same(sparse.vstack(list(features.transform_batches(iter(texts), batch_rows=2))), X)


@given(CORPORA, st.randoms(use_true_random=False))
def test_permuting_the_texts_permutes_the_rows(texts: list[str], random: Any) -> None:
    texts = [*texts, "one word more"]
    order = list(range(len(texts)))
    random.shuffle(order)
    features, permuted = TextFeatures(min_df=1), TextFeatures(min_df=1)
    X = features.fit_transform(texts)
    Z = permuted.fit_transform([texts[i] for i in order])
    assert permuted.feature_names_ == features.feature_names_
    assert same(Z, X[order])


@given(CORPORA)
def test_the_vocabulary_is_the_sorted_tokens_in_at_least_min_df_texts(texts: list[str]) -> None:
    texts = [*texts, "one word more", "one more"]
    found = [set(tokenize(text)) for text in texts]
    expected = sorted(t for t in set().union(*found) if sum(t in tokens for tokens in found) >= 2)
    assert list(TextFeatures().fit(texts).feature_names_) == expected


def test_the_texts_are_read_once() -> None:
    for method in ("fit", "fit_transform"):
        starts = 0

        class Once:
            def __iter__(self) -> Iterator[str]:
                nonlocal starts
                starts += 1
                yield from TEXTS

        getattr(TextFeatures(), method)(Once())
        assert starts == 1
    X = TextFeatures().fit_transform(text for text in TEXTS)
    assert same(X, TextFeatures().fit_transform(TEXTS))


def test_max_features_keeps_the_most_frequent_and_breaks_ties_by_token_order() -> None:
    texts = ["bb cc aa", "bb cc dd", "bb dd aa"]
    assert TextFeatures(min_df=1, max_features=3).fit(texts).feature_names_ == ("aa", "bb", "cc")
    assert TextFeatures(min_df=1, max_features=1).fit(texts).feature_names_ == ("bb",)
    assert same(
        TextFeatures(min_df=1, max_features=3).fit_transform(texts),
        TextFeatures(min_df=1, max_features=3).fit(texts).transform(texts),
    )


def test_a_fraction_and_a_count_are_told_apart() -> None:
    texts = ["aa bb", "aa cc", "aa bb"]
    assert TextFeatures(min_df=1.0).fit(texts).feature_names_ == ("aa",)
    assert TextFeatures(min_df=1).fit(texts).feature_names_ == ("aa", "bb", "cc")
    assert TextFeatures(min_df=1, max_df=0.9).fit(texts).feature_names_ == ("bb", "cc")


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("one text", "single text"),
        (b"one text", "single text"),
        (None, "None"),
        (7, "7"),
        (["fine", None], "row 1 of texts is None of type NoneType"),
        (["fine", "fine", float("nan")], "row 2 of texts is nan of type float"),
        ([b"bytes"], "row 0 .* decode"),
        ([["nested"]], "row 0"),
        (np.array([["two", "columns"]]), "2 dimensions"),
        ([], "no texts"),
    ],
)
def test_wrong_texts_are_named(texts: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        TextFeatures(min_df=1).fit(texts)
    with pytest.raises(InvalidInput, match=message):
        TextFeatures(min_df=1).fit_transform(texts)


def test_a_wrong_row_in_a_later_batch_is_named_by_its_row() -> None:
    features = TextFeatures(min_df=1).fit(["fine"])
    with pytest.raises(InvalidInput, match="row 3"):
        list(features.transform_batches(["a", "b", "c", None], batch_rows=2))  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("settings", "texts", "message"),
    [
        ({}, ["aa bb", "cc dd"], "lower min_df=2"),
        ({"min_df": 1, "max_df": 1}, ["aa", "aa"], "raise max_df=1"),
        ({"min_df": 0.9, "max_df": 0.5}, ["aa", "aa"], "no feature can satisfy both"),
        ({}, ["", "a . b"], "min_length"),
        ({"min_df": 1, "ngrams": (2, 2)}, ["aa", "bb"], "ngrams"),
    ],
)
def test_an_empty_vocabulary_says_which_setting_to_change(
    settings: dict[str, Any], texts: list[str], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        TextFeatures(**settings).fit(texts)
    with pytest.raises(InvalidInput, match=message):
        TextFeatures(**settings).fit_transform(texts)


WRONG_PARAMETERS: list[tuple[str, Any]] = [
    ("ngrams", (2, 1)),
    ("ngrams", (1, 21)),
    ("ngrams", (1, 10**9)),
    ("ngrams", (0, 1)),
    ("ngrams", 2),
    ("ngrams", (1, 2, 3)),
    ("ngrams", (1, 1.5)),
    ("min_length", 0),
    ("min_length", True),
    ("sublinear", 1),
    ("min_df", 0),
    ("min_df", -1),
    ("min_df", 1.5),
    ("min_df", float("nan")),
    ("min_df", "2"),
    ("max_df", True),
    ("max_features", 0),
    ("max_features", 2.0),
    ("subwords", 2),
    ("subwords", 21),
    ("subwords", 10**9),
    ("subwords", 5.0),
    ("subwords", True),
    ("n_jobs", 0),
    ("n_jobs", "2"),
]


@pytest.mark.parametrize(("name", "value"), WRONG_PARAMETERS)
def test_a_wrong_parameter_is_named_in_fit(name: str, value: Any) -> None:
    with pytest.raises(InvalidInput, match=name):
        TextFeatures(**{name: value}).fit(TEXTS)


def test_a_model_that_is_not_fitted_says_so() -> None:
    for method in (TextFeatures().transform, TextFeatures().get_feature_names_out):
        with pytest.raises(NotFittedError):
            method(TEXTS)


def test_follows_the_contract_of_scikit_learn() -> None:
    features = TextFeatures(ngrams=(1, 2), min_df=1, max_features=5)
    assert clone(features).get_params() == features.get_params()
    pipeline = make_pipeline(features)
    X = pipeline.fit_transform(TEXTS)
    assert X.shape == (len(TEXTS), 5)
    assert pipeline.get_feature_names_out().tolist() == list(features.feature_names_)


def test_state_round_trip_gives_the_same_rows() -> None:
    features = TextFeatures(ngrams=(1, 2), min_df=np.int64(1), max_df=0.9, max_features=7, subwords=4).fit(TEXTS)
    state = features.to_state()
    assert state.params == {
        "ngrams": [1, 2],
        "min_length": 2,
        "sublinear": True,
        "min_df": 1,
        "max_df": 0.9,
        "max_features": 7,
        "subwords": 4,
    }
    again = TextFeatures.from_state(state)
    assert again.get_params() == features.get_params()
    assert same(again.transform(TEXTS), features.transform(TEXTS))


def test_a_state_from_before_subwords_has_none() -> None:
    state = TextFeatures(min_df=1).fit(TEXTS).to_state()
    older = replace(state, params={name: value for name, value in state.params.items() if name != "subwords"})
    again = TextFeatures.from_state(older)
    assert again.subwords is None
    assert same(again.transform(TEXTS), TextFeatures(min_df=1).fit_transform(TEXTS))


GOOD = TextFeatures(min_df=1).fit(["aa bb"]).to_state()


def table(text: bytes, offsets: list[int]) -> dict[str, Any]:
    return {
        "token_bytes": np.frombuffer(text, dtype=np.uint8),
        "token_offsets": np.array(offsets, dtype=np.int64),
    }


@pytest.mark.parametrize(
    "state",
    [
        replace(GOOD, kind="Ridge"),
        replace(GOOD, params={}),
        replace(GOOD, params={**GOOD.params, "extra": 1}),
        *(replace(GOOD, params={**GOOD.params, name: value}) for name, value in WRONG_PARAMETERS),
        *(
            replace(GOOD, arrays={name: array for name, array in GOOD.arrays.items() if name != missing})
            for missing in GOOD.arrays
        ),
        *(
            replace(GOOD, arrays={**GOOD.arrays, **table(text, offsets)})
            for text, offsets in [
                (b"bbaa", [0, 2, 4]),
                (b"aaaa", [0, 2, 4]),
                (b"aabb", [0, 0, 4]),
                (b"aabb", [0, 4, 4]),
                (b"aabb", [0, 5, 4]),
                (b"aabb", [-1, 2, 4]),
                (b"aabb", [1, 2, 4]),
                (b"aabb", [0, 2, 5]),
                (b"aabb", [0, 2, 3]),
                (b"aabb", [0, 4]),
                (b"aabbcc", [0, 2, 4, 6]),
                (b"", [0]),
                (b"", []),
                (b"aa\xff\xff", [0, 2, 4]),
                (b"a\xc3\xa9", [0, 2, 3]),
                (b"\xed\xa0\x80\xed\xa0\x81", [0, 3, 6]),
            ]
        ),
        replace(GOOD, arrays={**GOOD.arrays, "token_offsets": GOOD.arrays["token_offsets"].astype(np.int32)}),
        replace(GOOD, arrays={**GOOD.arrays, "token_bytes": ("aa", "bb")}),
        *(
            replace(GOOD, arrays={**GOOD.arrays, "idf": idf})
            for idf in [
                np.ones(2),
                np.ones(3, np.float32),
                np.ones((2, 1), np.float32),
                np.array([1, 0], np.float32),
                np.array([1, -1], np.float32),
                np.array([1, np.nan], np.float32),
                np.array([1, np.inf], np.float32),
            ]
        ),
    ],
)
def test_a_damaged_state_is_refused(state: State) -> None:
    with pytest.raises(ModelFormatError):
        TextFeatures.from_state(state)


def test_real_texts_give_the_same_matrix_as_scikit_learn(benchmark_data: Callable[[str], Path]) -> None:
    import gzip
    import json
    from itertools import islice

    with gzip.open(benchmark_data("eurlex57k") / "test.jsonl.gz", "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in islice(lines, 200)]
    X = TextFeatures().fit_transform(texts)
    theirs = TfidfVectorizer(tokenizer=tokenize, token_pattern=None, lowercase=False, min_df=2, sublinear_tf=True)
    assert abs(X - theirs.fit_transform(texts)).max() < 1e-6


def matrices_alike(first: Any, second: Any) -> None:
    for name in ("data", "indices", "indptr"):
        one, other = getattr(first, name), getattr(second, name)
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    assert first.shape == second.shape


@given(CORPORA, CORPORA, st.sampled_from([(1, 1), (1, 2), (2, 3)]), st.integers(1, 3), st.booleans(), SUBWORDS)
def test_kernels_and_twins_give_the_same_bits(
    texts: list[str], unseen: list[str], ngrams: tuple[int, int], min_length: int, sublinear: bool, subwords: int | None
) -> None:
    texts = [*texts, "one word more and one more word"]
    found = []
    for chosen in (native.kernels, native.twins):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "kernels", chosen)
            patch.setattr(module, "_code_points", chosen.CodePoints(page_of_code_points))
            settings: dict[str, Any] = {"min_length": min_length, "sublinear": sublinear, "subwords": subwords}
            features = TextFeatures(ngrams=ngrams, min_df=1, **settings)
            X = features.fit_transform(texts)
            found.append((features, X, features.transform(unseen)))
            assert features.feature_names_ == TextFeatures(**features.get_params()).fit(texts).feature_names_
    (first, X, Z), (second, X_, Z_) = found
    assert first.feature_names_ == second.feature_names_
    np.testing.assert_array_equal(first.idf_, second.idf_)
    matrices_alike(X, X_)
    matrices_alike(Z, Z_)


@pytest.mark.parametrize("settings", [{}, {"subwords": 4}])
def test_the_result_does_not_depend_on_threads_and_blocks(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    rng = np.random.default_rng(0)
    words = np.array(["Straße", "猫", "x", "ΟΔΟΣ", *(f"word{i}" for i in range(300))])
    texts = [" ".join(rng.choice(words, size=rng.integers(0, 60))) for _ in range(200)]
    names = [f"{word} rare{place}" for place, word in enumerate(words)]
    expected = TextFeatures(ngrams=(1, 2), n_jobs=1, **settings)
    X = expected.fit_transform(texts, also=names)
    monkeypatch.setattr("longtail.text.blocks._BLOCK_BYTES", 500)
    for n_jobs in (1, 2, 5):
        features = TextFeatures(ngrams=(1, 2), n_jobs=n_jobs, **settings)
        matrices_alike(features.fit_transform(texts, also=names), X)
        assert features.feature_names_ == expected.feature_names_
        np.testing.assert_array_equal(features.idf_, expected.idf_)
        matrices_alike(features.transform(texts), X)
        again = TextFeatures(ngrams=(1, 2), n_jobs=n_jobs, **settings).fit(texts, also=iter(names))
        assert again.feature_names_ == expected.feature_names_


def test_texts_are_read_only_a_little_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longtail.text.blocks._BLOCK_BYTES", 1)
    features = TextFeatures(min_df=1, n_jobs=2).fit(["some words"])
    read = 0

    def texts() -> Iterator[str]:
        nonlocal read
        for _ in range(100):
            read += 1
            yield "some words"

    batches = features.transform_batches(texts(), batch_rows=10)
    assert next(batches).shape == (10, 2)
    assert read == 10


@pytest.mark.parametrize("text", ["the red apple", "", "nothing of it"])
def test_a_single_row_is_a_matrix_like_any_other(text: str) -> None:
    features = TextFeatures(min_df=1).fit(["the red apple", "the sea"])
    alone, among = features.transform([text]), features.transform([text, "the sea"])
    assert isinstance(alone, sparse.csr_array)
    alone.check_format(full_check=True)
    matrices_alike(alone, among[[0]])
    alone.data[:] = 0
    matrices_alike(features.transform([text]), among[[0]])


@pytest.mark.parametrize("again", [copy.deepcopy, lambda features: pickle.loads(pickle.dumps(features))])
def test_fitted_features_can_be_copied(again: Callable[[Any], Any]) -> None:
    features = TextFeatures(min_df=1).fit(TEXTS)
    X = features.transform(TEXTS)
    copied = again(features)
    matrices_alike(copied.transform(TEXTS), X)
    assert copied.feature_names_ == features.feature_names_


def test_fitting_again_forgets_the_first_vocabulary() -> None:
    features = TextFeatures(min_df=1).fit(["red apple"])
    features.transform(["red apple"])
    assert features.feature_names_ == ("apple", "red")
    features.fit(["green sea wide"])
    assert features.feature_names_ == ("green", "sea", "wide")
    assert features.transform(["red sea"]).toarray().tolist() == [[0, 1, 0]]


def test_names_are_not_there_before_fit() -> None:
    assert not hasattr(TextFeatures(), "feature_names_")


def test_lengths_may_be_numpy_s_and_longer_than_any_text() -> None:
    features = TextFeatures(ngrams=(np.int64(1), 20), min_length=np.int64(2), min_df=1)  # type: ignore[arg-type]
    features.fit(["red green sea"])
    assert features.feature_names_ == ("green", "green sea", "red", "red green", "red green sea", "sea")
    with pytest.raises(InvalidInput, match="min_length"):
        TextFeatures(min_length=10**30).fit(["red"])


def test_threads_are_not_part_of_what_is_saved() -> None:
    assert "n_jobs" not in TextFeatures(min_df=1, n_jobs=3).fit(["red apple"]).to_state().params
