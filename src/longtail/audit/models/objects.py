"""The output layer of any fitted model in memory: ours, scikit-learn's classifiers and torch modules.

Models are told apart by their attributes, so neither torch nor scikit-learn is imported.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.audit.models.classifiers import classifier_layer, is_classifier
from longtail.audit.models.networks import is_module, module_layer, to_array
from longtail.errors import InvalidInput
from longtail.estimator import Estimator, OutputLayer, Rule


def output_layer(
    model: Any,
    *,
    layer: str | None = None,
    n_labels: int | None = None,
    rule: Rule | None = None,
    threshold: float | None = None,
) -> OutputLayer:
    """The linear layer that decides on the labels of a model, with the rule of the model.

    Parameters
    ----------
    model : object
        A fitted learner or `Tagger` of longtail; a classifier of scikit-learn that is linear, or whose last layer is
        (linear models, ``OneVsRestClassifier``, ``MultiOutputClassifier``, ``MLPClassifier``, pipelines that end in
        them); a torch module; or an `OutputLayer`, which is returned as it is.
    layer : str or None
        The name of the last layer of a torch module, as ``named_modules`` has it. By default it is found, if only one
        layer can be meant.
    n_labels : int or None
        The number of labels, if known, which helps to find the last layer of a torch module.
    rule : {"predict", "topk"} or None
        Labels by their own scores, or the labels with the highest scores. By default as the model decides; a torch
        module without ``config.problem_type`` gives the labels whose score is above 0, or ranks them if it is a
        sequence that ends in a softmax.
    threshold : float or None
        With a torch module: the score, before any sigmoid, that a label must exceed; 0 by default.

    Raises
    ------
    InvalidInput
        If the model has no linear output layer, or it is not clear which layer it is.

    Examples
    --------
    >>> from longtail import Ridge
    >>> output_layer(Ridge(0.1).fit([[1.0, 0.0], [0.0, 1.0]], [[1, 0], [0, 1]])).n_labels
    2
    """
    if isinstance(model, OutputLayer):
        return model
    module = is_module(model)
    if not module and (layer is not None or threshold is not None):
        raise InvalidInput("layer and threshold go with torch modules; other models have their own rule")
    if module:
        return module_layer(model, layer, n_labels, rule, threshold)
    if isinstance(model, Estimator):
        return model.output_layer(rule or "predict")
    inner = getattr(model, "estimator_", None)
    if isinstance(inner, Estimator):  # a Tagger
        names = getattr(model, "label_names_", None)
        found = inner.output_layer(rule or "predict")
        return found if names is None else found.named(names)
    if is_classifier(model):
        return classifier_layer(model, rule)
    raise InvalidInput(
        f"{type(model).__name__} has no linear output layer that is known here. Give a fitted linear classifier, a "
        "torch module, or the weights of its last layer as a matrix with one row per label"
    )


def bare_weights(values: Any) -> Any:
    """Weights given as numbers, as an array or sparse matrix; None if `values` is something else, such as a model."""
    if sparse.issparse(values) or isinstance(values, list | tuple | np.ndarray):
        return values
    if hasattr(values, "detach"):
        return to_array(values)
    if hasattr(values, "__array__"):
        numbers: Array = np.asarray(values)
        return numbers
    return None
