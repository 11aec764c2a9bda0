"""Labels known only for groups of rows: EAGLE (Shen et al., ICML 2020) finds which member each label belongs to."""

from longtail.aggregated.assignment import Assignment, assign_labels
from longtail.aggregated.classifier import FEWEST_GROUPS, AggregatedClassifier
from longtail.aggregated.grouping import clustered_groups, random_groups
from longtail.aggregated.vectors import GroupRobustLabelVectors
from longtail.data import aggregate_labels

__all__ = [
    "FEWEST_GROUPS",
    "AggregatedClassifier",
    "Assignment",
    "GroupRobustLabelVectors",
    "aggregate_labels",
    "assign_labels",
    "clustered_groups",
    "random_groups",
]
