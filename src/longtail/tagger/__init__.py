"""`Tagger`: texts and label names in, label names and scores out."""

from longtail.tagger.explanations import LabelCount, PathStep, Reason, Tag, TagExplanation
from longtail.tagger.features import FeatureOptions, fit_features
from longtail.tagger.preparation import hold_out, without_empty_groups
from longtail.tagger.tagger import Aligned, Tagger

__all__ = [
    "Aligned",
    "FeatureOptions",
    "LabelCount",
    "PathStep",
    "Reason",
    "Tag",
    "TagExplanation",
    "Tagger",
    "fit_features",
    "hold_out",
    "without_empty_groups",
]
