"""`Tagger`: texts and label names in, label names and scores out."""

from longtail.tagger.aims import Aim, Rule
from longtail.tagger.best import RaceSummary
from longtail.tagger.comparing import COMPARED, DEFAULT, Compared, compare
from longtail.tagger.decision import Decision, Expected
from longtail.tagger.explanations import LabelCount, PathStep, Reason, Tag, TagExplanation
from longtail.tagger.giving import AUTO
from longtail.tagger.kept_rows import History, TrainingRows
from longtail.tagger.preparation import hold_out
from longtail.tagger.tagger import Aligned, Tagger
from longtail.tagger.updating import UpdateSummary

__all__ = [
    "AUTO",
    "COMPARED",
    "DEFAULT",
    "Aim",
    "Aligned",
    "Compared",
    "Decision",
    "Expected",
    "History",
    "LabelCount",
    "PathStep",
    "RaceSummary",
    "Reason",
    "Rule",
    "Tag",
    "TagExplanation",
    "Tagger",
    "TrainingRows",
    "UpdateSummary",
    "compare",
    "hold_out",
]
