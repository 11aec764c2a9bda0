"""`fit_features`: defaults by the kind of corpus, and mismatches."""

from __future__ import annotations

import numpy as np
import pytest

from longtail.data import Corpus
from longtail.errors import InvalidInput
from longtail.text import FeatureOptions, RowScaling, TextFeatures, fit_features


def test_texts_get_words_of_two_texts_by_default(caplog):
    corpus = Corpus.from_lists(["red apples", "red roses"], [["a"], ["b"]])
    with caplog.at_level("INFO", logger="longtail.text"):
        features, X = fit_features(None, corpus)
    assert isinstance(features, TextFeatures)
    assert X.shape == (2, 1)
    assert "words that occur in only one text are dropped; min_df=1 (--min-df 1) keeps them" in caplog.text
    assert "features: 1, of which a row has 1 on average" in caplog.text


def test_vectors_are_scaled_by_default_and_the_features_given_stay_unfitted():
    corpus = Corpus(labels=np.eye(2), label_names=["a", "b"], features=[[3.0, 4.0], [0.0, 2.0]])
    assert fit_features(None, corpus)[1].toarray().tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0.0, 1.0]]
    given = RowScaling(unit=False)
    fitted, X = fit_features(given, corpus)
    assert X.toarray().tolist() == [[3.0, 4.0], [0.0, 2.0]]
    assert fitted is not given
    assert not hasattr(given, "n_features_in_")


@pytest.mark.parametrize(("given", "expected"), [(None, None), (0, None), (5, 5)])
def test_no_length_of_subwords_means_none(given, expected):
    corpus = Corpus.from_lists(["red apples", "red roses"], [["a"], ["b"]])
    features, _ = fit_features(FeatureOptions(subwords=given), corpus)
    assert features.subwords == expected


def test_options_apply_to_the_kind_of_the_corpus():
    texts = Corpus.from_lists(["red apples", "red roses"], [["a"], ["b"]])
    assert fit_features(FeatureOptions(ngrams=(1, 2), min_df=1), texts)[1].shape == (2, 5)
    vectors = Corpus(labels=np.eye(2), label_names=["a", "b"], features=[[np.e - 1, 0.0], [0.0, 2.0]])
    X = fit_features(FeatureOptions(log=True, normalize=False), vectors)[1]
    assert X.toarray()[0].tolist() == [pytest.approx(1), 0]


@pytest.mark.parametrize(("name", "value"), [("min_df", 1), ("ngrams", (1, 2)), ("max_features", 3), ("subwords", 0)])
def test_options_of_texts_are_refused_for_vectors(name, value):
    corpus = Corpus(labels=np.eye(2), label_names=["a", "b"], features=np.eye(2))
    with pytest.raises(InvalidInput) as raised:
        fit_features(FeatureOptions(**{name: value}), corpus)
    assert (raised.value.code, raised.value.name) == ("idle_parameter", name)


@pytest.mark.parametrize(("options", "name"), [({"log": True}, "log"), ({"normalize": False}, "normalize")])
def test_options_of_vectors_are_refused_for_texts(options, name):
    with pytest.raises(InvalidInput) as raised:
        fit_features(FeatureOptions(**options), Corpus.from_lists(["red apples"], [["a"]]))
    assert (raised.value.code, raised.value.name) == ("idle_parameter", name)


def test_features_of_the_other_kind_are_refused():
    corpus = Corpus(labels=np.eye(2), label_names=["a", "b"], features=np.eye(2))
    with pytest.raises(InvalidInput, match="the model takes texts; the corpus has only features"):
        fit_features(TextFeatures(), corpus)
