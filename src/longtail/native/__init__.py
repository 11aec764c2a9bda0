"""The kernels: C++ where it was built, plain NumPy twins of the same functions where not.

Kernels trust their input: `longtail.validation` and the readers check it once, at the boundary. They are
single-threaded and release the interpreter lock; `longtail.parallel` spreads blocks over threads.
Set ``LONGTAIL_NATIVE=0`` to use the twins.
"""

from __future__ import annotations

import os
from contextlib import suppress
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from longtail.native import conjugate, repository_text, sparse, text, topk

twins: Any = SimpleNamespace(
    **{name: getattr(text, name) for name in text.__all__},
    RepositoryText=repository_text.RepositoryText,
    cg_curvature=conjugate.cg_curvature,
    cg_descend=conjugate.cg_descend,
    cg_turn=conjugate.cg_turn,
    gram=sparse.gram,
    multiply=sparse.multiply,
    multiply_sparse=sparse.multiply_sparse,
    update_topk=topk.update_topk,
)

kernels: Any = twins
if os.environ.get("LONGTAIL_NATIVE", "1") != "0":
    with suppress(ImportError):  # installed where no compiler was
        kernels = import_module("longtail.native._kernels")


def is_native() -> bool:
    """Whether the compiled kernels are in use."""
    return kernels is not twins


__all__ = ["is_native", "kernels", "twins"]
