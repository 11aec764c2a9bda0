"""Subword features: which runs of letters there are, and that they count as words do."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from longtail.text import TextFeatures, tokenize

TEXTS = ["Kulturhus i Ångermanland", "kultur och hus", "hus, kulturer och ånger", "kul"]


def analyze(text: str, length: int = 5) -> list[str]:
    found = tokenize(text)
    for token in tokenize(text):
        marked = "<" + token
        runs = [marked[start : start + length] for start in range(len(marked) - length + 1)]
        found += [run if start == 0 else "~" + run for start, run in enumerate(runs)]
    return found


def names_of(text: str, **settings: Any) -> tuple[str, ...]:
    return TextFeatures(min_df=1, **settings).fit([text]).feature_names_


def test_a_word_has_the_runs_of_its_letters_and_of_its_beginning() -> None:
    assert names_of("kultur", subwords=5) == ("<kult", "kultur", "~kultu", "~ultur")


def test_a_run_is_not_the_word_of_the_same_letters() -> None:
    features = TextFeatures(min_df=1, subwords=5).fit(["kultu", "kultur"])
    X = features.transform(["kultur"]).toarray()[0]
    assert X[features.feature_names_.index("kultu")] == 0
    assert X[features.feature_names_.index("~kultu")] > 0


@pytest.mark.parametrize(
    ("text", "subwords", "expected"),
    [
        ("kul", 5, ("kul",)),
        ("kult", 5, ("<kult", "kult")),
        ("åäöå", 5, ("<åäöå", "åäöå")),
        ("åäö", 5, ("åäö",)),
        ("cafe\u0301", 5, ("<cafe", "cafe\u0301", "~cafe\u0301")),
        ("東京都庁", 3, ("京", "庁", "東", "都")),
        ("20240131", 8, ("20240131", "<2024013", "~20240131")),
        ("a bc", 3, ("<bc", "bc")),
    ],
)
def test_code_points_count_not_bytes(text: str, subwords: int, expected: tuple[str, ...]) -> None:
    assert names_of(text, subwords=subwords) == expected


def test_subwords_join_word_ngrams_and_do_not_cross_words() -> None:
    assert names_of("red sea", ngrams=(2, 2), subwords=4) == ("<red", "<sea", "red sea")


@pytest.mark.parametrize(
    "settings", [{"min_df": 1}, {"min_df": 2}, {"min_df": 1, "max_df": 0.5}, {"min_df": 2, "max_features": 9}]
)
def test_rows_equal_those_of_scikit_learn(settings: dict[str, Any]) -> None:
    ours = TextFeatures(subwords=5, **settings)
    X = ours.fit_transform(TEXTS)
    theirs = TfidfVectorizer(analyzer=analyze, sublinear_tf=True, vocabulary=list(ours.feature_names_))
    np.testing.assert_allclose(X.toarray(), theirs.fit_transform(TEXTS).toarray(), atol=1e-6)
    np.testing.assert_allclose(ours.transform(TEXTS).toarray(), X.toarray())
    df = Counter(name for text in TEXTS for name in set(analyze(text)))
    most = settings.get("max_df", 1.0) * len(TEXTS)
    allowed = sorted(name for name, times in df.items() if settings["min_df"] <= times <= most)
    kept = sorted(allowed, key=lambda name: (-df[name], name))[: settings.get("max_features")]
    assert list(ours.feature_names_) == sorted(kept)


@given(st.lists(st.text(st.characters(), max_size=40), min_size=1, max_size=8), st.integers(3, 20))
def test_words_weigh_the_same_relative_to_each_other(texts: list[str], length: int) -> None:
    texts = [*texts, "one word more"]
    words, both = TextFeatures(min_df=1), TextFeatures(min_df=1, subwords=length)
    X, Z = words.fit_transform(texts), both.fit_transform(texts)
    columns = [both.feature_names_.index(name) for name in words.feature_names_]
    Z = sparse.csr_array(Z[:, columns])
    lengths = np.sqrt((Z.toarray() ** 2).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(Z.toarray(), X.toarray() * lengths, atol=1e-6)
    np.testing.assert_array_equal(both.idf_[columns], words.idf_)
