"""Linear learners: label trees, one-vs-rest, closed-form ridge, a subset of labels, and which to choose."""

from longtail.estimator import Explanation, Step
from longtail.linear.choice import check_learner, choose_learner
from longtail.linear.label_subset import LabelSubsetClassifier
from longtail.linear.label_tree import LabelTree
from longtail.linear.model import LinearModel
from longtail.linear.one_vs_rest import OneVsRest
from longtail.linear.predictability import label_predictability
from longtail.linear.ridge import Ridge
from longtail.linear.ridge_cv import RidgeCV

__all__ = [
    "Explanation",
    "LabelSubsetClassifier",
    "LabelTree",
    "LinearModel",
    "OneVsRest",
    "Ridge",
    "RidgeCV",
    "Step",
    "check_learner",
    "choose_learner",
    "label_predictability",
]
