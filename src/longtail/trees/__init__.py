"""Label trees and one-vs-rest: one training in lockstep, one search."""

from longtail.trees.calibration import (
    METHODS,
    Calibration,
    calibrations_from_state,
    calibrations_to_arrays,
    fit_sigmoid,
)
from longtail.trees.label_tree import LabelTree
from longtail.trees.model import TreeModel
from longtail.trees.one_vs_rest import OneVsRest
from longtail.trees.thresholds import is_true
from longtail.trees.training import _WORK_OF_A_PIECE as WORK_OF_A_PIECE
from longtail.trees.training import training_bytes

__all__ = [
    "METHODS",
    "WORK_OF_A_PIECE",
    "Calibration",
    "LabelTree",
    "OneVsRest",
    "TreeModel",
    "calibrations_from_state",
    "calibrations_to_arrays",
    "fit_sigmoid",
    "is_true",
    "training_bytes",
]
