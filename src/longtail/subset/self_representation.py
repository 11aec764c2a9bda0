"""Labels as sparse combinations of other labels, y ~ A z, plus a residual.

The program of a label is to minimise |z|_1 + alpha |y - A z|_2. Labels are independent of each other, and the solvers
need only A'A and A'y, the numbers of rows that two labels share.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

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


class _Block(NamedTuple):
    """Solutions of a block of labels: the columns of z as counts, indices and values, and their certificates."""

    counts: Array
    used: Array
    values: Array
    norms: Array
    objectives: Array
    bounds: Array
    iterations: Array


def represent(
    products: Products, alpha: float, tolerance: float, max_iterations: int, solver: str, n_jobs: int | None
) -> Representation:
    """Solve the program of every label to a relative duality gap of `tolerance`, label by label."""
    size, n_labels = products.gram.shape[0], len(products.squares)
    if solver == "admm":
        solve, width = _by_admm(products, alpha, tolerance, max_iterations, n_jobs), min(_ADMM_BLOCK, n_labels)
    else:
        solve, width = _by_descent(products, alpha, tolerance, max_iterations), max(_BLOCK, n_labels // _MOST_BLOCKS)
    found = [_Block(*np.zeros((2, 0), dtype=np.int32), *np.zeros((5, 0)))]
    # With one thread for BLAS, rounding does not depend on the number of threads.
    with progress.task("labels explained by labels", total=n_labels) as advance, blas_threads(1):
        for block in map_blocks(solve, split(n_labels, width) if size else [], n_jobs):
            found.append(block)
            advance(len(block.counts))
    counts, used, values, norms, objectives, bounds, iterations = map(np.concatenate, zip(*found, strict=True))
    columns = sparse.csc_array((values, used, np.concatenate([[0], np.cumsum(counts)])), shape=(size, n_labels))
    certificate = norms, objectives, bounds, iterations.astype(np.int64)
    return _prefer_copies(Representation(sparse.csr_array(columns), *certificate), products)


def _by_descent(products: Products, alpha: float, tolerance: float, max_iterations: int) -> Callable[[slice], _Block]:
    gram, targets, excluded = _wide_index(products.gram), _wide_index(products.targets), products.excluded

    def solve(block: slice) -> _Block:
        counts, iterations = np.zeros((2, block.stop - block.start), dtype=np.int64)
        norms, objectives, bounds = np.zeros((3, block.stop - block.start))
        used, values = kernels.represent_labels(
            *(*gram, targets[0][block.start : block.stop + 1], *targets[1:], products.squares[block], excluded[block]),
            *(alpha, tolerance, max_iterations, counts, iterations, norms, objectives, bounds),
        )
        return _Block(counts, used, values, norms, objectives, bounds, iterations)

    return solve


def _by_admm(
    products: Products, alpha: float, tolerance: float, max_iterations: int, n_jobs: int | None
) -> Callable[[slice], _Block]:
    size, width = products.gram.shape[0], min(_ADMM_BLOCK, len(products.squares))
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

    def solve(block: slice) -> _Block:
        with_rows = products.squares[block] > 0
        labels = np.arange(block.start, block.stop)[with_rows]
        allowed = np.arange(size)[:, None] != excluded[labels]
        targets = products.targets[labels].toarray().T
        program = admm.Program(gram, targets, products.squares[labels], allowed, alpha, curvature)
        z, *found = admm.solve(program, tolerance, max_iterations)
        counts, certificate = np.zeros(len(with_rows), dtype=np.int64), np.zeros((4, len(with_rows)))
        counts[with_rows], certificate[:, with_rows] = np.count_nonzero(z, axis=0), found
        which, used = np.nonzero(z.T)
        return _Block(counts, used.astype(np.int32), z[used, which], *certificate)

    return solve


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
