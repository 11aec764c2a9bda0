"""Label trees and one-vs-rest: one training in lockstep, one search."""

from longtail.trees.label_tree import LabelTree
from longtail.trees.model import TreeModel
from longtail.trees.one_vs_rest import OneVsRest

__all__ = ["LabelTree", "OneVsRest", "TreeModel"]
