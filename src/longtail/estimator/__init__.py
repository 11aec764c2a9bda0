"""The contract of every learner, as code."""

from longtail.estimator.base import CELLS, Estimator, check_training, column_counts, read_prune
from longtail.estimator.checks import check_estimator
from longtail.estimator.explanation import Evidence, Explanation, Step
from longtail.estimator.output_layer import OutputLayer, Rule, check_memory, row_lengths
from longtail.estimator.revision import Revision
from longtail.store import register

__all__ = [
    "CELLS",
    "Estimator",
    "Evidence",
    "Explanation",
    "OutputLayer",
    "Revision",
    "Rule",
    "Step",
    "check_estimator",
    "check_memory",
    "check_training",
    "column_counts",
    "read_prune",
    "register",
    "row_lengths",
]
