"""The linear output layer inside a fitted model, with the rule by which the model gives labels."""

from __future__ import annotations

from typing import Any

from longtail.errors import InvalidInput
from longtail.estimator import Estimator, OutputLayer, Rule


def output_layer(estimator: Any, rule: Rule = "predict") -> OutputLayer:
    """The linear output layer of a fitted estimator.

    Parameters
    ----------
    estimator : Ridge, RidgeCV, OneVsRest or MultiHeadClassifier
        Of networks those whose head is a linear layer, and its inputs are what the network makes of rows.
    rule : {"predict", "topk"}
        Label sets as ``predict`` gives them, or as the first places of ``predict_topk``.

    Returns
    -------
    OutputLayer

    Raises
    ------
    InvalidInput
        For models that have none: label trees multiply many classifiers, and some heads of networks several layers.

    Examples
    --------
    >>> from longtail import Ridge
    >>> layer = output_layer(Ridge(0.1).fit([[1.0, 0.0], [0.0, 1.0]], [[1, 0], [0, 1]]))
    >>> layer.n_labels, layer.rank(), layer.description
    (2, 2, 'its fitted value is at least 0.5')
    """
    if not isinstance(estimator, Estimator):
        raise InvalidInput(
            f"{type(estimator).__name__} has no linear output layer that longtail knows of; give a model of "
            "longtail, or give the weights as a matrix"
        )
    return estimator.output_layer(rule)
