"""The tagger: texts and names in, names and scores out."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import BaseEstimator, clone

import longtail
from longtail import (
    AggregatedClassifier,
    Corpus,
    GroupedCorpus,
    LabelTree,
    OneVsRest,
    Ridge,
    RidgeCV,
    Tagger,
    TextFeatures,
)
from longtail.errors import InvalidInput, ModelFormatError
from longtail.labels import from_parents
from longtail.store import State, read_model, write_model
from longtail.subset import LabelSubsetClassifier

TEXTS = [
    "red apples and green pears",
    "green apples from the orchard",
    "a clear blue sky at noon",
    "a grey sky and heavy rain",
    "pears and rain",
    "rain over the orchard at noon",
]
LABELS = [["fruit"], ["fruit", "place"], ["weather"], ["weather"], ["fruit", "weather"], ["weather", "place"]]


@pytest.fixture
def tagger():
    return Tagger(TextFeatures(min_df=1), Ridge(0.3)).fit(TEXTS, LABELS)


def test_new_texts_get_fitting_names(tagger):
    [[best, *_], [other, *_]] = tagger.predict(["blue sky and rain", "apples and pears"], k=2)
    assert best.label == "weather"
    assert other.label == "fruit"
    assert best.score > 0


def test_names_can_be_allowed_and_denied(tagger):
    [tags] = tagger.predict(["rain"], k=3, allow=["fruit", "weather"], deny=["weather"])
    assert [tag.label for tag in tags] == ["fruit"]
    with pytest.raises(InvalidInput, match="no label 'nonsense'"):
        tagger.predict(["rain"], deny=["nonsense"])
    with pytest.raises(InvalidInput, match="list of label names"):
        tagger.predict(["rain"], allow="fruit")


def test_tags_have_a_score_of_at_least_the_threshold(tagger):
    [found] = tagger.predict(["red apples"], k=3)
    assert tagger.tag(["red apples"], k=3) == [[tag for tag in found if tag.score]]
    assert tagger.tag(["red apples"], k=3, threshold=found[1].score) == [found[:2]]
    assert tagger.tag(["red apples"], k=3, deny=[found[0].label])[0][0].label == found[1].label


def test_a_label_that_the_model_does_not_know_has_its_own_code(tagger):
    with pytest.raises(InvalidInput) as raised:
        tagger.predict(["red apples"], allow=["vegetable"])
    assert (raised.value.code, raised.value.name) == ("unknown_label", "vegetable")


def test_labels_are_found_by_name_in_a_fitted_and_in_a_loaded_tagger(tagger, tmp_path):
    tagger.save(tmp_path / "model")
    for model in (tagger, longtail.load(tmp_path / "model")):
        found = model.find_labels()
        assert [each.label for each in found] == [
            model.label_names_[label] for label in model.most_frequent(np.arange(len(model.label_names_)), 20)
        ]
        name = found[0].label
        assert found[0].count == model.label_counts_[list(model.label_names_).index(name)]
        assert model.find_labels(prefix=name.upper()) == model.find_labels(contains=name) == found[:1]
        assert model.find_labels(prefix="zzz") == model.find_labels(prefix="zzz", contains=name) == []
        assert model.find_labels(limit=1) == found[:1]


def test_an_explanation_has_the_same_keys_for_a_label_and_a_step():
    texts, labels = ["red apples", "green apples", "blue sky", "grey sky"], [["a"], ["b"], ["c"], ["d"]]
    tagger = Tagger(TextFeatures(min_df=1), LabelTree(leaf_size=2, random_state=0)).fit(texts, labels)
    found = tagger.explain("red apples", "a").to_dict()
    assert set(found) == {"label", "score", "margin", "intercept", "reasons", "steps", "evidence", "n_rows"}
    step = {"tree", "name", "n_labels", "frequent", "probability", "margin", "intercept", "reasons"}
    assert all(set(each) == step for each in found["steps"])
    assert set(found["reasons"][0]) == set(found["steps"][0]["reasons"][0]) == {"feature", "contribution"}
    assert [len(step["reasons"]) for step in tagger.explain("red apples", "a").to_dict(1)["steps"]] == [1, 1]


def test_a_text_without_a_known_word_still_gets_an_answer(tagger):
    [tags] = tagger.predict(["zebra"], k=2)
    assert [tag.score for tag in tags] == [0, 0]


def test_words_explain_a_score_exactly(tagger):
    text = "heavy rain and pears"
    [[best, *_]] = tagger.predict([text], k=1)
    found = tagger.explain(text, best.label)
    assert found.score == pytest.approx(best.score, abs=1e-6)
    assert sum(reason.contribution for reason in found.reasons) + found.intercept == pytest.approx(found.score)
    assert {reason.feature for reason in found.reasons} <= {"heavy", "rain", "and", "pears"}
    assert found.margin == found.score
    assert found.steps == ()


def test_a_tree_explains_its_path_by_name(tmp_path):
    names = ["fruit", "place", "weather"]
    taxonomy = from_parents({"fruit": "grown", "place": "outside", "weather": "outside"}, 3, names)
    Tagger(TextFeatures(min_df=1), LabelTree(hierarchy=taxonomy, prune=0.0)).fit(TEXTS, LABELS).save(tmp_path / "model")
    found = longtail.load(tmp_path / "model").explain("heavy rain at noon", "place")
    assert [(step.name, step.n_labels, step.frequent) for step in found.steps] == [
        ("outside", 2, ("weather", "place")),
        ("place", 1, ("place",)),
    ]
    for step in found.steps:
        assert sum(reason.contribution for reason in step.reasons) + step.intercept == pytest.approx(step.margin)
    assert found.margin == pytest.approx(sum(step.margin for step in found.steps))
    assert found.score == pytest.approx(np.prod([step.probability for step in found.steps]), abs=1e-6)
    assert sum(reason.contribution for reason in found.reasons) + found.intercept == pytest.approx(found.margin)


def test_labels_explained_together_are_explained_as_alone(tagger):
    text = "heavy rain and pears"
    assert tagger.explain_each(text, ["weather", "fruit"]) == [
        tagger.explain(text, name) for name in ("weather", "fruit")
    ]
    assert tagger.explain_each(text, []) == []


@given(st.lists(st.integers(0, 3), min_size=3, max_size=3), st.lists(st.integers(0, 2), unique=True), st.integers(0, 4))
def test_the_most_frequent_labels_come_first(counts, labels, limit):
    tagger = Tagger()
    tagger.label_counts_ = np.array(counts)
    found = tagger.most_frequent(np.array(labels, dtype=np.int64), limit).tolist()
    assert found == sorted(labels, key=lambda label: -counts[label])[:limit]


def test_the_steps_of_several_trees_end_at_the_label():
    found = (
        Tagger(TextFeatures(min_df=1), LabelTree(leaf_size=1, n_trees=2)).fit(TEXTS, LABELS).explain("rain", "weather")
    )
    assert [(step.tree, step.n_labels) for step in found.steps] == [(1, 1), (1, 1), (2, 1), (2, 1)]
    assert [step.name for step in found.steps[1::2]] == ["weather", "weather"]
    assert all(step.name.startswith("node ") for step in found.steps[::2])


def test_a_saved_tagger_answers_alike(tagger, tmp_path):
    tagger.save(tmp_path / "model")
    again = longtail.load(tmp_path / "model")
    assert again.predict(TEXTS, k=3) == tagger.predict(TEXTS, k=3)
    assert again.label_names_ == ("fruit", "place", "weather")


def test_rows_of_features_do_as_well_as_texts(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.random((30, 6))
    corpus = Corpus(labels=(X[:, :2] > 0.5).astype(int), label_names=["one", "two"], features=X)
    tagger = Tagger().fit_corpus(corpus)
    assert not tagger.takes_texts
    tagger.save(tmp_path / "model")
    assert longtail.load(tmp_path / "model").predict(X, k=1) == tagger.predict(X, k=1)
    assert tagger.evaluate(corpus, ks=(1,))["P@1"] > 0.7
    with pytest.raises(InvalidInput, match="takes features"):
        tagger.evaluate(Corpus.from_lists(["a"], [["one"]]))


def test_labels_that_training_never_saw_count_as_missed(tagger):
    known = Corpus.from_lists(["heavy rain"], [["weather"]])
    more = Corpus.from_lists(["heavy rain"], [["weather", "never seen"]])
    assert tagger.evaluate(known, ks=(1, 3))["R@3"] == 1
    report = tagger.evaluate(more, ks=(1, 3))
    assert report["R@3"] == 0.5
    assert {group.name for group in report.groups} >= {"unseen"}


def test_rows_to_judge_on_have_the_labels_of_the_model_first(tagger, tmp_path):
    tagger.save(tmp_path / "model")
    corpus = Corpus.from_lists(["xyzzy", "rain"], [["new", "weather"], ["fruit", "newer"]])
    for model in (tagger, longtail.load(tmp_path / "model")):
        aligned = model.align(corpus)
        assert aligned.label_names == ("fruit", "place", "weather", "new", "newer")
        assert aligned.labels.toarray().tolist() == [[0, 0, 1, 1, 0], [1, 0, 0, 0, 1]]
        assert aligned.label_counts.tolist() == [3, 2, 4, 0, 0]
        assert np.diff(aligned.features.indptr).tolist() == [0, 1]


def test_a_second_fit_forgets_the_names_of_the_first(tagger):
    tagger.predict(["rain"], deny=["weather"])
    tagger.fit(TEXTS, [["one"], ["two"]] * 3)
    assert tagger.explain("rain", "two").label == "two"
    with pytest.raises(InvalidInput, match="no label 'weather'"):
        tagger.explain("rain", "weather")


def test_labels_given_as_a_text_are_not_taken_letter_by_letter():
    tagger = Tagger(TextFeatures(min_df=1), Ridge())
    assert tagger.fit(["apples", "sky"], ["fruit", "weather"]).label_names_ == ("fruit", "weather")
    with pytest.raises(InvalidInput, match=r"row 1 are the single text 'weather'; expected a list: \['weather'\]"):
        tagger.fit(["apples", "sky"], [["fruit"], "weather"])


def test_nothing_to_learn_from_is_an_error():
    with pytest.raises(InvalidInput, match="no rows to learn from"):
        Tagger().fit([], [])
    with pytest.raises(InvalidInput, match="2 texts for 1"):
        Tagger().fit(["a", "b"], [["x"]])


def changed(state, **changes):
    fields = {name: getattr(state, name) for name in ("kind", "params", "facts", "arrays", "parts")}
    return State(**{**fields, **changes})


@pytest.mark.parametrize(
    "spoil",
    [
        lambda s: changed(s, kind="Unheard"),
        lambda s: changed(s, parts={}),
        lambda s: changed(s, parts={**s.parts, "estimator": s.parts["features"]}),
        lambda s: changed(s, arrays={**s.arrays, "label_names": ("a",)}),
        lambda s: changed(s, arrays={**s.arrays, "label_counts": np.array([1, -2, 3])}),
        lambda s: changed(s, arrays={**s.arrays, "label_counts": np.array([1.0, 2.0, 3.0])}),
        lambda s: changed(s, facts={"n_labels": 3, "n_rows": 0}),
        lambda s: changed(s, facts={}),
        lambda s: changed(s, parts={**s.parts, "estimator": Ridge().fit([[1.0]], [[1, 0, 0]]).to_state()}),
    ],
)
def test_a_tagger_whose_parts_contradict_each_other_is_not_loaded(tagger, tmp_path, spoil):
    tagger.save(tmp_path / "model")
    write_model(spoil(read_model(tmp_path / "model")), tmp_path / "spoilt")
    with pytest.raises(ModelFormatError):
        longtail.load(tmp_path / "spoilt")


def test_label_names_that_repeat_are_noticed_when_a_label_is_asked_for_by_name(tagger, tmp_path):
    tagger.save(tmp_path / "model")
    state = read_model(tmp_path / "model")
    write_model(changed(state, arrays={**state.arrays, "label_names": ("a", "a", "b")}), tmp_path / "spoilt")
    with pytest.raises(ModelFormatError, match="repeat"):
        longtail.load(tmp_path / "spoilt").predict(["red"], allow=["a"])


@pytest.mark.parametrize(
    "spoil",
    [
        lambda s: changed(s, params={**s.params, "alpha": -1}),
        lambda s: changed(s, params={**s.params, "surprise": 1}),
        lambda s: changed(s, facts={**s.facts, "n_labels": 4}),
        lambda s: changed(s, facts={**s.facts, "solver": 3}),
        lambda s: changed(s, facts={**s.facts, "n_rows": 0}),
        lambda s: changed(s, arrays={**s.arrays, "coef": s.arrays["coef"].astype(np.float64)}),
        lambda s: changed(s, arrays={k: v for k, v in s.arrays.items() if k != "intercept"}),
        lambda s: changed(s, arrays={**s.arrays, "cross": s.arrays["scatter"]}),
        lambda s: changed(s, arrays={**s.arrays, "scatter": s.arrays["scatter"].astype(np.float32)}),
        lambda s: changed(s, arrays={**s.arrays, "gram": s.arrays["scatter"]}),
        lambda s: changed(s, arrays={**s.arrays, "centre": np.zeros(2, np.float32)}),
        lambda s: changed(
            s,
            arrays={**s.arrays, "centre": np.full(2, np.nan, np.float32), "centre_scores": s.arrays["intercept"]},
        ),
    ],
)
def test_a_ridge_whose_parts_contradict_each_other_is_not_loaded(tmp_path, spoil):
    model = Ridge(updatable=True).fit([[1.0, 0.0], [0.0, 1.0]], [[1, 0, 0], [0, 1, 0]])
    write_model(spoil(model.to_state()), tmp_path / "spoilt")
    with pytest.raises(ModelFormatError):
        longtail.load(tmp_path / "spoilt")


@pytest.mark.parametrize(
    ("texts", "labels", "reason"),
    [
        (TEXTS, [*LABELS[:-1], None], "the labels of row 5 are None; expected a list of names, \\[\\] for none"),
        (TEXTS, [*LABELS[:-1], 7], "the labels of row 5 are 7"),
        (TEXTS, [*LABELS[:-1], [["nested"]]], "row 5 has label \\['nested'\\]"),
        (TEXTS, None, "labels is None"),
        (None, LABELS, "texts is None"),
        (TEXTS[:-1], LABELS, "5 texts for 6 lists of labels"),
        (np.eye(6), LABELS, "texts has 2 dimensions"),
        (sparse.csr_array(np.eye(6)), LABELS, "texts has 2 dimensions"),
        ("red apples", LABELS, "texts is one single text"),
        ([*TEXTS[:-1], b"bytes"], LABELS, "row 5 of texts is b'bytes'"),
    ],
)
def test_what_is_no_list_of_texts_and_labels_is_named(texts, labels, reason):
    with pytest.raises(InvalidInput, match=reason):
        Tagger(TextFeatures(min_df=1), Ridge()).fit(texts, labels)


def test_texts_and_labels_may_be_generated(tagger):
    generated = Tagger(TextFeatures(min_df=1), Ridge(0.3)).fit(
        (text for text in TEXTS), ((label for label in labels) for labels in LABELS)
    )
    assert generated.predict(text for text in TEXTS) == tagger.predict(TEXTS)


@pytest.mark.parametrize("k", [10**12, 2**63, np.int64(100)])
def test_more_labels_than_there_are_is_all_of_them(tagger, k):
    assert tagger.predict(TEXTS, k) == tagger.predict(TEXTS, 3)


def test_an_estimator_that_cannot_rank_labels_is_refused_before_it_learns():
    class Forest(BaseEstimator):
        def fit(self, X, Y):
            raise AssertionError("it was trained")

    grouped = GroupedCorpus.from_lists([TEXTS[:3], TEXTS[3:]], [["fruit"], ["weather"]])
    for fit in (lambda tagger: tagger.fit(TEXTS, LABELS), lambda tagger: tagger.fit_groups(grouped)):
        with pytest.raises(InvalidInput, match="the estimator is a Forest, not a longtail"):
            fit(Tagger(TextFeatures(min_df=1), Forest()))
        with pytest.raises(InvalidInput, match="which learns from groups"):
            fit(Tagger(TextFeatures(min_df=1), AggregatedClassifier()))


def test_a_loaded_model_has_the_parameters_it_was_trained_with(tagger, tmp_path):
    tagger.save(tmp_path / "model")
    loaded = longtail.load(tmp_path / "model")
    assert loaded.get_params()["estimator__alpha"] == 0.3
    assert loaded.set_params(estimator__n_jobs=1).estimator_.n_jobs == 1
    assert loaded.predict(TEXTS) == tagger.predict(TEXTS)
    assert clone(loaded).fit(TEXTS, LABELS).predict(TEXTS) == tagger.predict(TEXTS)


def test_parameters_inside_other_loaded_models_can_be_set(tmp_path):
    X, Y = np.eye(6), np.eye(6)[:, [0, 1, 2, 0, 1, 2]]
    grouped = AggregatedClassifier(Ridge(), strategy="eagle-0").fit(X, np.eye(6), Y)
    for number, model in enumerate((grouped, LabelSubsetClassifier(Ridge(), n_labels=2).fit(X, Y))):
        model.save(tmp_path / str(number))
        loaded = longtail.load(tmp_path / str(number))
        assert loaded.set_params(estimator__n_jobs=1).estimator_.n_jobs == 1
        assert np.array_equal(loaded.predict_topk(X, 2)[0], model.predict_topk(X, 2)[0])


def with_weights(state, value):
    def changed(array):
        if sparse.issparse(array):
            return sparse.csr_array((np.full_like(array.data, value), array.indices, array.indptr), shape=array.shape)
        return np.full_like(array, value)

    return replace(
        state,
        arrays={
            name: changed(array) if name in ("coef", "scales", "mixing") else array
            for name, array in state.arrays.items()
        },
        parts={name: with_weights(part, value) for name, part in state.parts.items()},
    )


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("learner", [Ridge(), LabelTree(), OneVsRest(), RidgeCV(), LabelSubsetClassifier(n_labels=2)])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_no_numbers_give_finite_scores_or_an_error_that_says_so(tmp_path, learner, value):
    Tagger(TextFeatures(min_df=1), learner).fit(TEXTS, LABELS).save(tmp_path / "model")
    write_model(with_weights(read_model(tmp_path / "model"), value), tmp_path / "forged")
    try:
        forged = longtail.load(tmp_path / "forged")
    except ModelFormatError:
        return
    for ask in (lambda: forged.predict(TEXTS), lambda: [[forged.explain(TEXTS[0], "fruit")]]):
        try:
            found = ask()
        except InvalidInput as error:
            assert "not a finite number" in str(error)  # noqa: PT017 - either is right
            continue
        assert all(math.isfinite(tag.score) for tags in found for tag in tags)


def test_a_learner_in_the_place_of_features_is_named():
    with pytest.raises(InvalidInput, match=r"features is a Ridge, a learner; write Tagger\(estimator=Ridge"):
        Tagger(Ridge()).fit(TEXTS, LABELS)


@pytest.mark.parametrize("learner", [Ridge(), Ridge(density=0.9), LabelSubsetClassifier(Ridge(), outliers=0)])
def test_a_label_whose_weights_are_no_numbers_does_not_vanish_silently(learner):
    tagger = Tagger(TextFeatures(min_df=1), learner).fit(TEXTS, LABELS)
    linear = getattr(tagger.estimator_, "estimator_", tagger.estimator_)
    weights = linear.coef_.toarray() if sparse.issparse(linear.coef_) else np.array(linear.coef_)
    weights[:, 0] = np.nan
    linear.coef_ = sparse.csr_array(weights) if sparse.issparse(linear.coef_) else weights
    with pytest.raises(InvalidInput, match="not a finite number"):
        tagger.predict(TEXTS, k=1)
