"""longtail: tag things with labels out of a very large vocabulary, on an ordinary machine."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from longtail.version import __version__

if TYPE_CHECKING:
    from longtail.aggregated import AggregatedClassifier as AggregatedClassifier
    from longtail.data import Corpus as Corpus
    from longtail.data import GroupedCorpus as GroupedCorpus
    from longtail.errors import LongtailError as LongtailError
    from longtail.metrics import evaluate as evaluate
    from longtail.ridge import Ridge as Ridge
    from longtail.ridge import RidgeCV as RidgeCV
    from longtail.store import load as load
    from longtail.subset import LabelSubsetClassifier as LabelSubsetClassifier
    from longtail.tagger import Tagger as Tagger
    from longtail.text import TextFeatures as TextFeatures
    from longtail.trees import LabelTree as LabelTree
    from longtail.trees import OneVsRest as OneVsRest
    from longtail.work import in_pieces as in_pieces

# Loaded on first use, so that importing the package costs what NumPy and SciPy cost.
_HOMES = {
    "AggregatedClassifier": "longtail.aggregated",
    "Corpus": "longtail.data",
    "GroupedCorpus": "longtail.data",
    "LabelSubsetClassifier": "longtail.subset",
    "LabelTree": "longtail.trees",
    "LongtailError": "longtail.errors",
    "OneVsRest": "longtail.trees",
    "Ridge": "longtail.ridge",
    "RidgeCV": "longtail.ridge",
    "Tagger": "longtail.tagger",
    "TextFeatures": "longtail.text",
    "evaluate": "longtail.metrics",
    "in_pieces": "longtail.work",
    "load": "longtail.store",
}

__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'longtail' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
