"""`fit_features`: defaults by the kind of corpus, and mismatches."""

from __future__ import annotations

import numpy as np
import pytest

from longtail.data import Corpus
from longtail.errors import InvalidInput
from longtail.text import RowScaling, TextFeatures, fit_features


def test_texts_get_words_of_two_texts_by_default(caplog):
    corpus = Corpus.from_lists(["red apples", "red roses"], [["a"], ["b"]])
    with caplog.at_level("INFO", logger="longtail.text"):
        features, X = fit_features(corpus)
    assert isinstance(features, TextFeatures)
    assert X.shape == (2, 1)
    assert "with few texts, min_df=1 may be better" in caplog.text
    assert "features: 1, of which a row has 1 on average" in caplog.text


def test_vectors_are_scaled_by_default_and_the_features_given_stay_unfitted():
    corpus = Corpus(labels=np.eye(2), label_names=["a", "b"], features=[[3.0, 4.0], [0.0, 2.0]])
    assert fit_features(corpus)[1].toarray().tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0.0, 1.0]]
    given = RowScaling(unit=False)
    fitted, X = fit_features(corpus, given)
    assert X.toarray().tolist() == [[3.0, 4.0], [0.0, 2.0]]
    assert fitted is not given
    assert not hasattr(given, "n_features_in_")


def test_features_of_the_other_kind_are_refused():
    corpus = Corpus(labels=np.eye(2), label_names=["a", "b"], features=np.eye(2))
    with pytest.raises(InvalidInput, match="TextFeatures takes texts; the corpus has only features"):
        fit_features(corpus, TextFeatures())
