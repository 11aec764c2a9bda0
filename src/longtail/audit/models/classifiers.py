"""The output layer of scikit-learn's classifiers, with the rule by which each of them decides.

They are recognised by the attributes of a fitted model: scikit-learn itself is not imported.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.errors import InvalidInput
from longtail.estimator import OutputLayer, Rule, check_memory

_POSITIVE = "the decision function is above 0"
_HIGHEST = "its decision function is the highest"
_RANKED = "its decision function is among the highest"
# Other models with several estimators combine them: by votes, in a chain, or by the code of a class.
_ONE_BY_ONE = ("OneVsRestClassifier", "MultiOutputClassifier")
_COMBINED = "combines several models, so there is no linear layer with a row of weights for each label"
_TREES = "an ensemble of trees has no linear layer: every label depends on splits of single features"


def is_classifier(model: Any) -> bool:
    """Whether this looks like a fitted or unfitted model of scikit-learn."""
    return hasattr(model, "get_params") and hasattr(model, "fit")


def classifier_layer(model: Any, rule: Rule | None) -> OutputLayer:
    """The layer of a fitted classifier; a ranking if `rule` asks for it."""
    found = _layer(model)
    if rule is None or rule == found.rule:
        return found
    if rule == "predict":
        raise InvalidInput(
            f"{type(model).__name__} gives each row the class with the highest score, so rule='predict' has no meaning"
        )
    # The offsets are intercepts alone, because the threshold of a decision function is 0.
    return OutputLayer(found.weights, found.offsets, "topk", _RANKED, False, found.label_names)


def _layer(model: Any) -> OutputLayer:
    name = type(model).__name__
    if hasattr(model, "steps"):
        return _layer(model.steps[-1][1])
    if hasattr(model, "best_estimator_"):
        return _layer(model.best_estimator_)
    if hasattr(model, "tree_") or any(hasattr(each, "tree_") for each in _parts(model)):
        raise InvalidInput(f"{name} has no linear output layer: {_TREES}", code="needs_linear_layer")
    if hasattr(model, "coefs_") and hasattr(model, "intercepts_"):
        return _last_of_perceptron(model)
    if hasattr(model, "support_vectors_") and len(getattr(model, "classes_", ())) > 2:
        raise InvalidInput(f"{name} lets pairs of classes vote, which is no linear layer; LinearSVC has one")
    if any(kind.__name__ in _ONE_BY_ONE for kind in type(model).__mro__) and hasattr(model, "estimators_"):
        return _one_by_one(model)
    if _parts(model):
        raise InvalidInput(f"{name} {_COMBINED}", code="needs_linear_layer")
    if hasattr(model, "coef_") and hasattr(model, "classes_"):
        return _linear(model)
    if hasattr(model, "coef_"):
        raise InvalidInput(f"{name} is no classifier, so it gives no labels; give its weights as a matrix")
    raise InvalidInput(f"{name} is not fitted, or has no linear output layer", code="needs_linear_layer")


def _parts(model: Any) -> list[Any]:
    """The fitted models that a model consists of; boosted trees are in a matrix."""
    parts = getattr(model, "estimators_", ())
    return parts.ravel().tolist() if isinstance(parts, np.ndarray) else list(parts)


def _linear(model: Any) -> OutputLayer:
    """A linear model: one class per row by the highest score, or labels by the sign of theirs."""
    weights, intercepts = _numbers(model)
    classes = model.classes_
    if _is_multilabel(model):
        return OutputLayer(weights, intercepts, "predict", _POSITIVE, False)
    return _of_classes(weights, intercepts, classes)


def _is_multilabel(model: Any) -> bool:
    binarizer = getattr(model, "_label_binarizer", None)
    return str(getattr(binarizer, "y_type_", "")).startswith("multilabel")


def _of_classes(weights: Any, intercepts: Array, classes: Any) -> OutputLayer:
    """The class with the highest score wins, the first of equal ones."""
    names = [str(each) for each in classes]
    if len(names) == 2 and weights.shape[0] == 1:
        # The second class wins above 0: against a class whose score is always 0, and which wins at 0.
        nothing = sparse.csr_array(weights.shape) if sparse.issparse(weights) else np.zeros(weights.shape)
        stack = sparse.vstack if sparse.issparse(weights) else np.vstack
        weights, intercepts = stack([nothing, weights]), np.append(0.0, intercepts)
        weights = sparse.csr_array(weights) if sparse.issparse(weights) else weights
    if weights.shape[0] != len(names):
        raise InvalidInput(f"the model has {weights.shape[0]} rows of weights for {len(names)} classes")
    return OutputLayer(weights, intercepts, "topk", _HIGHEST, False).named(names)


def _one_by_one(model: Any) -> OutputLayer:
    """One classifier for each label, or for each class."""
    parts = [_binary(each) for each in model.estimators_]
    width = max(weights.shape[1] for weights, _ in parts)
    check_memory({"weights of all labels": 8 * width * len(parts)})
    weights = np.vstack([np.broadcast_to(weights, (1, width)) for weights, _ in parts])
    intercepts = np.array([intercept for _, intercept in parts])
    if not hasattr(model, "multilabel_"):  # MultiOutputClassifier
        return OutputLayer(weights, intercepts, "predict", _POSITIVE, False)
    names = [str(each) for each in model.classes_]
    if model.multilabel_:
        # With a constant label in the first place, scikit-learn compares every decision function with 0.5.
        threshold = 0.5 if _is_constant(model.estimators_[0]) else 0.0
        description = f"the decision function is above {threshold:g}"
        return OutputLayer(weights, intercepts - threshold, "predict", description, False).named(names)
    if len(parts) == 1:
        return _of_classes(weights, intercepts, names)
    # The last of equal classes wins here. No rule for ties: an input with equal scores counts for no class.
    return OutputLayer(weights, intercepts, "topk", _HIGHEST, None).named(names)


def _is_constant(model: Any) -> bool:
    return type(model).__name__ == "_ConstantPredictor"


def _binary(model: Any) -> tuple[Array, float]:
    """The weights and the intercept of a classifier that says yes or no."""
    if _is_constant(model):
        return np.zeros((1, 1)), float(np.ravel(model.y_)[0])
    if hasattr(model, "steps"):
        raise InvalidInput("each label has a pipeline of its own, so there is no common input of a layer")
    if not hasattr(model, "coef_"):
        raise InvalidInput(f"the labels are given by {type(model).__name__}, which is not linear")
    if not hasattr(model, "classes_"):
        raise InvalidInput(f"the labels are given by {type(model).__name__}, which is no classifier")
    if len(model.classes_) != 2:
        raise InvalidInput(f"an output has {len(model.classes_)} classes; expected labels that are given or not")
    weights, intercepts = _numbers(model)
    return (weights.toarray() if sparse.issparse(weights) else weights), float(intercepts[0])


def _numbers(model: Any) -> tuple[Any, Array]:
    """Weights with one row per score, and intercepts, in 64 bits."""
    stored = model.coef_
    stored = sparse.csr_array(stored) if sparse.issparse(stored) else np.atleast_2d(np.asarray(stored))
    intercepts = np.broadcast_to(np.ravel(np.asarray(model.intercept_)), (stored.shape[0],))
    checked = OutputLayer.of(stored, intercepts)
    return checked.weights, checked.offsets


def _last_of_perceptron(model: Any) -> OutputLayer:
    """The last layer of an ``MLPClassifier``; its inputs are what the layer before passes on."""
    if not hasattr(model, "classes_"):
        raise InvalidInput(f"{type(model).__name__} is no classifier, so it gives no labels")
    checked = OutputLayer.of(np.asarray(model.coefs_[-1]).T, model.intercepts_[-1])
    if _is_multilabel(model):
        return OutputLayer(checked.weights, checked.offsets, "predict", _POSITIVE, False)
    return _of_classes(checked.weights, checked.offsets, model.classes_)
