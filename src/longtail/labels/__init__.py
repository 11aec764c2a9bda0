"""The label space: label vectors, label trees, taxonomies, and codes for output heads."""

from longtail.labels.bisection import _LARGE as LARGE
from longtail.labels.bisection import _SMALL as SMALL
from longtail.labels.cluster import cluster_labels, cluster_vectors, split_wide
from longtail.labels.codes import BitChunks, MixedRadix
from longtail.labels.growing import TOO_LARGE, Growth, grow_hierarchy
from longtail.labels.head_plan import HeadPlan, confusion_degree, plan_heads
from longtail.labels.hierarchy import LabelHierarchy
from longtail.labels.order import kept_labels, label_order
from longtail.labels.taxonomy import from_parents, read_taxonomy, to_parents, write_taxonomy
from longtail.labels.vectors import _BLOCK_ENTRIES as BLOCK_ENTRIES
from longtail.labels.vectors import _COST_OF_A_LABEL as COST_OF_A_LABEL
from longtail.labels.vectors import (
    check_sums,
    even_blocks,
    label_vectors,
    members_by_label,
    sum_of_rows,
    vectors_by_label,
)

__all__ = [
    "BLOCK_ENTRIES",
    "COST_OF_A_LABEL",
    "LARGE",
    "SMALL",
    "TOO_LARGE",
    "BitChunks",
    "Growth",
    "HeadPlan",
    "LabelHierarchy",
    "MixedRadix",
    "check_sums",
    "cluster_labels",
    "cluster_vectors",
    "confusion_degree",
    "even_blocks",
    "from_parents",
    "grow_hierarchy",
    "kept_labels",
    "label_order",
    "label_vectors",
    "members_by_label",
    "plan_heads",
    "read_taxonomy",
    "split_wide",
    "sum_of_rows",
    "to_parents",
    "vectors_by_label",
    "write_taxonomy",
]
