"""Turn texts, or ready-made features, into the feature rows of learners; saved without pickle."""

from longtail.text.features import TextFeatures
from longtail.text.fitting import FeatureOptions, fit_features, inputs_of
from longtail.text.marking import Segment, segments
from longtail.text.scaling import RowScaling
from longtail.text.tokens import WordSpan, tokenize, word_spans

__all__ = [
    "FeatureOptions",
    "RowScaling",
    "Segment",
    "TextFeatures",
    "WordSpan",
    "fit_features",
    "inputs_of",
    "segments",
    "tokenize",
    "word_spans",
]
