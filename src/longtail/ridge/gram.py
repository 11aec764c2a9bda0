"""The sums ridge needs: X'X on one side, X'Y label block by label block, both with centring left implicit.

Centred features are X - 1m' with m the column means; the matrix stays sparse because
(X - 1m')'(X - 1m') = X'X - n mm'.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from scipy import sparse

from longtail import progress
from longtail.arrays import Array
from longtail.errors import InvalidInput
from longtail.native import kernels
from longtail.parallel import map_blocks, resolve_jobs

_LONGEST = 1e17  # of all features together: its square, and what solvers make of it, must stay within 32-bit floats


def check_length(X: Any) -> None:
    """Refuse features whose sums of squares would not fit into float32."""
    length = float(np.sqrt(np.square(X.data, dtype=np.float64).sum()))
    if length > _LONGEST:
        raise InvalidInput(f"the features are too large for 32-bit sums (length {length:.1e}); scale the features")


def transpose(X: Any) -> Any:
    """The transpose in CSR with sorted indices and the index dtype of `X`."""
    turned = sparse.csr_array(X.T)
    index = X.indices.dtype
    return sparse.csr_array(
        (turned.data, turned.indices.astype(index, copy=False), turned.indptr.astype(index, copy=False)),
        shape=turned.shape,
    )


def gram_matrix(X: Any, Xt: Any, n_jobs: int | None, dtype: Any = np.float32) -> Array:
    """The dense symmetric X'X, summed in `dtype`; only its upper triangle is filled."""
    width = X.shape[1]
    out = np.zeros((width, width), dtype=dtype)
    blocks = _balanced_blocks(X, Xt, pieces=8 * resolve_jobs(n_jobs))

    def fill(block: slice) -> slice:
        kernels.gram(X.indptr, X.indices, X.data, Xt.indptr, Xt.indices, block.start, block.stop, out)
        return block

    with progress.task("Gram matrix", total=width) as advance:
        for done in map_blocks(fill, blocks, n_jobs):
            advance(done.stop - done.start)
    return out


def _balanced_blocks(X: Any, Xt: Any, pieces: int) -> list[slice]:
    """Slices of features of about equal work: a feature costs the non-zeros to its right in the rows that hold it."""
    lengths = np.diff(X.indptr).astype(np.float64)
    total = np.concatenate([[0.0], np.cumsum(lengths[Xt.indices])])
    cost = np.diff(total[Xt.indptr]) * np.linspace(1, 0, X.shape[1], endpoint=False) + 1
    edges = np.searchsorted(np.cumsum(cost), np.linspace(0, cost.sum(), pieces + 1)[1:-1])
    bounds = np.unique(np.concatenate([[0], edges, [X.shape[1]]])).tolist()
    return [slice(start, stop) for start, stop in itertools.pairwise(bounds)]


def add_outer(gram: Array, factor: float, vector: Array) -> None:
    """Add factor * vv' for a vector v, in place; -n and the column means turn X'X into (X - 1m')'(X - 1m')."""
    scaled, vector = (part.astype(gram.dtype, copy=False) for part in (factor * vector, vector))
    for block in range(0, len(gram), 1024):
        gram[block : block + 1024] += scaled[block : block + 1024, None] * vector[None, :]


def column_sums(X: Any) -> Array:
    """Sums of the columns in float64."""
    # bincount forgets its dtype where there is nothing to count.
    return np.bincount(X.indices, weights=X.data, minlength=X.shape[1]).astype(np.float64, copy=False)


def column_squares(X: Any) -> Array:
    """Sums of squares of the columns in float64."""
    weights = np.square(X.data, dtype=np.float64)
    return np.bincount(X.indices, weights=weights, minlength=X.shape[1]).astype(np.float64, copy=False)


def label_sums(X: Any, Yt: Any, block: slice, dtype: Any) -> Array:
    """Y'X for the labels of `block`, one label per row, dense, summed in `dtype`."""
    out = np.empty((block.stop - block.start, X.shape[1]), dtype=dtype)
    part = Yt.indptr[block.start : block.stop + 1]
    kernels.multiply_sparse(part, Yt.indices, Yt.data, X.indptr, X.indices, X.data, out)
    return out
