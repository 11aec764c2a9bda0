"""Label trees and one-vs-rest: one training in lockstep, one search."""

from longtail.trees.calibration import fit_sigmoid
from longtail.trees.label_tree import LabelTree
from longtail.trees.model import TreeModel
from longtail.trees.one_vs_rest import OneVsRest
from longtail.trees.thresholds import is_true

__all__ = ["LabelTree", "OneVsRest", "TreeModel", "fit_sigmoid", "is_true"]
