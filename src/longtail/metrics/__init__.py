"""Metrics of label rankings: precision, nDCG and their propensity-scored forms, recall, coverage; reports."""

from longtail.metrics.at_k import (
    coverage_at_k,
    f1_at_k,
    macro_precision_at_k,
    macro_recall_at_k,
    ndcg_at_k,
    precision_at_k,
    psndcg_at_k,
    psp_at_k,
    recall_at_k,
)
from longtail.metrics.calibration import Bin, Reliability, reliability
from longtail.metrics.confusion import ConfusedPair, Mistakes, confused_pairs
from longtail.metrics.given import Cutoff, GivenScores, cutoffs_of
from longtail.metrics.intervals import Interval, intervals_at_k, intervals_of
from longtail.metrics.judgement import MEASURES, Judgement
from longtail.metrics.label_scores import Band, LabelScores, frequency_bands, frequency_groups
from longtail.metrics.propensities import PROPENSITY_CONSTANTS, inverse_propensity, propensity, propensity_constants
from longtail.metrics.report import GroupReport, Report, evaluate
from longtail.metrics.single_label import ClassScores

__all__ = [
    "MEASURES",
    "PROPENSITY_CONSTANTS",
    "Band",
    "Bin",
    "ClassScores",
    "ConfusedPair",
    "Cutoff",
    "GivenScores",
    "GroupReport",
    "Interval",
    "Judgement",
    "LabelScores",
    "Mistakes",
    "Reliability",
    "Report",
    "confused_pairs",
    "coverage_at_k",
    "cutoffs_of",
    "evaluate",
    "f1_at_k",
    "frequency_bands",
    "frequency_groups",
    "intervals_at_k",
    "intervals_of",
    "inverse_propensity",
    "macro_precision_at_k",
    "macro_recall_at_k",
    "ndcg_at_k",
    "precision_at_k",
    "propensity",
    "propensity_constants",
    "psndcg_at_k",
    "psp_at_k",
    "recall_at_k",
    "reliability",
]
