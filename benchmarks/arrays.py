"""Sparse matrices as folders of plain arrays, which the parent writes and every learner reads.

The environments of the peers import it too, so it needs only NumPy and SciPy.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from longtail.arrays import Array


def write_matrix(folder: Path, matrix: Any) -> None:
    """Write a CSR matrix as ``indptr``, ``indices``, ``data`` and ``shape``."""
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "indptr.npy", np.asarray(matrix.indptr, dtype=np.int64))
    np.save(folder / "indices.npy", np.asarray(matrix.indices, dtype=np.int32))
    np.save(folder / "data.npy", np.asarray(matrix.data, dtype=np.float32))
    np.save(folder / "shape.npy", np.asarray(matrix.shape, dtype=np.int64))


def read_matrix(folder: Path) -> sparse.csr_matrix[Any]:
    """Read it back, with 32-bit indices if they suffice, because the peers' kernels expect them."""
    indptr, indices, data, shape = (
        np.load(folder / f"{name}.npy", allow_pickle=False) for name in ("indptr", "indices", "data", "shape")
    )
    if indptr[-1] <= np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    return sparse.csr_matrix((data, indices, indptr), shape=tuple(shape.tolist()))


def top_labels(scores: Any, k: int) -> Array:
    """The labels of the k best stored scores of each CSR row, best first, -1 if there are fewer.

    >>> top_labels(sparse.csr_matrix([[0.0, 0.2, 0.9], [0.0, 0.0, 0.4]]), 2).tolist()
    [[2, 1], [2, -1]]
    """
    scores = sparse.csr_matrix(scores)
    counts = np.diff(scores.indptr)
    rows = np.repeat(np.arange(scores.shape[0]), counts)
    order = np.lexsort((scores.indices, -scores.data, rows))
    places = np.arange(len(order)) - np.repeat(scores.indptr[:-1], counts)
    kept = places < k
    top = np.full((scores.shape[0], k), -1, dtype=np.int32)
    top[rows[kept], places[kept]] = scores.indices[order][kept]
    return top
