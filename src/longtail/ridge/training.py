"""The stages that train ridge: factoring or preparing once, then blocks of labels.

A task has one BLAS thread, since with more the bits of a product depend on their number; so they do on the number of
labels solved together, and therefore the items of a stage are blocks of labels of a fixed size.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from longtail.arrays import Array
from longtail.parallel import blas_threads, split
from longtail.ridge.conjugate import ConjugateGradients, Preconditioner, basis_size
from longtail.ridge.cost import gram_bytes
from longtail.ridge.pieces import gram_of
from longtail.ridge.problem import Problem
from longtail.ridge.solvers import Factor, Spectral, eigenvectors
from longtail.ridge.sparsify import Sparsification, columns_of
from longtail.work import Piece, Results, Work

_log = logging.getLogger(__name__)

_PROBED_LABELS = 8


class Solved(NamedTuple):
    """The coefficients, n_features x n_labels, and the iterations that they took."""

    coefficients: Any
    iterations: int


@dataclass(frozen=True)
class Training:
    """What all stages of a fit have in common.

    Parameters
    ----------
    work : Work
    given : Any
        The problem as an argument of stages.
    problem : Problem or SummedProblem
    sparsification : Sparsification
    n_features : int
    size : int
        Number of labels solved at once.
    """

    work: Work
    given: Any
    problem: Any
    sparsification: Sparsification
    n_features: int
    size: int

    def blocks_solved(self, stage: str, solve: Callable[..., Piece], *arguments: Any, memory: int) -> Any:
        """The coefficients of all labels, and what else the tasks return for their blocks."""
        blocks = split(self.problem.n_labels, self.size)
        costs = np.array([block.stop - block.start for block in blocks], dtype=np.int64)
        ranges = [(number, number + 1) for number in range(len(blocks))]
        given = (self.given, self.size, self.sparsification, *arguments)
        options = {"costs": costs, "memory": np.full(len(blocks), memory)}
        shape = (self.n_features, self.problem.n_labels)
        if not blocks:
            return np.zeros(shape, dtype=np.float32), []
        if self.sparsification.is_identity:
            results = self.work.each(stage, solve, ranges, *given, **options)
            return self.work.side_by_side(results, "weights", shape)
        if self.sparsification.prunes:
            done = self.work.run(stage, solve, ranges, *given, **options)
            pruned = self.work.join(f"{stage}_joining-weights", done, ("lengths", "features", "values"))
            return columns_of(pruned, self.n_features), list(done)
        collector, rest = self.sparsification.collector(*shape), []
        for block, piece in zip(blocks, self.work.each(stage, solve, ranges, *given, **options), strict=True):
            collector.add(block.start, piece["weights"].T)
            rest.append({name: piece[name] for name in piece if name != "weights"})
        return collector.finish(), rest

    def block_bytes(self, side: str, itemsize: int) -> int:
        """Memory that a task needs to solve for a block of labels."""
        n_labels = min(self.size, self.problem.n_labels)
        return itemsize * n_labels * 3 * (self.problem.n_rows * (side == "dual") + self.n_features)


def solve_directly(
    training: Training,
    side: str,
    algebra: str,
    alpha: float,
    alphas: Array,
    check: Callable[[str], Any],
    gram: Any = None,
) -> Solved:
    """Solve by a Cholesky factor in the precision `algebra`, or by eigenvectors if it is "spectral".

    A factor in float32 is used only if it is precise enough for all labels, else one in float64, and eigenvectors if
    there is no factor. `check` is called with the algebra before memory for it is allocated. `gram` is X'X or XX' in
    the precision `algebra` if it is known; it is overwritten.
    """
    if algebra == "float32":
        found = _by_factor(training, side, "float32", alpha, gram)
        if found is not None:
            return found
        _log.info("the features are too ill-conditioned for single precision; factoring in double precision")
        check("float64")
        gram = None
    if algebra != "spectral":
        found = _by_factor(training, side, "float64", alpha, gram)
        if found is not None:
            return found
        _log.info("the Gram matrix is too ill-conditioned for Cholesky; using its eigendecomposition")
        check("spectral")
    return solve_by_eigenvectors(training, side, find_eigenvectors(training, side), alphas)


def find_eigenvectors(training: Training, side: str) -> Results:
    """The eigenvalues and eigenvectors of the Gram matrix of one side."""
    work = training.work
    n = training.problem.n_rows if side == "dual" else training.n_features
    gram = gram_of(work, training.given, training.problem, side, "float64")
    memory = np.array([gram_bytes("spectral", n)])
    return work.run("finding-eigenvectors", _eigen, [(0, 1)], gram, memory=memory)


def solve_by_eigenvectors(training: Training, side: str, found: Results, alphas: Array) -> Solved:
    """Solve by the eigenvectors in the only result of a stage, with one alpha for each label."""
    kept = training.work.keep("alphas", {"alphas": alphas})
    memory = training.block_bytes(side, 8)
    return Solved(
        training.blocks_solved("solving-for-labels", _solve_by_eigenvectors, side, found, kept, memory=memory)[0], 0
    )


@blas_threads(1)
def _eigen(gram: Array, start: int, stop: int) -> Piece:
    values, vectors = eigenvectors(gram)
    # LAPACK's vectors are the columns of a matrix in Fortran's order: stored as rows, they are not copied.
    return {"values": values, "vectors": vectors.T}


@blas_threads(1)
def _solve_by_eigenvectors(
    problem: Any,
    size: int,
    sparsification: Sparsification,
    side: str,
    found: Results,
    kept: Piece,
    start: int,
    stop: int,
) -> Piece:
    block = _block(problem, size, start)
    spectral = Spectral(problem, side, found[0]["values"], found[0]["vectors"].T)
    return _kept(sparsification, spectral.solve(block, kept["alphas"][block]))


def _block(problem: Any, size: int, number: int) -> slice:
    return slice(number * size, min((number + 1) * size, problem.n_labels))


def _kept(sparsification: Sparsification, weights: Array) -> dict[str, Array]:
    """What is kept of the weights of a block, one label per row."""
    return sparsification.pruned(weights) if sparsification.prunes else {"weights": np.ascontiguousarray(weights.T)}


def _by_factor(training: Training, side: str, precision: str, alpha: float, gram: Any) -> Solved | None:
    """Solve by a Cholesky factor; None if there is none, or if float32 is not precise enough."""
    work, problem, itemsize = training.work, training.problem, np.dtype(precision).itemsize
    n = problem.n_rows if side == "dual" else training.n_features
    if gram is None:
        gram = gram_of(work, training.given, problem, side, precision)
    memory = np.array([gram_bytes(precision, n)])
    factor = work.run(f"{precision}_factoring", _factored, [(0, 1)], gram, alpha, work.jobs, memory=memory)
    if factor[0]["failed"][0]:
        return None

    def checked(name: str, labels: list[int]) -> tuple[bool, float]:
        arguments = training.given, side, factor, alpha, labels
        needed = np.array([8 * len(labels) * (n + training.n_features) + 16 * problem.n_rows])
        [piece] = work.run(f"{precision}_{name}", _checked, [(0, 1)], *arguments, memory=needed)
        return bool(piece["precise"][0]), float(piece["leans"][0])

    passed = 0.0
    if precision == "float32" and problem.n_labels:
        few = np.unique(np.linspace(0, problem.n_labels - 1, _PROBED_LABELS).astype(int)).tolist()
        precise, passed = checked("checking-a-few-labels", few)
        if not precise:
            return None
    arguments, stage = (side, factor, alpha), f"{precision}_solving-for-labels"
    needed = training.block_bytes(side, itemsize)
    coefficients, told = training.blocks_solved(stage, _solve_by_factor, *arguments, memory=needed)
    hardest = max(told, key=lambda piece: float(piece["leans"][0]), default=None)
    # A check visits all rows: only the hardest label is checked, if it is harder than those that have passed.
    if hardest is not None and hardest["leans"][0] > passed:
        precise, _ = checked("checking-the-hardest-label", [int(hardest["hardest"][0])])
        if not precise and precision == "float32":
            return None
        if not precise:
            _log.warning("the features are too ill-conditioned even for double precision; scale or centre them")
    return Solved(coefficients, 0)


def _factored(gram: Array, alpha: float, n_jobs: int | None, start: int, stop: int) -> Piece:
    factor = Factor.of(gram, alpha, n_jobs)
    failed = {"failed": np.array([factor.failed])}
    return failed if factor.failed else {"upper": factor.upper, "diagonal": factor.diagonal, **failed}


def _factor(results: Results, alpha: float) -> Factor:
    return Factor(results[0]["upper"], results[0]["diagonal"], alpha, failed=False)


@blas_threads(1)
def _solve_by_factor(
    problem: Any,
    size: int,
    sparsification: Sparsification,
    side: str,
    results: Results,
    alpha: float,
    start: int,
    stop: int,
) -> Piece:
    block, factor = _block(problem, size, start), _factor(results, alpha)
    right = problem.right(side, block, factor.upper.dtype.type)
    solution = factor.solve(right.copy())
    hardest, leans = factor.hardest(right, solution)
    weights = np.ascontiguousarray(problem.weights(side, solution), dtype=np.float32)
    told = {"hardest": np.array([block.start + hardest]), "leans": np.array([leans])}
    return _kept(sparsification, weights) | told


@blas_threads(1)
def _checked(
    problem: Any, side: str, results: Results, alpha: float, labels: list[int], start: int, stop: int
) -> Piece:
    """Whether the hardest of some labels is solved precisely enough, and how hard it is."""
    factor = _factor(results, alpha)
    right = np.concatenate([problem.right(side, slice(each, each + 1), factor.upper.dtype.type) for each in labels])
    solution = factor.solve(right.copy())
    hardest, leans = factor.hardest(right, solution)
    exact = problem.right(side, slice(labels[hardest], labels[hardest] + 1), np.float64)
    precise = factor.is_precise(problem, side, exact, solution[[hardest]])
    return {"precise": np.array([precise]), "leans": np.array([leans])}


def prepare_gradients(training: Training, alphas: Array, tol: float, max_iter: int) -> Results:
    """The preconditioner, the number of iterations of a few labels, and whether float32 has misled them."""
    n_rows, n_features = training.problem.n_rows, training.n_features
    size = basis_size(n_rows, n_features, len(alphas))
    kept = training.work.keep("alphas", {"alphas": alphas})
    memory = np.array([4 * max(size, _PROBED_LABELS) * (5 * n_features + n_rows) + 16 * n_rows])
    stage = "preparing-conjugate-gradients"
    return training.work.run(stage, _prepared, [(0, 1)], training.given, kept, size, tol, max_iter, memory=memory)


@blas_threads(1)
def _prepared(problem: Problem, kept: Piece, size: int, tol: float, max_iter: int, start: int, stop: int) -> Piece:
    alphas = np.asarray(kept["alphas"])
    preconditioner = Preconditioner.of(problem, float(np.median(alphas)) if len(alphas) else 1.0, size)
    gradients = ConjugateGradients(problem, preconditioner, tol, max_iter)
    misled = gradients.are_misled(alphas)
    return preconditioner._asdict() | {"misled": np.array([misled]), **_told(gradients)}


def solve_by_gradients(training: Training, prepared: Results, alphas: Array, tol: float, max_iter: int) -> Solved:
    """Solve by conjugate gradients, with what `prepare_gradients` returns."""
    if prepared[0]["misled"][0]:
        _log.info("single precision misleads conjugate gradients; refining in double precision")
    kept = training.work.keep("alphas", {"alphas": alphas})
    memory = 4 * min(training.size, len(alphas)) * (12 * training.n_features + 2 * training.problem.n_rows)
    arguments = kept, prepared, tol, max_iter
    stage = "solving-for-labels"
    coefficients, told = training.blocks_solved(stage, _solve_by_gradients, *arguments, memory=memory)
    told = [*prepared, *told]
    if any(piece["stopped"][0] for piece in told):
        _log.warning("conjugate gradients stopped at max_iter=%d before reaching tol", max_iter)
    error = max(float(piece["error"][0]) for piece in told)
    if error:
        _log.warning(
            "conjugate gradients reached a relative error of %.0e, not tol=%.0e: the features are too ill-conditioned; "
            "use solver='primal' or 'dual', or scale the features",
            error,
            tol,
        )
    return Solved(coefficients, max(int(piece["iterations"][0]) for piece in told))


@blas_threads(1)
def _solve_by_gradients(
    problem: Problem,
    size: int,
    sparsification: Sparsification,
    kept: Piece,
    prepared: Results,
    tol: float,
    max_iter: int,
    start: int,
    stop: int,
) -> Piece:
    block, piece = _block(problem, size, start), prepared[0]
    preconditioner = Preconditioner(*(np.asarray(piece[name]) for name in Preconditioner._fields))
    gradients = ConjugateGradients(problem, preconditioner, tol, max_iter)
    weights = gradients.solve(block, np.asarray(kept["alphas"])[block], refine=bool(piece["misled"][0]))
    return _kept(sparsification, weights) | _told(gradients)


def _told(gradients: ConjugateGradients) -> dict[str, Array]:
    return {
        "iterations": np.array([gradients.iterations]),
        "stopped": np.array([gradients.stopped]),
        "error": np.array([gradients.error]),
    }
