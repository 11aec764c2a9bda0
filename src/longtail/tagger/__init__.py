"""`Tagger`: texts and label names in, label names and scores out."""

from longtail.tagger.tagger import Aligned, PathStep, Reason, Tag, TagExplanation, Tagger

__all__ = ["Aligned", "PathStep", "Reason", "Tag", "TagExplanation", "Tagger"]
