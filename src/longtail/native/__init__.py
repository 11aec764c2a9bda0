"""The kernels: C++ where it was built, plain NumPy twins of the same functions where not.

Kernels trust their input: `longtail.validation` and the readers check it once, at the boundary. They are
single-threaded and release the interpreter lock; `longtail.parallel` spreads blocks over threads. Those that can run
for long look now and then whether they are to stop.
Set ``LONGTAIL_NATIVE=0`` to use the twins.
"""

from __future__ import annotations

import os
from contextlib import suppress
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from longtail.native import (
    cluster,
    conjugate,
    grouped,
    repository_text,
    represent,
    siblings,
    sparse,
    text,
    topk,
    tree_search,
)
from longtail.native.siblings import block_widths
from longtail.native.tree_search import block_entries, log_probability

twins: Any = SimpleNamespace(
    **{name: getattr(text, name) for name in text.__all__},
    TreeSearch=tree_search.TreeSearch,
    RepositoryText=repository_text.RepositoryText,
    add_rows=cluster.add_rows,
    bisect_nodes=cluster.bisect_nodes,
    cg_curvature=conjugate.cg_curvature,
    cg_descend=conjugate.cg_descend,
    cg_turn=conjugate.cg_turn,
    find_members=grouped.find_members,
    gram=sparse.gram,
    multiply=sparse.multiply,
    multiply_sparse=sparse.multiply_sparse,
    project_rows=cluster.project_rows,
    represent_labels=represent.represent_labels,
    score_members=grouped.score_members,
    sum_label_rows=cluster.sum_label_rows,
    train_siblings=siblings.train_siblings,
    update_topk=topk.update_topk,
)

kernels: Any = twins
if os.environ.get("LONGTAIL_NATIVE", "1") != "0":
    with suppress(ModuleNotFoundError):  # installed where no compiler was
        kernels = import_module("longtail.native._kernels")


def is_native() -> bool:
    """Whether the compiled kernels are in use."""
    return kernels is not twins


def is_sanitized() -> bool:
    """Whether the compiled kernels in use were built with sanitizers (``make sanitized-test``)."""
    return bool(getattr(kernels, "sanitized", False))


__all__ = ["block_entries", "block_widths", "is_native", "is_sanitized", "kernels", "log_probability", "twins"]
