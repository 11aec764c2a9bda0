"""The kernels: compiled C++ where it was built, NumPy twins of the same functions elsewhere.

Kernels trust their input: `longtail.validation` and the readers check it once, at the boundary. Each runs in one thread
and releases the interpreter lock; `longtail.parallel` spreads blocks over threads. Kernels that can run for long check
regularly whether they should stop. Set ``LONGTAIL_NATIVE=0`` to use the twins.
"""

from __future__ import annotations

import os
from contextlib import suppress
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from longtail.native import boosting, candidates, conjugate, grouped, represent, sparse, text, topk, votes
from longtail.native.cluster import add_rows, bisect_nodes, divide, largest, project_rows, sum_label_rows
from longtail.native.inverted_index import InvertedIndex
from longtail.native.repository_text import RepositoryText
from longtail.native.siblings import block_widths, train_siblings
from longtail.native.text import PAGE_SIZE, STANDS_ALONE, CodePoints, Text, token_subwords
from longtail.native.tree_search import TreeSearch, block_entries, log_probability

twins: Any = SimpleNamespace(
    **{name: getattr(text, name) for name in text.__all__},
    InvertedIndex=InvertedIndex,
    TreeSearch=TreeSearch,
    RepositoryText=RepositoryText,
    add_rows=add_rows,
    bisect_nodes=bisect_nodes,
    boosted_scores=boosting.boosted_scores,
    cg_curvature=conjugate.cg_curvature,
    cg_descend=conjugate.cg_descend,
    cg_turn=conjugate.cg_turn,
    find_members=grouped.find_members,
    gram_rows=sparse.gram_rows,
    join_candidates=candidates.join_candidates,
    multiply=sparse.multiply,
    multiply_sparse=sparse.multiply_sparse,
    neighbour_votes=votes.neighbour_votes,
    pair_dots=candidates.pair_dots,
    pair_votes=votes.pair_votes,
    project_rows=project_rows,
    represent_labels=represent.represent_labels,
    score_members=grouped.score_members,
    sum_label_rows=sum_label_rows,
    train_siblings=train_siblings,
    update_topk=topk.update_topk,
)

kernels: Any = twins
if os.environ.get("LONGTAIL_NATIVE", "1") != "0":
    with suppress(ModuleNotFoundError):  # installed without a compiler
        kernels = import_module("longtail.native._kernels")


def is_native() -> bool:
    """Whether the compiled kernels are in use."""
    return kernels is not twins


def is_sanitized() -> bool:
    """Whether the compiled kernels in use were built with sanitizers (``make sanitized-test``)."""
    return bool(getattr(kernels, "sanitized", False))


__all__ = [
    "PAGE_SIZE",
    "STANDS_ALONE",
    "CodePoints",
    "Text",
    "block_entries",
    "block_widths",
    "divide",
    "is_native",
    "is_sanitized",
    "kernels",
    "largest",
    "log_probability",
    "token_subwords",
    "twins",
]
