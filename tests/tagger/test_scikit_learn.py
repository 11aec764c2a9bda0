"""The tagger in scikit-learn's and pandas' tools: scores, searches, pipelines, frames."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags

from longtail import LabelTree, OneVsRest, Ridge, Tagger, TextFeatures, load
from longtail.errors import InvalidInput, ModelFormatError
from longtail.store import State, read_model, write_model
from longtail.text import RowScaling

WORDS = {"fruit": ["apple", "pear", "plum"], "weather": ["rain", "sky", "wind"], "music": ["song", "drum", "choir"]}


@pytest.fixture
def rows(rng):
    names = rng.choice(list(WORDS), size=60)
    texts = [" ".join([*rng.choice(WORDS[name], size=3), "and", "the"]) for name in names]
    return texts, names


def tagger(learner=None):
    return Tagger(TextFeatures(min_df=1), learner or OneVsRest())


def test_one_class_for_each_row_makes_a_classifier(rows, tmp_path):
    texts, names = rows
    for y in (names, list(names), names.astype(object)):
        model = tagger().fit(texts, y)
        assert model.classes_.tolist() == ["fruit", "music", "weather"]
        assert (model.predict(texts) == names).all()
        assert model.score(texts, y) == 1
        assert is_classifier(model)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(texts), names)
    assert again.is_single_label_
    assert [[tag.label for tag in tags] for tags in again.predict(texts[:1], k=1)] == [[names[0]]]


def test_classes_that_are_numbers_come_back_as_numbers(rows, tmp_path):
    texts, names = rows
    numbers = np.array([2, 10, -1])[np.unique(names, return_inverse=True)[1]]
    model = tagger().fit(texts, numbers)
    model.save(tmp_path / "model")
    for each in (model, load(tmp_path / "model")):
        assert each.classes_.tolist() == [-1, 2, 10]
        np.testing.assert_array_equal(each.predict(texts), numbers)
        assert each.predict(texts[:1], k=1)[0][0].label == str(numbers[0])


def test_classes_that_are_booleans_come_back_as_booleans(rows, tmp_path):
    texts, names = rows
    truths = names == "fruit"
    for y in (truths, truths.tolist()):
        model = tagger().fit(texts, y)
        model.save(tmp_path / "model")
        for each in (model, load(tmp_path / "model")):
            assert each.classes_.tolist() == [False, True]
            assert each.predict(texts).dtype == bool
            np.testing.assert_array_equal(each.predict(texts), truths)
            assert each.predict(texts[:1], k=1)[0][0].label == str(truths[0])


def test_whole_numbers_in_an_array_of_objects_are_classes_and_dates_are_not(rows):
    texts, names = rows
    numbers = np.unique(names, return_inverse=True)[1]
    for y in (numbers.astype(object), numbers.astype("datetime64[s]")):
        for learner, X in ((OneVsRest(), np.eye(60)), (tagger(), texts)):
            if y.dtype == object:
                assert learner.fit(X, y).classes_.tolist() == [0, 1, 2]
            else:
                with pytest.raises(InvalidInput):
                    learner.fit(X, y)


def test_a_frame_of_texts_is_no_column_of_classes(rows):
    pd = pytest.importorskip("pandas")
    texts, names = rows
    with pytest.raises(InvalidInput, match="pass a single column") as refused:
        tagger().fit(texts, pd.DataFrame({"topic": names}))
    assert refused.value.code == "bad_classes"


def test_names_of_labels_are_plain_texts(rows):
    texts, names = rows
    for y in (names, [[name] for name in names]):
        assert {type(name) for name in tagger().fit(texts, y).label_names_} == {str}


def test_arrow_arrays_are_texts_and_classes(rows):
    pa = pytest.importorskip("pyarrow")
    texts, names = rows
    for wrap in (pa.array, lambda values: pa.chunked_array([values])):
        assert tagger().fit(wrap(texts), wrap(names.tolist())).score(wrap(texts), wrap(names.tolist())) == 1


def test_a_frame_of_features_must_keep_its_columns(rng, tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(rng.random((60, 3)), columns=["a", "b", "c"])
    y = np.where(frame["a"] > frame["b"], "up", "down")
    model = Tagger(estimator=OneVsRest()).fit(frame, y)
    model.save(tmp_path / "model")
    for each in (model, load(tmp_path / "model")):
        assert each.feature_names_in_.tolist() == ["a", "b", "c"]
        assert each.n_features_in_ == 3
        np.testing.assert_array_equal(each.predict(frame), each.predict(frame.to_numpy()))
        for name in ("predict", "predict_proba", "predict_topk", "tag", "score"):
            others = [y] * (name == "score")
            with pytest.raises(InvalidInput, match="column 0 of X is 'c', and Tagger expects 'a'") as refused:
                getattr(each, name)(frame[["c", "b", "a"]], *others)
            assert refused.value.code == "feature_names"
    assert not hasattr(model.fit(frame.to_numpy(), y), "feature_names_in_")
    assert not hasattr(tagger().fit(["red", "blue"], ["a", "b"]), "n_features_in_")


def test_lists_of_one_label_give_one_tag_by_default(rows):
    texts, names = rows
    model = tagger().fit(texts, [[name] for name in names])
    assert model.is_single_label_
    assert not hasattr(model, "classes_")
    assert [[tag.label for tag in tags] for tags in model.predict(texts)] == [[name] for name in names]
    assert len(model.predict(texts[:1], k=2)[0]) == 2
    assert model.tag(texts[:1])[0][0].label == names[0]
    model.fit(texts, [[name, "all"] for name in names])
    assert not model.is_single_label_
    assert {tag.label for tag in model.predict(texts[:1])[0]} == {names[0], "all"}


def test_an_indicator_matrix_names_labels_by_its_columns(rows):
    texts, names = rows
    Y = (names[:, None] == np.array(["fruit", "music", "weather"])).astype(int)
    expected = tagger().fit(texts, names).predict_topk(texts, 3)
    for y in (Y, sparse.csr_array(Y)):
        model = tagger().fit(texts, y)
        assert model.label_names_ == ("0", "1", "2")
        np.testing.assert_array_equal(model.predict_topk(texts, 3)[0], expected[0])
        assert model.score(texts, y) == 1


def test_pandas_columns_are_texts_classes_and_labels(rows):
    pd = pytest.importorskip("pandas")
    texts, names = rows
    frame = pd.DataFrame({"text": texts, "topic": names, "tags": [[name] for name in names]}, index=range(5, 65))
    assert (tagger().fit(frame["text"], frame["topic"]).predict(frame["text"]) == names).all()
    assert tagger().fit(frame["text"], frame["tags"]).label_names_ == ("fruit", "music", "weather")
    dummies = pd.get_dummies(frame["topic"])
    assert tagger().fit(frame["text"], dummies).label_names_ == tuple(dummies.columns)
    with pytest.raises(InvalidInput, match="row 1 of y is"):
        tagger().fit(frame["text"][:2], pd.Series(["fruit", None]))


def test_scores_cross_validation_and_searches_work(rows):
    texts, names = rows
    texts = np.array(texts, dtype=object)
    assert cross_val_score(tagger(), texts, names, cv=3).min() > 0.9
    assert cross_val_score(tagger(), texts, names, cv=3, scoring="f1_macro").min() > 0.9
    assert cross_val_score(tagger(), texts, names, cv=3, scoring="neg_log_loss").min() > -0.5
    assert cross_val_predict(tagger(), texts, names, cv=3).shape == names.shape
    lists = [[name, "all"] for name in names]
    assert cross_val_score(tagger(), list(texts), lists, cv=3).min() > 0.9
    grid = {"features__min_df": [1, 2], "estimator__C": [1e-6, 1.0]}
    search = GridSearchCV(tagger(), grid, cv=3).fit(texts, names)
    assert search.best_params_["estimator__C"] == 1.0
    assert search.best_estimator_.predict(texts[:1])[0] == names[0]
    assert clone(search.best_estimator_).get_params()["estimator__C"] == 1.0


def test_the_score_of_several_labels_is_ndcg(rows):
    texts, names = rows
    model = tagger().fit(texts, [[name, "all"] for name in names])
    assert model.score(texts, [[name, "all"] for name in names]) == 1
    assert 0 < model.score(texts, [["all"]] * len(texts)) <= 1


def test_a_score_weighs_rows(rows):
    texts, names = rows
    wrong = np.where(np.arange(len(names)) < 15, "none", names)
    weights = np.where(np.arange(len(names)) < 15, 3, 1)
    assert tagger().fit(texts, names).score(texts, wrong, sample_weight=weights) == 0.5
    model = tagger().fit(texts, [[name, "all"] for name in names])
    assert model.score(texts, [[name, "all"] for name in wrong], sample_weight=weights < 2) == 1
    with pytest.raises(InvalidInput, match="every weight"):
        model.score(texts, [["all"]] * len(texts), sample_weight=np.zeros(len(texts)))


def test_probabilities_exist_where_they_mean_something(rows):
    texts, names = rows
    model = tagger().fit(texts, names)
    found = model.predict_proba(texts)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_array_equal(model.classes_[found.argmax(axis=1)], names)
    several = tagger().fit(texts, [[name, "all"] for name in names])
    assert several.predict_proba(texts)[:, 0] == pytest.approx(1, abs=0.1)
    assert tagger(Ridge()).fit(texts, names).predict_proba(texts).sum(axis=1) == pytest.approx(1)
    assert not hasattr(tagger(Ridge()).set_params(aim=None).fit(texts, names), "predict_proba")


@pytest.mark.parametrize("aim", ["f1", None])
def test_every_classifier_can_be_scored_by_its_decisions_and_calibrated(aim, rows):
    texts, names = rows
    for y in (names, names == "fruit"):
        model = tagger(Ridge()).set_params(aim=aim).fit(texts, y)
        scores = model.decision_function(texts)
        best = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(int)
        np.testing.assert_array_equal(model.classes_[best], model.predict(texts))
        assert CalibratedClassifierCV(model, cv=3).fit(np.array(texts, dtype=object), y).score(texts, y) == 1
    assert cross_val_score(model, np.array(texts, dtype=object), names == "fruit", cv=3, scoring="roc_auc").min() == 1


def test_a_tagger_is_not_fitted_before_fit_and_says_what_it_takes():
    for use in (tagger().predict, tagger().predict_proba, tagger().decision_function, tagger().tag):
        with pytest.raises(NotFittedError):
            use(["red"])
    assert get_tags(tagger()).input_tags.string
    of_features = get_tags(Tagger(RowScaling(), OneVsRest())).input_tags
    assert (of_features.string, of_features.two_d_array, of_features.sparse) == (False, True, True)


def test_a_tagger_and_its_features_are_parts_of_pipelines(rows):
    pd = pytest.importorskip("pandas")
    texts, names = rows
    lower = FunctionTransformer(lambda texts: [text.lower() for text in texts])
    upper = [text.upper() for text in texts]
    assert Pipeline([("lower", lower), ("tag", tagger())]).fit(upper, names).score(upper, names) == 1
    frame = pd.DataFrame({"title": texts, "body": texts, "length": [len(text) for text in texts]})
    columns = ColumnTransformer(
        [("title", TextFeatures(min_df=1), "title"), ("body", TextFeatures(min_df=1), "body")],
        verbose_feature_names_out=True,
    )
    model = make_pipeline(columns, LabelTree()).fit(frame, names)
    assert (model.predict(frame) == names).all()
    assert columns.fit(frame).get_feature_names_out()[0].startswith("title__")
    joined = make_pipeline(columns, Tagger(estimator=OneVsRest())).fit(frame, names)
    assert (joined.predict(frame) == names).all()


@pytest.mark.parametrize("output", ["default", "pandas"])
def test_set_output_leaves_sparse_features_as_they_are(output, rows):
    pytest.importorskip("pandas")
    texts, names = rows
    assert sparse.issparse(TextFeatures(min_df=1).set_output(transform=output).fit_transform(texts))
    pipeline = make_pipeline(TextFeatures(min_df=1), OneVsRest()).set_output(transform=output)
    assert pipeline.fit(texts, names).score(texts, names) == 1


def test_weights_reach_the_learner(rows):
    texts, names = rows
    weights = np.where(names == "music", 0, 1 + np.arange(len(names)) % 2)
    model = tagger(Ridge()).fit(texts, names, sample_weight=weights)
    assert model.label_names_ == ("fruit", "weather")
    assert model.n_rows_ == int((weights > 0).sum())
    X = model.features_.transform(np.array(texts)[weights > 0])
    Y = (names[weights > 0][:, None] == np.array(["fruit", "weather"])).astype(int)
    expected = Ridge().fit(X, Y, sample_weight=weights[weights > 0])
    np.testing.assert_array_equal(model.estimator_.coef_, expected.coef_)
    with pytest.raises(InvalidInput, match="every weight in sample_weight is zero"):
        tagger().fit(texts, names, sample_weight=0 * weights)
    for bad in ([1], -weights, ["heavy"] * len(names)):
        with pytest.raises(InvalidInput) as raised:
            tagger().fit(texts, names, sample_weight=bad)
        assert raised.value.code == "bad_sample_weight"


@pytest.mark.slow
def test_weights_reach_the_race_and_both_stages(rng):
    names = rng.choice(list(WORDS), size=1100)
    texts = [" ".join([*rng.choice(WORDS[name], size=2), str(rng.integers(30))]) for name in names]
    model = Tagger().fit(texts, names, sample_weight=rng.choice([0.5, 1, 2], size=1100))
    assert model.race_ is not None
    assert model.score(texts, names) > 0.95


def test_accuracy_and_macro_f1_are_reported_for_one_label_in_each_row(rows):
    from longtail import Corpus

    texts, names = rows
    model = tagger().fit(texts, names)
    wrong = ["fruit", *names[1:]]
    report = model.evaluate(Corpus.from_lists(texts, [[name] for name in wrong]), ks=(1,))
    assert report["accuracy"] == report["P@1"] == np.mean(np.array(wrong) == names)
    from sklearn.metrics import f1_score

    assert report["macro-F1"] == pytest.approx(f1_score(wrong, model.predict(texts), average="macro"))
    assert report.to_dict()["metrics"]["accuracy"] == report["accuracy"]
    assert "macro-F1" in report.to_text()
    several = model.evaluate(Corpus.from_lists(texts, [[name, "all"] for name in names]))
    assert several.classes is None
    assert "accuracy" not in several.to_dict()["metrics"]


@pytest.mark.parametrize(
    "facts",
    [
        {"classes": "letters", "single_label": True},
        {"classes": "names"},
        {"classes": 3, "single_label": True},
        {"single_label": "yes"},
        {"classes": "numbers", "single_label": True},
    ],
    ids=repr,
)
def test_facts_about_classes_are_checked_when_a_model_is_loaded(facts, rows, tmp_path):
    texts, names = rows
    tagger().fit(texts, [[name, "all"] for name in names]).save(tmp_path / "model")
    state = read_model(tmp_path / "model")
    forged = State(state.kind, state.params, {**state.facts, **facts}, state.arrays, state.parts)
    write_model(forged, tmp_path / "forged")
    with pytest.raises(ModelFormatError):
        load(tmp_path / "forged")
