"""What the stages of ridge get: the problem and its Gram matrix, as they are in memory, or as files that tasks open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.parallel import blas_threads, check_stop
from longtail.ridge.gram import centre_of, check_length, column_lengths, column_means, shift_columns
from longtail.ridge.problem import Problem
from longtail.work import Kept, Piece, Results, Rows, Work, even_ranges

_ENTRIES = 2**22  # entries of a sparse matrix that a task puts together
_SCANNED = 2**20  # entries that it reads at once
_PRODUCTS = 2**30  # multiply-adds of a task that fills rows of a Gram matrix
_GRAM_BYTES = 2**26  # size of its result
_BYTES_OF_AN_ENTRY = 40  # while a matrix is transposed


@dataclass(frozen=True)
class StoredProblem(Kept):
    """A `Problem` whose matrices and means are in files."""

    X: Any
    Xt: Any
    Yt: Any
    means: Any

    def open(self) -> Problem:
        matrices = (as_csr(matrix.open()) for matrix in (self.X, self.Xt, self.Yt))
        means = self.means.open()
        return Problem(*matrices, *(means.get(name) for name in ("centre", "mean", "label_mean")))


@dataclass(frozen=True)
class StoredGram(Kept):
    """A Gram matrix whose rows are the results of a stage."""

    rows: Results
    width: int
    precision: str

    def open(self) -> Array:
        gram = np.zeros((self.width, self.width), dtype=self.precision)
        for (start, stop), piece in zip(self.rows.ranges, self.rows, strict=True):
            gram[start:stop, start:] = piece["rows"]
        return gram


def as_csr(rows: Rows) -> Any:
    """The matrix as SciPy has it; its values are not copied."""
    return sparse.csr_array((rows.data, rows.indices, rows.indptr), shape=(len(rows), rows.n_columns))


def prepared(work: Work, fit_intercept: bool, weights: Array | None = None) -> tuple[Any, Problem]:
    """The problem of a training on the matrices "features" and "labels": as an argument of stages, and opened.

    Only a training in memory has weights of rows.
    """
    X, Y = as_csr(work.opened("features")), as_csr(work.opened("labels"))
    if not work.is_stored:
        problem = Problem.build(X, Y, fit_intercept, weights)
        return problem, problem
    check_length(X)
    features, means = "features", {}
    if fit_intercept:
        centre = centre_of(X)
        if centre is not None:
            features = "shifted-features"
            _add_shifted(work, features, centre)
            X = as_csr(work.opened(features))
            means["centre"] = centre
        means |= {"mean": column_means(X), "label_mean": column_means(Y)}
    _add_transposed(work, features, "transposed-features")
    _add_transposed(work, "labels", "transposed-labels")
    X, Xt, Yt = (work.matrix(name) for name in (features, "transposed-features", "transposed-labels"))
    given = StoredProblem(X, Xt, Yt, work.keep("means", means))
    return given, given.open()


def _add_shifted(work: Work, name: str, centre: Array) -> None:
    X = work.opened("features")
    # Shifted columns have no zeros, and a row may get all of them.
    costs = np.diff(X.indptr) + np.count_nonzero(centre)
    kept = work.keep("centre", {"centre": centre})
    memory = _BYTES_OF_AN_ENTRY * np.maximum(costs, min(_ENTRIES, int(costs.sum())))
    ranges = even_ranges(costs, _ENTRIES)
    shifted = work.run("shifting-features", _shifted, ranges, work.matrix("features"), kept, costs=costs, memory=memory)
    _add(work, name, shifted, X.n_columns)


def _shifted(X: Rows, kept: Piece, start: int, stop: int) -> Piece:
    part = shift_columns(as_csr(_some(X, start, stop)), kept["centre"])
    return {"lengths": np.diff(part.indptr), "indices": part.indices.astype(np.int32, copy=False), "data": part.data}


def _add_transposed(work: Work, name: str, transposed: str) -> None:
    matrix = work.opened(name)
    costs = column_lengths(as_csr(matrix)) + 1
    memory = _BYTES_OF_AN_ENTRY * (np.maximum(costs, min(_ENTRIES, costs.sum())) + _SCANNED)
    # As few ranges as possible: each scans all rows.
    ranges = even_ranges(costs, _ENTRIES) or [(0, 0)]
    turned = work.run(
        f"{name}_transposing", _transposed, ranges, work.matrix(name), costs=costs, memory=memory.astype(np.int64)
    )
    _add(work, transposed, turned, len(matrix))


def _transposed(matrix: Rows, start: int, stop: int) -> Piece:
    """The rows of some columns."""
    parts = []
    for first, last in even_ranges(np.diff(matrix.indptr), _SCANNED):
        check_stop()
        rows = _some(matrix, first, last)
        chosen = (rows.indices >= start) & (rows.indices < stop)
        indptr = np.concatenate([[0], np.cumsum(chosen)])[rows.indptr]
        parts.append(as_csr(Rows(indptr, rows.indices[chosen] - start, rows.data[chosen], stop - start)))
    whole = sparse.vstack(parts, format="csc")
    return {"lengths": np.diff(whole.indptr), "indices": whole.indices.astype(np.int32, copy=False), "data": whole.data}


def _some(rows: Rows, start: int, stop: int) -> Rows:
    bounds = rows.indptr[start : stop + 1]
    entries = slice(int(bounds[0]), int(bounds[-1]))
    return Rows(bounds - bounds[0], rows.indices[entries], rows.data[entries], rows.n_columns)


def _add(work: Work, name: str, results: Results, n_columns: int) -> None:
    """Join rows in pieces to one matrix."""
    joined = work.join(f"{name}_joining-columns", results, ("lengths", "indices", "data"))
    indptr = np.concatenate([[0], np.cumsum(joined["lengths"])])
    work.add(name, Rows(indptr, joined["indices"], joined["data"], n_columns))


def gram_of(work: Work, given: Any, problem: Any, side: str, precision: str) -> Any:
    """The Gram matrix of one side, as an argument of stages."""
    dtype = np.dtype(precision)
    if not work.is_stored:
        return problem.gram(side, dtype.type, work.jobs)
    matrix, transposed = problem.factored(side)
    n_rows, width = matrix.shape
    products = np.diff(transposed.indptr) * (matrix.nnz / max(1, n_rows)) * np.linspace(1, 0, width, endpoint=False)
    costs = np.maximum(products / _PRODUCTS, dtype.itemsize * width / _GRAM_BYTES)
    memory = np.full(width, 2 * max(dtype.itemsize * width, min(_GRAM_BYTES, dtype.itemsize * width**2)) + 8 * n_rows)
    # Each task scans all rows for some rows of the result: adding whole matrices would need more disk and change sums.
    rows = work.run(
        f"{precision}_Gram-matrix", _gram_rows, even_ranges(costs, 1), given, side, precision, memory=memory
    )
    return StoredGram(rows, width, precision)


@blas_threads(1)
def _gram_rows(problem: Problem, side: str, precision: str, start: int, stop: int) -> Piece:
    """Some rows of the Gram matrix, right of the diagonal."""
    out = np.zeros((stop - start, problem.factored(side)[0].shape[1]), dtype=precision)
    problem.gram_rows(side, slice(start, stop), out)
    return {"rows": out[:, start:]}
