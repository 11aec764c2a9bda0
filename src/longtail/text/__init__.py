"""Texts, or features that came ready-made, to the rows learners want; saved without pickle."""

from longtail.text.features import TextFeatures
from longtail.text.scaling import RowScaling
from longtail.text.tokens import tokenize

__all__ = ["RowScaling", "TextFeatures", "tokenize"]
