"""The layer of a model gives what the model's own `predict` gives, ties included."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.linear_model import Ridge as RidgeRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from longtail import LabelTree, OneVsRest, Ridge
from longtail.arrays import Array
from longtail.audit import OutputLayer, audit, output_layer
from longtail.errors import InvalidInput

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4))
Y = (X @ RNG.normal(size=(4, 6)) + RNG.normal(size=6) > 0.5).astype(int)
CLASSES = np.array(["pear", "plum", "fig"])[np.argmax(X @ RNG.normal(size=(4, 3)), axis=1)]

pytestmark = pytest.mark.filterwarnings("ignore")


def given_by(layer: OutputLayer, inputs: Array) -> Array:
    """What a layer gives by its rule: a 0/1 matrix, or the class that comes first."""
    scores = np.asarray(inputs @ layer.weights.T) + layer.offsets
    if layer.rule == "topk":
        return scores.argmax(axis=1)
    return (scores >= 0 if layer.at_least else scores > 0).astype(int)


@pytest.mark.parametrize(
    "model",
    [
        OneVsRestClassifier(LogisticRegression()),
        OneVsRestClassifier(LinearSVC()),
        MultiOutputClassifier(LogisticRegression(fit_intercept=False)),
        RidgeClassifier(),
        make_pipeline(RidgeClassifier()),
        GridSearchCV(RidgeClassifier(), {"alpha": [0.1, 1.0]}),
    ],
    ids=lambda model: type(model).__name__,
)
def test_labels_are_those_of_predict(model: Any) -> None:
    layer = output_layer(model.fit(X, Y))
    assert (layer.rule, layer.at_least) == ("predict", False)
    assert (given_by(layer, X) == model.predict(X)).all()
    found = audit(model, model.predict(X), candidates=None)
    assert found.count(1) == len(X)
    assert output_layer(model, rule="topk").rule == "topk"


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        LinearSVC(),
        RidgeClassifier(),
        SGDClassifier(random_state=0),
        LinearDiscriminantAnalysis(),
        OneVsRestClassifier(LogisticRegression()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_classes_are_those_of_predict(model: Any, n_classes: int) -> None:
    y = CLASSES if n_classes == 3 else np.where(CLASSES == "fig", "fig", "pear")
    layer = output_layer(model.fit(X, y))
    assert layer.rule == "topk"
    assert layer.label_names == tuple(model.classes_)
    assert (np.array(layer.label_names)[given_by(layer, X)] == model.predict(X)).all()
    with pytest.raises(InvalidInput, match="has no meaning"):
        output_layer(model, rule="predict")


def test_the_second_of_two_classes_must_be_above_zero() -> None:
    model = LogisticRegression().fit([[-1.0], [1.0]], [0, 1])
    model.coef_, model.intercept_ = np.zeros((1, 1)), np.zeros(1)
    assert model.predict([[3.0]]).tolist() == [0]
    assert audit(model, [[1, 0], [0, 1]]).verdicts.tolist() == [1, -1]


def test_sparse_coefficients_stay_sparse() -> None:
    model = SGDClassifier(random_state=0, penalty="l1").fit(X, CLASSES).sparsify()
    layer = output_layer(model)
    assert sparse.issparse(layer.weights)
    assert (np.array(layer.label_names)[given_by(layer, X)] == model.predict(X)).all()


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("constant", [0, 1])
def test_labels_that_are_always_or_never_given_keep_their_rule(first: int, constant: int) -> None:
    """With a constant label in the first place scikit-learn compares all scores with 0.5."""
    labels = Y.copy()
    labels[:, 0 if first else 3] = constant
    model = OneVsRestClassifier(LogisticRegression()).fit(X, labels)
    assert (given_by(output_layer(model), X) == model.predict(X)).all()


@pytest.mark.parametrize("target", [Y, CLASSES, CLASSES == "fig"], ids=["labels", "classes", "two"])
def test_the_last_layer_of_a_perceptron_sees_hidden_values(target: Array) -> None:
    model = MLPClassifier((5,), random_state=0, max_iter=30).fit(X, target)
    layer = output_layer(model)
    hidden = np.maximum(X @ model.coefs_[0] + model.intercepts_[0], 0)
    given = given_by(layer, hidden)
    expected = model.predict(X)
    assert ((model.classes_[given] if layer.rule == "topk" else given) == expected).all()
    assert layer.n_inputs == 5


def test_models_of_longtail_have_their_own_layer() -> None:
    model = Ridge(1.0).fit(X, Y)
    assert output_layer(model).at_least is True
    assert audit(model, Y).rank == 4
    assert output_layer(OneVsRest().fit(sparse.csr_array(X), Y), rule="predict").n_labels == 6
    with pytest.raises(InvalidInput, match="product along its path"):
        output_layer(LabelTree(leaf_size=2).fit(sparse.csr_array(X), Y))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (RandomForestClassifier(3), "splits of single features"),
        (SVC(kernel="linear"), "pairs of classes vote"),
        (LinearRegression(), "is no classifier"),
        (OneVsRestClassifier(RandomForestClassifier(3)), "given by RandomForestClassifier, which is not linear"),
        (OneVsRestClassifier(make_pipeline(StandardScaler(), LogisticRegression())), "a pipeline of its own"),
    ],
    ids=["forest", "pairs", "regression", "forests", "pipelines"],
)
def test_models_without_a_linear_layer_are_refused_with_the_reason(model: Any, message: str) -> None:
    y = X[:, 0] if isinstance(model, LinearRegression) else CLASSES
    with pytest.raises(InvalidInput, match=message):
        output_layer(model.fit(X, y))


@pytest.mark.parametrize(
    "model",
    [
        VotingClassifier([("a", LogisticRegression()), ("b", RidgeClassifier())]),
        StackingClassifier([("a", LogisticRegression()), ("b", RidgeClassifier())]),
        BaggingClassifier(LogisticRegression(), 3),
        AdaBoostClassifier(LogisticRegression(), n_estimators=3),
        OutputCodeClassifier(LogisticRegression(), random_state=0),
        OneVsOneClassifier(LogisticRegression()),
        ClassifierChain(LogisticRegression()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_models_that_combine_others_are_not_taken_for_one_model_per_label(model: Any) -> None:
    y = Y if isinstance(model, ClassifierChain) else CLASSES
    with pytest.raises(InvalidInput, match="combines several models") as error:
        output_layer(model.fit(X, y))
    assert error.value.code == "needs_linear_layer"


def test_boosted_trees_and_regressions_for_each_label_are_refused() -> None:
    with pytest.raises(InvalidInput, match="splits of single features"):
        output_layer(GradientBoostingClassifier(n_estimators=2).fit(X, CLASSES))
    with pytest.raises(InvalidInput, match="given by Ridge, which is no classifier"):
        output_layer(OneVsRestClassifier(RidgeRegression()).fit(X, Y))


def test_what_is_no_fitted_model_is_refused() -> None:
    with pytest.raises(InvalidInput, match="not fitted"):
        output_layer(LogisticRegression())
    with pytest.raises(InvalidInput, match="str has no linear output layer"):
        output_layer("model")
    with pytest.raises(InvalidInput, match="go with torch modules"):
        output_layer(RidgeClassifier().fit(X, Y), threshold=1.0)


def test_neither_torch_nor_scikit_learn_is_imported() -> None:
    code = "import sys, longtail.audit; sys.exit('torch' in sys.modules or 'sklearn.linear_model' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
