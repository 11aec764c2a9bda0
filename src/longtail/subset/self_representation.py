"""Labels as sparse combinations of other labels, y ~ A z, plus a residual.

The program of a label is to minimise |z|_1 + alpha |y - A z|_2. Labels are independent of each other, and the solvers
need only A'A and A'y, the numbers of rows that two labels share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from longtail import progress
from longtail.arrays import Array
from longtail.memory import MemoryPlan
from longtail.native import kernels
from longtail.parallel import blas_threads, map_blocks, resolve_jobs, split
from longtail.subset import admm

_BLOCK = 32
_MOST_BLOCKS = 1024  # each block clears memory for all labels, which must not cost more than its work
_ADMM_BLOCK = 256
_ADMM_ARRAYS = 20  # arrays of the size of a block's products, at the peak of an iteration
_DENSE = 0.1  # share of pairs of labels with shared rows above which a dense product is faster
_ROUNDING = 1e-9
ENTRY_BYTES = 12


@dataclass(frozen=True)
class Representation:
    """The solution for every label, with its certificate."""

    coefficients: Any  # csr_array of shape (k, n_labels)
    norms: Array  # |y - A z|
    objectives: Array
    bounds: Array
    iterations: Array


@dataclass(frozen=True)
class Products:
    """The products of labels that a program needs.

    Parameters
    ----------
    gram : csr_array of shape (k, k)
        A'A.
    targets : csr_array of shape (n_labels, k)
        A'y, one row per label.
    squares : array of shape (n_labels,)
        y'y.
    own : array of shape (n_labels,)
        The column of A that is the label itself, or -1.
    own_allowed : bool
        Whether a label may use its own column.
    """

    gram: Any
    targets: Any
    squares: Array
    own: Array
    own_allowed: bool

    @property
    def excluded(self) -> Array:
        """The column of A that a label may not use, or -1."""
        return np.full_like(self.own, -1) if self.own_allowed else self.own


def represent(
    products: Products, alpha: float, tolerance: float, max_iterations: int, solver: str, n_jobs: int | None
) -> Representation:
    """Solve the program of every label to a relative duality gap of `tolerance`, label by label."""
    if solver == "admm":
        found = _by_admm(products, alpha, tolerance, max_iterations, n_jobs)
    else:
        found = _by_descent(products, alpha, tolerance, max_iterations, n_jobs)
    return _prefer_copies(found, products)


def _by_descent(
    products: Products, alpha: float, tolerance: float, max_iterations: int, n_jobs: int | None
) -> Representation:
    n_labels = len(products.squares)
    gram, targets, excluded = _wide_index(products.gram), _wide_index(products.targets), products.excluded
    counts, iterations = np.zeros((2, n_labels), dtype=np.int64)
    norms, objectives, bounds = np.zeros((3, n_labels))

    def solve(block: slice) -> tuple[slice, Array, Array]:
        indptr = targets[0][block.start : block.stop + 1]
        used, coefficients = kernels.represent_labels(
            *(*gram, indptr, *targets[1:], products.squares[block], excluded[block]),
            *(alpha, tolerance, max_iterations),
            *(counts[block], iterations[block], norms[block], objectives[block], bounds[block]),
        )
        return block, used, coefficients

    parts = _collect(solve, split(n_labels, max(_BLOCK, n_labels // _MOST_BLOCKS)), n_labels, n_jobs)
    coefficients = _columns(parts, counts, products.gram.shape[0])
    return Representation(coefficients, norms, objectives, bounds, iterations)


def _by_admm(
    products: Products, alpha: float, tolerance: float, max_iterations: int, n_jobs: int | None
) -> Representation:
    size, n_labels = products.gram.shape[0], len(products.squares)
    width = min(_ADMM_BLOCK, n_labels)
    dense = products.gram.nnz > _DENSE * size * size
    MemoryPlan(
        "ADMM over labels",
        {
            "iterates": 8 * size * width * _ADMM_ARRAYS * resolve_jobs(n_jobs),
            "products of labels": 8 * size * size if dense else 0,
        },
        'Use solver="descent", or fewer threads.',
    ).check()
    gram = products.gram.toarray() if dense else products.gram
    curvature, excluded = admm.row_sums(products.gram), products.excluded
    counts, iterations = np.zeros((2, n_labels), dtype=np.int64)
    norms, objectives, bounds = np.zeros((3, n_labels))

    def solve(block: slice) -> tuple[slice, Array, Array]:
        labels = np.arange(block.start, block.stop)[products.squares[block] > 0]
        allowed = np.arange(size)[:, None] != excluded[labels]
        targets = products.targets[labels].toarray().T
        program = admm.Program(gram, targets, products.squares[labels], allowed, alpha, curvature)
        z, *found = admm.solve(program, tolerance, max_iterations)
        norms[labels], objectives[labels], bounds[labels], iterations[labels] = found
        counts[labels] = np.count_nonzero(z, axis=0)
        which, used = np.nonzero(z.T)
        return block, used.astype(np.int32), z[used, which]

    with blas_threads(1):  # so that rounding does not depend on the number of threads
        parts = _collect(solve, split(n_labels, width) if size else [], n_labels, n_jobs)
    return Representation(_columns(parts, counts, size), norms, objectives, bounds, iterations)


def _collect(solve: Any, blocks: list[slice], n_labels: int, n_jobs: int | None) -> list[tuple[Array, Array]]:
    parts = []
    with progress.task("labels explained by labels", total=n_labels) as advance:
        for block, used, coefficients in map_blocks(solve, blocks, n_jobs):
            parts.append((used, coefficients))
            advance(block.stop - block.start)
    return parts


def _columns(parts: list[tuple[Array, Array]], counts: Array, size: int) -> Any:
    """One matrix with a label per column, from blocks of labels."""
    used = np.concatenate([np.zeros(0, dtype=np.int32), *(used for used, _ in parts)])
    data = np.concatenate([np.zeros(0), *(coefficients for _, coefficients in parts)])
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return sparse.csr_array(sparse.csc_array((data, used, indptr), shape=(size, len(counts))))


def _wide_index(matrix: Any) -> tuple[Array, Array, Array]:
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32, copy=False), matrix.data


def _prefer_copies(found: Representation, products: Products) -> Representation:
    """Represent a label by an identical one, itself or the lowest, unless the solution found costs less than 1.

    Solvers only approach a representation without residual; an identical label gives it exactly.
    """
    targets, excluded = products.targets, products.excluded
    label = np.repeat(np.arange(len(products.squares)), np.diff(targets.indptr))
    same = (targets.data == products.squares[label]) & (targets.data == products.gram.diagonal()[targets.indices])
    same &= (targets.indices != excluded[label]) & (found.objectives[label] > 1 - _ROUNDING)
    label, copy = label[same], targets.indices[same]
    order = np.lexsort((copy, copy != products.own[label], label))
    labels, first = np.unique(label[order], return_index=True)
    ones = sparse.csr_array((np.ones(len(labels)), (copy[order][first], labels)), shape=found.coefficients.shape)
    others = np.ones(len(products.squares))
    others[labels] = 0
    coefficients = sparse.csr_array(found.coefficients.multiply(others[None, :]) + ones)
    coefficients.eliminate_zeros()
    norms, objectives = found.norms * others, np.where(others, found.objectives, 1)
    return Representation(coefficients, norms, objectives, np.minimum(found.bounds, objectives), found.iterations)
