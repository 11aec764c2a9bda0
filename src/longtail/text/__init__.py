"""Texts to sparse features: tokens, counts, tf-idf; saved without pickle."""

from longtail.text.features import TextFeatures
from longtail.text.tokens import tokenize

__all__ = ["TextFeatures", "tokenize"]
