"""Closed-form ridge regression: one factorisation serves every label."""

from longtail.ridge.cost import Shape
from longtail.ridge.gram import column_sums
from longtail.ridge.predictability import label_predictability
from longtail.ridge.problem import Problem
from longtail.ridge.ridge import Ridge
from longtail.ridge.ridge_cv import RidgeCV
from longtail.ridge.solvers import Spectral

__all__ = ["Problem", "Ridge", "RidgeCV", "Shape", "Spectral", "column_sums", "label_predictability"]
