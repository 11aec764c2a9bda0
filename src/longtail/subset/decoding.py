"""From scores of a few labels to scores of all: the decoder Z of Y ~ Ys Z (Barezi et al., NAACL 2019, eq. 8).

Z is stored as a small dense factor and a sparse one, so that even the dense Z of least squares takes no more memory
than the pairs of labels that occur together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, sparse

from longtail.arrays import Array
from longtail.memory import MemoryPlan
from longtail.native import kernels
from longtail.parallel import split

_LABELS = 4096  # labels in a block when norms are computed
_SQUARES = 7  # k x k matrices that least squares holds at its peak


@dataclass(frozen=True)
class Decoding:
    """Z = mixing codes', with Z of shape (k, L).

    Parameters
    ----------
    mixing : float32 array of shape (k, h)
    codes : csr_array of shape (L, h), float32
        One row per label. The rows of the k labels of the subset select their own scores.
    """

    mixing: Array
    codes: Any

    @property
    def n_labels(self) -> int:
        return int(self.codes.shape[0])

    def mix(self, scores: Array) -> Array:
        """The input of `decode`, of shape (h, n_rows), from scores of shape (n_rows, k)."""
        return np.ascontiguousarray((scores @ self.mixing).T, dtype=np.float32)

    def decode(self, mixed: Array, block: slice) -> Array:
        """Scores of the labels in `block`, of shape (n_labels, n_rows)."""
        codes = self.codes
        out = np.empty((block.stop - block.start, mixed.shape[1]), dtype=np.float32)
        kernels.multiply(codes.indptr[block.start : block.stop + 1], codes.indices, codes.data, mixed, out)
        return out

    def columns(self, labels: Array) -> Array:
        """The columns of Z for some labels, dense: shape (k, len(labels))."""
        return np.asarray(self.mixing @ self.codes[labels].T.toarray())


def ridge_decoding(Y: Any, subset: Array, alpha: float) -> tuple[Decoding, Array]:
    """The least-squares decoder Z = (Ys'Ys + alpha I)^-1 Ys'Y, and the norms of the columns of Y - Ys Z.

    Parameters
    ----------
    Y : csr_array, float32
        Zeros and ones, or rows of these times the roots of the weights of rows.
    subset : array of k label ids
    alpha : float
        Above 0, since labels that always occur together make Ys'Ys singular.

    Returns
    -------
    decoding : Decoding
    outlier_norms : float64 array of shape (n_labels,)
        ||E_j|| of each label; 0 for the subset.
    """
    together = _together(Y, subset)
    MemoryPlan(
        f"the decoder of {len(subset):,} labels",
        {
            "pairs of the subset": _SQUARES * 8 * len(subset) ** 2,
            "a block of labels": 8 * min(_LABELS, Y.shape[1]) * len(subset),
        },
        'Select fewer labels, or use decoder="l1".',
    ).check()
    gram = together[subset].toarray()
    inverse = linalg.cho_solve(linalg.cho_factor(gram + alpha * np.eye(len(subset))), np.eye(len(subset)))
    counts = np.bincount(Y.indices, weights=Y.data.astype(np.float64) ** 2, minlength=Y.shape[1])
    # ||y - Ys z||^2 = n - 2 z'c + z'Gz with z = M c, where c' is a row of `together`.
    inner = 2 * inverse - inverse @ gram @ inverse
    squares = counts.copy()
    for block in split(Y.shape[1], _LABELS):
        part = together[block]
        squares[block] -= np.asarray(part.multiply(part @ inner).sum(axis=1)).ravel()
    norms = np.sqrt(np.maximum(squares, 0))
    norms[subset] = 0
    codes = sparse.hstack([_without_rows(together, subset), _own_scores(subset, Y.shape[1])])
    mixing = np.hstack([inverse, np.eye(len(subset))])
    return _packed(mixing, codes, Y.indices.dtype), norms


def sparse_decoding(coefficients: Any, subset: Array, index: Any) -> Decoding:
    """The decoder with coefficients Z (k x L), except that labels of the subset keep their own scores."""
    turned = sparse.csr_array(coefficients.T)
    codes = _without_rows(turned, subset) + _own_scores(subset, turned.shape[0])
    return _packed(np.eye(len(subset)), codes, index)


def _together(Y: Any, subset: Array) -> Any:
    """The number of rows that each label shares with each label of the subset: Y'Ys, of shape (L, k), in float64."""
    chosen = sparse.csr_array(Y[:, subset]).astype(np.float64)
    return sparse.csr_array(Y.T.astype(np.float64) @ chosen)


def _without_rows(matrix: Any, rows: Array) -> Any:
    keep = np.ones(matrix.shape[0])
    keep[rows] = 0
    return sparse.csr_array(sparse.dia_array((keep[None], [0]), shape=(len(keep), len(keep))) @ matrix)


def _own_scores(subset: Array, n_labels: int) -> Any:
    places = np.arange(len(subset))
    return sparse.csr_array((np.ones(len(subset)), (subset, places)), shape=(n_labels, len(subset)))


def _packed(mixing: Array, codes: Any, index: Any) -> Decoding:
    csr = sparse.csr_array(codes)
    csr.eliminate_zeros()
    csr.sort_indices()
    packed = sparse.csr_array(
        (csr.data.astype(np.float32), csr.indices.astype(index), csr.indptr.astype(index)), shape=csr.shape
    )
    return Decoding(mixing.astype(np.float32), packed)
