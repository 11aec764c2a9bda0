"""Linear learners: label trees, one-vs-rest, closed-form ridge, and which to choose."""

from longtail.linear.choice import choose_learner
from longtail.linear.label_tree import LabelTree
from longtail.linear.model import Explanation, LinearModel, Step
from longtail.linear.one_vs_rest import OneVsRest
from longtail.linear.ridge import Ridge
from longtail.linear.ridge_cv import RidgeCV

__all__ = ["Explanation", "LabelTree", "LinearModel", "OneVsRest", "Ridge", "RidgeCV", "Step", "choose_learner"]
