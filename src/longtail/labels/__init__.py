"""The label space: label vectors, label trees, taxonomies, and codes for output heads."""

from longtail.labels.cluster import cluster_labels, split_wide
from longtail.labels.codes import BitChunks, MixedRadix
from longtail.labels.head_plan import HeadPlan, confusion_degree, plan_heads
from longtail.labels.hierarchy import LabelHierarchy
from longtail.labels.order import kept_labels, label_order
from longtail.labels.taxonomy import from_parents, read_taxonomy, to_parents, write_taxonomy
from longtail.labels.vectors import even_blocks, label_vectors, sum_of_rows

__all__ = [
    "BitChunks",
    "HeadPlan",
    "LabelHierarchy",
    "MixedRadix",
    "cluster_labels",
    "confusion_degree",
    "even_blocks",
    "from_parents",
    "kept_labels",
    "label_order",
    "label_vectors",
    "plan_heads",
    "read_taxonomy",
    "split_wide",
    "sum_of_rows",
    "to_parents",
    "write_taxonomy",
]
