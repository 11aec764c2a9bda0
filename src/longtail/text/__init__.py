"""Turn texts, or ready-made features, into the feature rows of learners; saved without pickle."""

from longtail.text.features import TextFeatures
from longtail.text.scaling import RowScaling
from longtail.text.tokens import WordSpan, tokenize, word_spans

__all__ = ["RowScaling", "TextFeatures", "WordSpan", "tokenize", "word_spans"]
