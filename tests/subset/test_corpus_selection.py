"""`select_from_corpus`: the selection of a corpus, its defaults, and what each label explains."""

from __future__ import annotations

import numpy as np
import pytest

from longtail.data import Corpus
from longtail.errors import InvalidInput
from longtail.ridge import label_predictability
from longtail.subset import label_affinity, select_from_corpus, select_labels
from longtail.text import TextFeatures

TEXTS = ["red apples", "ripe pears", "grey sky", "heavy rain", "red pears", "grey rain"]
LABELS = [["fruit", "apple"], ["fruit", "pear"], ["sky"], ["sky", "rain"], ["fruit", "pear"], ["sky", "rain"]]


@pytest.fixture
def corpus():
    return Corpus.from_lists(TEXTS, LABELS)


def test_the_selection_is_that_of_select_labels(corpus):
    features = TextFeatures(min_df=1)
    found = select_from_corpus(corpus, 3, features, affinity="conditional", penalty=0.5)
    scores = label_predictability(features.fit_transform(TEXTS), corpus.labels)
    affinity = label_affinity(corpus.labels, "conditional")
    expected = select_labels(corpus.labels, 3, scores=scores, affinity=affinity, penalty=0.5)
    assert found.subset.criterion == "predictable cut"
    assert found.subset.labels.tolist() == expected.labels.tolist()
    assert found.most_frequent.labels.tolist() == select_labels(corpus.labels, 3, criterion="frequency").labels.tolist()
    np.testing.assert_array_equal(found.scores, scores)


def test_labels_name_what_they_explain_best_first(corpus):
    found = select_from_corpus(corpus, 2, criterion="penalised-cut")
    fruit, rain = found.labels(n_explained=2)
    assert (fruit.label, rain.label) == ("fruit", "rain")
    assert [name for name, _ in fruit.explains] == ["pear", "apple"]
    assert (fruit.rows, fruit.predictability) == (3, None)
    assert [len(label.explains) for label in found.labels(0)] == [0, 0]


def test_the_default_number_is_all_of_few_labels(corpus):
    assert len(select_from_corpus(corpus, criterion="frequency").subset) == 5


def test_empty_texts_are_selected_by_labels_alone(caplog):
    empty = Corpus.from_lists([" "] * len(TEXTS), LABELS)
    with caplog.at_level("INFO", logger="longtail.subset"):
        assert select_from_corpus(empty, 2).subset.criterion == "penalised cut"
    assert "selecting by penalised cut" in caplog.text
    with pytest.raises(InvalidInput) as raised:
        select_from_corpus(empty, 2, criterion="score")
    assert raised.value.code == "no_features"


def test_errors_have_codes(corpus):
    with pytest.raises(InvalidInput) as raised:
        select_from_corpus(corpus, 6, criterion="cut")
    assert raised.value.code == "too_many_labels"
    with pytest.raises(InvalidInput) as raised:
        select_from_corpus(Corpus.from_lists([], []))
    assert raised.value.code == "no_labels"


@pytest.mark.parametrize(("criterion", "measure"), [("random", "penalised cut"), ("cut", "cut")])
def test_baselines_are_measured_by_the_penalised_cut(corpus, criterion, measure):
    assert select_from_corpus(corpus, 2, criterion=criterion).subset.measure == measure
