"""A few labels that represent all: selecting them, and a classifier that learns only these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from longtail.subset.affinity import Affinity, Decoder, label_affinity, sparse_decoder
from longtail.subset.corpus_selection import CorpusSelection, SelectedLabel, select_from_corpus
from longtail.subset.decoding import Decoding, ridge_decoding, sparse_decoding
from longtail.subset.selection import LabelSubset, select_labels

if TYPE_CHECKING:
    from longtail.subset.classifier import LabelSubsetClassifier as LabelSubsetClassifier

__all__ = [
    "Affinity",
    "CorpusSelection",
    "Decoder",
    "Decoding",
    "LabelSubset",
    "LabelSubsetClassifier",
    "SelectedLabel",
    "label_affinity",
    "ridge_decoding",
    "select_from_corpus",
    "select_labels",
    "sparse_decoder",
    "sparse_decoding",
]


def __getattr__(name: str) -> Any:
    # Loaded on first use: selecting labels needs no learner.
    if name != "LabelSubsetClassifier":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from longtail.subset.classifier import LabelSubsetClassifier

    return LabelSubsetClassifier
