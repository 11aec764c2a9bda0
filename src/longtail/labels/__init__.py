"""The label space: label vectors, trees that are learned or brought, codes for heads, labels that stand for all."""

from longtail.labels.affinity import Affinity, Decoder, label_affinity, sparse_decoder
from longtail.labels.cluster import cluster_labels, split_wide
from longtail.labels.codes import BitChunks, MixedRadix
from longtail.labels.head_plan import HeadPlan, confusion_degree, plan_heads
from longtail.labels.hierarchy import LabelHierarchy
from longtail.labels.order import label_order
from longtail.labels.subset import LabelSubset, select_labels
from longtail.labels.taxonomy import from_parents, read_taxonomy, to_parents, write_taxonomy
from longtail.labels.vectors import label_vectors

__all__ = [
    "Affinity",
    "BitChunks",
    "Decoder",
    "HeadPlan",
    "LabelHierarchy",
    "LabelSubset",
    "MixedRadix",
    "cluster_labels",
    "confusion_degree",
    "from_parents",
    "label_affinity",
    "label_order",
    "label_vectors",
    "plan_heads",
    "read_taxonomy",
    "select_labels",
    "sparse_decoder",
    "split_wide",
    "to_parents",
    "write_taxonomy",
]
