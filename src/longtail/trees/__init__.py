"""Label trees and one-vs-rest: one training in lockstep, one search."""

from longtail.trees.calibration import fit_sigmoid
from longtail.trees.label_tree import LabelTree
from longtail.trees.model import TreeModel
from longtail.trees.one_vs_rest import OneVsRest
from longtail.trees.thresholds import is_true
from longtail.trees.training import _WORK_OF_A_PIECE as WORK_OF_A_PIECE
from longtail.trees.training import training_bytes

__all__ = ["WORK_OF_A_PIECE", "LabelTree", "OneVsRest", "TreeModel", "fit_sigmoid", "is_true", "training_bytes"]
