"""Before the tagger trains: rows are held out, useless labels and groups are dropped, and all of it is told."""

from __future__ import annotations

import json
import logging

import numpy as np
import pytest
from sklearn.base import clone

from longtail import Corpus, GroupedCorpus, LabelTree, Ridge, RidgeCV, Tagger, TextFeatures
from longtail.choice import LearnerOptions
from longtail.errors import InvalidInput
from longtail.tagger import TagExplanation, hold_out
from longtail.tagger.preparation import with_labels_that_occur
from longtail.text import FeatureOptions

TEXTS = ["red apples", "green apples", "blue sky", "grey sky", "red sky", "green sky"]
LABELS = [["fruit"], ["fruit"], ["weather"], ["weather"], ["weather"], ["weather"]]


@pytest.fixture
def corpus() -> Corpus:
    return Corpus.from_lists(TEXTS, LABELS)


def test_labels_without_rows_are_dropped_and_told(corpus, caplog):
    wider = corpus.with_label_names([*corpus.label_names, "never"])
    with caplog.at_level(logging.INFO, "longtail"):
        tagger = Tagger(FeatureOptions(min_df=1), Ridge()).fit_corpus(wider)
    assert tagger.label_names_ == ("fruit", "weather")
    assert "dropped 1 label without rows" in caplog.messages


def test_labels_with_texts_stay_only_if_asked_for(corpus, caplog):
    described = corpus.with_label_texts({"fruit": "fruit", "music": "music"}).with_label_names(
        ["fruit", "weather", "never", "music"]
    )
    assert with_labels_that_occur(described).label_names == ("fruit", "weather")
    with caplog.at_level(logging.INFO, "longtail"):
        kept = with_labels_that_occur(described, keep_texts=True)
    assert kept.label_names == ("fruit", "weather", "music")
    assert kept.label_texts == (("fruit",), (), ("music",))
    assert caplog.messages == ["dropped 1 label without rows and texts"]
    assert with_labels_that_occur(kept, keep_texts=True) is kept
    assert with_labels_that_occur(corpus, keep_texts=True) is corpus


@pytest.mark.parametrize("labels", [[[]] * 6, [["only"]] + [[]] * 5])
def test_rows_without_any_label_teach_nothing(labels):
    corpus = Corpus.from_lists(TEXTS, labels).with_label_names(["other"])
    with pytest.raises(InvalidInput) as caught:
        Tagger().fit_corpus(corpus)
    assert caught.value.code == "no_labels"


def test_rows_are_held_out_evaluated_and_then_learned_from(corpus, caplog):
    tagger = Tagger(FeatureOptions(min_df=1))
    with caplog.at_level(logging.INFO, "longtail"):
        tagger.fit_corpus(corpus, holdout=0.34, random_state=1)
    assert (tagger.n_rows_, tagger.holdout_report_.n_rows) == (6, 2)
    assert caplog.messages[0] == "holding out 2 rows, training on 4"
    assert "training again on all 6 rows" in caplog.messages
    rest, held_out = hold_out(corpus, 0.34, seed=1)
    alone = Tagger(FeatureOptions(min_df=1)).fit_corpus(rest)
    assert tagger.holdout_report_ == alone.evaluate(held_out)
    assert tagger.fit_corpus(corpus, holdout=0.34, refit=False, random_state=1).n_rows_ == 4
    assert tagger.fit_corpus(corpus).holdout_report_ is None


@pytest.mark.parametrize("share", [0.01, 0.99])
def test_a_share_that_leaves_a_part_empty_is_refused(corpus, share):
    with pytest.raises(InvalidInput, match="leaves one part empty") as caught:
        Tagger().fit_corpus(corpus, holdout=share)
    assert caught.value.code == "empty_holdout"


@pytest.mark.parametrize("share", [0.0, 1.0, 2, -0.5, float("nan"), "a quarter"])
def test_what_is_not_a_share_is_refused(corpus, share):
    with pytest.raises(InvalidInput, match="expected a share between 0 and 1"):
        hold_out(corpus, share)


@pytest.mark.parametrize("seed", [-1, None, 0.5, 2**64])
def test_what_is_not_a_seed_is_refused(corpus, seed):
    with pytest.raises(InvalidInput, match="random_state is"):
        hold_out(corpus, 0.5, seed)


def test_a_split_has_every_row_once_and_keeps_their_order(corpus):
    rest, held_out = hold_out(corpus, 0.5, seed=3)
    assert sorted([*rest.texts, *held_out.texts]) == sorted(TEXTS)
    for part in (rest, held_out):
        assert list(part.texts) == [text for text in TEXTS if text in part.texts]


def test_options_choose_the_learner_and_the_reasons_are_kept(corpus):
    assert isinstance(Tagger().fit_corpus(corpus).estimator_, RidgeCV)
    tagger = Tagger(estimator=LearnerOptions(n_trees=2, n_jobs=1)).fit_corpus(corpus)
    assert isinstance(tagger.estimator_, LabelTree)
    assert tagger.reasons_ == ["learner: label tree with negatives=beam, as n_trees is given"]
    assert Tagger(estimator=Ridge()).fit_corpus(corpus).reasons_ == []


def test_options_that_contradict_each_other_are_refused_before_anything_is_learned(corpus):
    with pytest.raises(InvalidInput) as caught:
        Tagger(features=object(), estimator=LearnerOptions("ridge", n_trees=2)).fit_corpus(corpus)
    assert caught.value.code == "conflicting_parameters"


def test_a_tagger_with_options_can_be_cloned(corpus):
    tagger = Tagger(FeatureOptions(min_df=1), LearnerOptions(alpha=0.5))
    again = clone(tagger)
    assert again.get_params() == tagger.get_params()
    assert again.fit_corpus(corpus).predict(TEXTS) == tagger.fit_corpus(corpus).predict(TEXTS)
    assert tagger.estimator == LearnerOptions(alpha=0.5)


def test_given_features_are_not_changed(corpus):
    features = TextFeatures(min_df=1)
    Tagger(features, Ridge()).fit_corpus(corpus)
    assert not hasattr(features, "idf_")


@pytest.mark.parametrize(
    ("options", "name"), [({"log": True}, "log"), ({"normalize": False}, "normalize"), ({"ngrams": (1, 2)}, "ngrams")]
)
def test_a_feature_option_without_effect_is_refused(corpus, options, name):
    rows = Corpus(labels=corpus.labels, label_names=corpus.label_names, features=np.eye(6))
    with pytest.raises(InvalidInput) as caught:
        Tagger(FeatureOptions(**options)).fit_corpus(rows if name == "ngrams" else corpus)
    assert (caught.value.code, caught.value.name) == ("idle_parameter", name)


def test_labels_of_groups_without_rows_are_dropped(caplog):
    texts = [[*TEXTS[:2], *TEXTS[2:4]], TEXTS[4:], []]
    corpus = GroupedCorpus.from_lists(texts, [["fruit", "weather"], ["weather"], ["lost"]])
    with caplog.at_level(logging.INFO, "longtail"):
        tagger = Tagger(FeatureOptions(min_df=1), Ridge()).fit_groups(corpus, "eagle")
    assert tagger.label_names_ == ("fruit", "weather")
    assert any(message.startswith("1 group has labels but no rows, for example ") for message in caplog.messages)
    assert "dropped 1 label that occur in no group with rows" in caplog.messages


def test_scores_below_the_threshold_are_left_out(corpus):
    tagger = Tagger(FeatureOptions(min_df=1), Ridge()).fit_corpus(corpus)
    [tags] = tagger.predict(["red sky"], k=2)
    assert len(tags) == 2
    assert tagger.predict(["red sky"], k=2, threshold=tags[0].score) == [tags[:1]]
    assert tagger.predict(["red sky"], k=2, threshold=tags[0].score + 1) == [[]]


def test_an_explanation_has_plain_values(corpus):
    tagger = Tagger(FeatureOptions(min_df=1), LabelTree(leaf_size=1)).fit_corpus(corpus)
    found = tagger.explain("red sky", "weather")
    assert isinstance(found, TagExplanation)
    told = found.to_dict()
    assert set(told) == {"label", "score", "margin", "intercept", "reasons", "steps", "evidence", "n_rows"}
    assert [step["tree"] for step in told["steps"]] == [1, 1]
    assert set(told["steps"][0]) == {
        "tree", "name", "n_labels", "frequent", "probability", "margin", "intercept", "reasons",
    }  # fmt: skip
    assert json.loads(json.dumps(told)) == told
    assert told["reasons"][0] == found.reasons[0]._asdict()


@pytest.mark.parametrize("kind", ["mapping", "path", "str"])
def test_label_texts_reach_the_corpus_to_train_on(kind, tmp_path, monkeypatch):
    path = tmp_path / "labels.tsv"
    path.write_text("1\tfruit\n2\tmusic\n", encoding="utf-8")
    given = {"mapping": {"1": ["fruit"], "2": "music"}, "path": path, "str": str(path)}[kind]
    seen = []
    monkeypatch.setattr(Tagger, "fit_corpus", lambda self, corpus: seen.append(corpus) or self)
    Tagger().fit(TEXTS, LABELS, label_texts=given)
    assert seen[0].label_names == ("fruit", "weather", "music")
    assert seen[0].label_texts == (("fruit",), (), ("music",))


def test_labels_without_rows_are_not_learned_for_their_texts():
    plain = Tagger(FeatureOptions(min_df=1), Ridge()).fit(TEXTS, LABELS)
    described = Tagger(FeatureOptions(min_df=1), Ridge()).fit(TEXTS, LABELS, label_texts={"fruit": "a", "music": "b"})
    assert described.label_names_ == plain.label_names_
    assert described.predict(TEXTS) == plain.predict(TEXTS)


@pytest.mark.parametrize("label_texts", [["fruit"], 3, {"other": "text"}, {}])
def test_label_texts_that_do_not_fit_are_refused(label_texts):
    with pytest.raises(InvalidInput):
        Tagger().fit(TEXTS, LABELS, label_texts=label_texts)
