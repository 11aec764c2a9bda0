"""`also` and `only` of `TextFeatures.fit`: features that given texts, such as label names, keep or limit."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.errors import InvalidInput
from longtail.text import TextFeatures, tokenize

TEXTS = ["red apple", "red sky", "blue sky", "red sea"]
WORDS = st.lists(st.sampled_from(["aa", "bb", "cc", "dd", "ee", "ff", "gg"]), max_size=5).map(" ".join)


@given(st.lists(WORDS, min_size=1), st.lists(WORDS), st.sampled_from([None, 3]))
def test_the_vocabulary_is_what_is_frequent_and_what_is_named(
    texts: list[str], names: list[str], subwords: int | None
) -> None:
    texts = [*texts, "aa zz", "aa zz"]
    frequent = TextFeatures(subwords=subwords).fit(texts)
    named = set(TextFeatures(min_df=1, subwords=subwords).fit([*names, "yy"]).feature_names_) - {"yy", "<yy"}
    both = TextFeatures(subwords=subwords)
    X = both.fit_transform(texts, also=names)
    assert both.feature_names_ == tuple(sorted({*frequent.feature_names_, *named}))
    assert X.shape == (len(texts), len(both.feature_names_))
    assert abs(X - both.transform(texts)).max() == 0
    fitted = TextFeatures(subwords=subwords).fit(texts, also=iter(names))
    assert fitted.feature_names_ == both.feature_names_
    if named:
        limited = TextFeatures(subwords=subwords)
        Z = limited.fit_transform(texts, only=iter(names))
        assert limited.feature_names_ == tuple(sorted(named))
        assert abs(Z - limited.transform(texts)).max() == 0


def test_frequencies_are_those_of_the_texts() -> None:
    features = TextFeatures().fit(TEXTS, also=["red sea", "red pear", "red pear"])
    assert features.feature_names_ == ("pear", "red", "sea", "sky")
    df = [sum(name in tokenize(text) for text in TEXTS) for name in features.feature_names_]
    assert df == [0, 3, 1, 2]
    np.testing.assert_allclose(features.idf_, np.log(5 / (1 + np.array(df))) + 1, rtol=1e-6)


def test_named_texts_without_words_change_nothing() -> None:
    expected, features = TextFeatures(), TextFeatures()
    X, Z = expected.fit_transform(TEXTS), features.fit_transform(TEXTS, also=["", "-"])
    assert features.feature_names_ == expected.feature_names_
    assert (X.data.tobytes(), X.indices.tobytes()) == (Z.data.tobytes(), Z.indices.tobytes())


def test_max_df_applies_to_named_features() -> None:
    assert TextFeatures(max_df=2).fit(TEXTS, also=["red pear"]).feature_names_ == ("pear", "sky")
    assert TextFeatures(max_df=2).fit(TEXTS, only=["red pear"]).feature_names_ == ("pear",)


def test_max_features_keeps_named_features_first() -> None:
    for most, expected in [(1, ("sea",)), (2, ("pear", "sea")), (3, ("pear", "red", "sea"))]:
        assert TextFeatures(max_features=most).fit(TEXTS, also=["sea pear"]).feature_names_ == expected
    everywhere = ["red sea", "red sky"]
    assert TextFeatures(max_features=1).fit(everywhere, also=["zebra"]).feature_names_ == ("zebra",)


def test_a_text_without_named_words_is_an_empty_row() -> None:
    X = TextFeatures().fit_transform(TEXTS, only=["sea apple"])
    assert np.diff(X.indptr).tolist() == [1, 0, 0, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"also": ["a b"], "only": ["a b"]}, "also and only are both given"),
        ({"only": []}, "only contain no"),
        ({"only": ["-"]}, "only contain no"),
        ({"also": "sea"}, "also is one single text"),
        ({"also": ["sea", 7]}, "row 1 of also is 7"),
        ({"only": ["sea", None]}, "row 1 of only is None"),
    ],
)
def test_wrong_arguments_are_named(arguments, message) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        TextFeatures().fit(TEXTS, **arguments)


def test_only_features_in_too_many_texts_say_which_setting_to_change() -> None:
    with pytest.raises(InvalidInput, match="max_df=2") as raised:
        TextFeatures(max_df=2).fit(TEXTS, only=["red"])
    assert "min_df" not in str(raised.value)
