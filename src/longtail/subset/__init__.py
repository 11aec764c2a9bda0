"""A few labels that stand for all: which to select, and a classifier that learns only those."""

from longtail.subset.affinity import Affinity, Decoder, label_affinity, sparse_decoder
from longtail.subset.classifier import LabelSubsetClassifier
from longtail.subset.selection import LabelSubset, select_labels

__all__ = [
    "Affinity",
    "Decoder",
    "LabelSubset",
    "LabelSubsetClassifier",
    "label_affinity",
    "select_labels",
    "sparse_decoder",
]
