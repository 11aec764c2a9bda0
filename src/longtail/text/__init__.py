"""Texts, or features that came ready-made, to the rows learners want; saved without pickle."""

from longtail.text.features import TextFeatures
from longtail.text.fitting import fit_features
from longtail.text.marking import Segment, segments
from longtail.text.scaling import RowScaling
from longtail.text.tokens import WordSpan, tokenize, word_spans

__all__ = ["RowScaling", "Segment", "TextFeatures", "WordSpan", "fit_features", "segments", "tokenize", "word_spans"]
