"""The contract of every learner, as code."""

from longtail.estimator.base import (
    CELLS,
    PLACES_OF_SCORE,
    Estimator,
    column_counts,
    column_weights,
    fit_with,
    normalised,
    read_prune,
    total_weight,
)
from longtail.estimator.checks import check_estimator
from longtail.estimator.explanation import Evidence, Explanation, Step
from longtail.estimator.head_diagnostics import ConfusedGroups, HeadDiagnostics, HeadScores, LabelGroup, Survival
from longtail.estimator.output_layer import OutputLayer, Rule, check_memory, row_lengths
from longtail.estimator.revision import Revision
from longtail.estimator.targets import (
    TrainingSet,
    check_training,
    classes_of_rows,
    one_hot,
    read_feature_names,
    read_training,
    read_weights,
    weighted_mean,
)
from longtail.store import register

__all__ = [
    "CELLS",
    "PLACES_OF_SCORE",
    "ConfusedGroups",
    "Estimator",
    "Evidence",
    "Explanation",
    "HeadDiagnostics",
    "HeadScores",
    "LabelGroup",
    "OutputLayer",
    "Revision",
    "Rule",
    "Step",
    "Survival",
    "TrainingSet",
    "check_estimator",
    "check_memory",
    "check_training",
    "classes_of_rows",
    "column_counts",
    "column_weights",
    "fit_with",
    "normalised",
    "one_hot",
    "read_feature_names",
    "read_prune",
    "read_training",
    "read_weights",
    "register",
    "row_lengths",
    "total_weight",
    "weighted_mean",
]
