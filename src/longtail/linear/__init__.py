"""Linear learners: closed-form ridge, and ridge that chooses its penalty."""

from longtail.linear.choice import choose_learner
from longtail.linear.model import Explanation, LinearModel
from longtail.linear.ridge import Ridge
from longtail.linear.ridge_cv import RidgeCV

__all__ = ["Explanation", "LinearModel", "Ridge", "RidgeCV", "choose_learner"]
