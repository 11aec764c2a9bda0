"""scikit-learn's own checks of a classifier, on learners as they are."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.utils.estimator_checks import estimator_checks_generator

from longtail import LabelSubsetClassifier, LabelTree, OneVsRest, Ridge, RidgeCV, load
from longtail.errors import InvalidInput
from longtail.ranking import TwoStage

# Where longtail keeps to another promise than scikit-learn's checks, with the reason.
_OTHERWISE = {
    "check_sample_weight_equivalence_on_dense_data": "they call fit with y=; test_weights.py states the same fact",
    "check_sample_weight_equivalence_on_sparse_data": "the same",
    "check_classifier_multioutput": "a label matrix gives a sparse matrix, since labels can be millions",
    "check_classifiers_multilabel_representation_invariance": "the same",
    "check_classifiers_multilabel_output_format_predict": "the same",
    "check_supervised_y_2d": "a column is a label matrix with one label",
    "check_non_transformer_estimators_n_iter": "a direct solver has no iterations",
    "check_array_api_input": "needs an environment variable of SciPy",
    "check_classifiers_multilabel_output_format_predict_proba": "ridge has no probabilities",
}
# A model that was not asked to be updatable refuses partial_fit after fit, because the result could not be exact.
_NOT_UPDATABLE = (
    "check_fit_score_takes_y",
    "check_n_features_in_after_fitting",
    "check_estimators_partial_fit_n_features",
)


def cases():
    for estimator in (
        Ridge(updatable=True),
        Ridge(fit_intercept=True, weighting="loss"),
        Ridge(solver="cg", density=0.5),
        RidgeCV(),
        LabelTree(),
        LabelTree(loss="logistic", negatives="beam", leaf_size=1, n_trees=2),
        OneVsRest(),
        LabelSubsetClassifier(n_labels=1, outliers="all"),
        TwoStage([("all", OneVsRest())], rounds=2),
    ):
        for checked, check in estimator_checks_generator(estimator, legacy=True):
            name = check.func.__name__
            left_out = isinstance(estimator, Ridge) and not estimator.updatable and name in _NOT_UPDATABLE
            if name not in _OTHERWISE and not left_out:
                yield pytest.param(checked, check, id=f"{estimator!r}-{name}")


@pytest.mark.parametrize(("estimator", "check"), list(cases()))
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


def flowers(rng):
    centres = rng.normal(size=(3, 6))
    y = rng.integers(0, 3, size=90)
    return centres[y] + 0.1 * rng.normal(size=(90, 6)), np.array(["iris", "rose", "tulip"], dtype=object)[y]


def test_a_learner_of_one_class_in_each_row_works_in_scikit_learns_tools(rng):
    X, y = flowers(rng)
    assert cross_val_score(OneVsRest(), X, y, cv=3).min() > 0.9
    assert cross_val_score(OneVsRest(), X, y, cv=3, scoring="neg_log_loss").min() > -0.7
    assert cross_val_predict(LabelTree(), sparse.csr_array(X), y, cv=3).shape == y.shape
    search = GridSearchCV(Ridge(), {"alpha": [1e-3, 1e6]}, cv=3, scoring="accuracy").fit(X, y)
    assert search.best_params_ == {"alpha": 1e-3}


def test_a_label_matrix_is_scored_by_its_ranking(rng):
    X, y = flowers(rng)
    Y = (y[:, None] == np.unique(y)).astype(int)
    assert OneVsRest().fit(X, Y).score(X, Y) == 1
    assert cross_val_score(OneVsRest(), X, Y, cv=3).min() > 0.9


def test_two_classes_have_one_decision_that_agrees_with_the_best_class(rng):
    X, y = flowers(rng)
    X, y = X[y != "rose"], y[y != "rose"]
    for learner in (Ridge(), OneVsRest()):
        model = learner.fit(X, y)
        np.testing.assert_array_equal(model.classes_[(model.decision_function(X) > 0).astype(int)], model.predict(X))


def test_only_learners_with_probabilities_have_predict_proba(rng):
    X, y = flowers(rng)
    assert not hasattr(Ridge(), "predict_proba")
    assert not hasattr(OneVsRest(weighting="score"), "predict_proba")
    Y = (y[:, None] == np.unique(y)).astype(int)
    model = OneVsRest().fit(X, Y)
    np.testing.assert_array_equal(model.predict_proba(X), model.decision_function(X))


def test_a_score_weighs_rows(rng):
    X, y = flowers(rng)
    wrong, weights = np.where(np.arange(90) < 30, "none", y), np.where(np.arange(90) < 30, 2, 1)
    assert OneVsRest().fit(X, y).score(X, wrong, sample_weight=weights) == 0.5
    Y = (y[:, None] == np.unique(y)).astype(int)
    assert OneVsRest().fit(X, Y).score(X, Y * (weights < 2)[:, None], sample_weight=weights) == 0.5


def test_columns_of_a_data_frame_must_stay_in_their_order(rng, tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = flowers(rng)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    for learner in (OneVsRest(), Ridge(updatable=True), TwoStage([("all", Ridge())], rounds=2)):
        model = learner.fit(frame, y)
        model.save(tmp_path / "model")
        for each in (model, load(tmp_path / "model")):
            assert each.feature_names_in_.tolist() == list("abcdef")
            np.testing.assert_array_equal(each.predict(frame), each.predict(X))
            for other, found in ((frame[list("abdcef")], "'d', and .* expects 'c'"), (frame[["a"]], "missing, and")):
                with pytest.raises(InvalidInput, match=found) as refused:
                    each.predict(other)
                assert refused.value.code == "feature_names"
    ridge = Ridge(updatable=True).partial_fit(frame, y)
    with pytest.raises(InvalidInput, match="should match"):
        ridge.partial_fit(frame[list("fedcba")], y)
    assert not hasattr(ridge.fit(X, y), "feature_names_in_")
    numbered = pd.DataFrame(X)
    assert not hasattr(OneVsRest().fit(numbered, y), "feature_names_in_")


def test_further_rows_must_have_known_classes(rng):
    X, y = flowers(rng)
    model = Ridge(updatable=True).partial_fit(X[:30], y[:30], classes=["iris", "rose", "tulip", "violet"])
    model.partial_fit(X[30:], y[30:])
    assert model.classes_.tolist() == ["iris", "rose", "tulip", "violet"]
    assert (model.predict(X) == y).mean() > 0.9
    with pytest.raises(InvalidInput, match="class 'daisy'") as raised:
        model.partial_fit(X[:1], ["daisy"])
    assert raised.value.code == "bad_classes"
