"""The label space: label vectors, and trees of labels that are learned or brought along."""

from longtail.labels.cluster import cluster_labels, split_wide
from longtail.labels.hierarchy import LabelHierarchy
from longtail.labels.taxonomy import from_parents, read_taxonomy, to_parents, write_taxonomy
from longtail.labels.vectors import label_vectors

__all__ = [
    "LabelHierarchy",
    "cluster_labels",
    "from_parents",
    "label_vectors",
    "read_taxonomy",
    "split_wide",
    "to_parents",
    "write_taxonomy",
]
