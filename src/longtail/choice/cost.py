"""Estimated processor time of training, from the shape of the data alone."""

from __future__ import annotations

from typing import Any

from longtail.estimator import Estimator
from longtail.ridge import Ridge, RidgeCV, Shape
from longtail.trees import LabelTree, OneVsRest

# Seconds of one core, fitted to measurements on short and long texts; right within a factor of about two.
_TREE = 2.1e-8
_ONE_VS_REST = 8e-10
_RIDGE = 1e-10  # per multiply-add of a dense solver
_FEATURES_OF_A_ROW = 40  # the cost of a row besides its features
_BEAM = 2  # trainings, the second one with more rows in each leaf


def seconds_of(estimator: Estimator, X: Any, Y: Any, width: int = 0) -> float:
    """The processor seconds that training takes, roughly; each row may have `width` dense features besides X."""
    shape = Shape.of(X, Y)
    row_work = shape.non_zeros + (_FEATURES_OF_A_ROW + width) * shape.n_rows
    if isinstance(estimator, LabelTree):
        leaves, times = shape.label_non_zeros / max(1, shape.n_rows), 1
        if estimator.negatives == "beam":
            leaves, times = leaves + estimator.beam, _BEAM
        classifiers = min(estimator.branching + estimator.leaf_size * leaves, shape.n_labels)
        # Classifiers of a node share the work of reading a row.
        return _TREE * row_work * classifiers**0.5 * estimator.n_trees * times
    if isinstance(estimator, OneVsRest):
        return _ONE_VS_REST * row_work * shape.n_labels
    if isinstance(estimator, RidgeCV):
        return _RIDGE * estimator.cheapest_path(shape).work
    if isinstance(estimator, Ridge):
        return _RIDGE * estimator.cheapest_solver(shape).work
    raise TypeError(f"no estimate for {type(estimator).__name__}")
