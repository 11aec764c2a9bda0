"""Closed-form ridge regression: one factorisation serves every label."""

from longtail.ridge.cost import Shape
from longtail.ridge.linear_model import LinearModel
from longtail.ridge.predictability import label_predictability
from longtail.ridge.ridge import Ridge
from longtail.ridge.ridge_cv import RidgeCV

__all__ = ["LinearModel", "Ridge", "RidgeCV", "Shape", "label_predictability"]
