"""The cost of each solver of ridge, from which `solver="auto"` chooses.

Costs are counted in dense multiply-adds; an operation on sparse data costs more because it waits for memory. The counts
depend only on the data, so the same data gets the same solver on every machine where all solvers fit in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail.memory import MemoryPlan, available_memory
from longtail.ridge.conjugate import basis_size
from longtail.ridge.gram import column_lengths

# Relative cost of one operation, timed separately; the unit is a dense multiply-add in BLAS.
_SPARSE_PRODUCT = 5.0
_SPARSE_GRAM = 65.0
_VECTOR = 20.0
_EIGEN = 10.0

_SMALL = 3e8  # multiply-adds of factoring and solving below which double precision costs next to nothing

_LARGEST_BLOCK = 512  # labels
_BLOCKS = 4  # so that the threads of a small machine end together

_GRAM_BYTES = {"float32": 4, "float64": 8, "spectral": 36}  # for each entry, including the workspace of LAPACK


@dataclass(frozen=True)
class Shape:
    """The sizes that decide: rows, features, labels, non-zeros, and the work of each Gram matrix."""

    n_rows: int
    n_features: int
    n_labels: int
    non_zeros: int
    primal_pairs: float
    dual_pairs: float
    label_non_zeros: int

    @classmethod
    def of(cls, X: Any, Y: Any) -> Shape:
        rows = np.diff(X.indptr).astype(np.float64)
        columns = column_lengths(X)
        return cls(
            n_rows=X.shape[0],
            n_features=X.shape[1],
            n_labels=Y.shape[1],
            non_zeros=X.nnz,
            primal_pairs=float(rows @ rows) / 2,
            dual_pairs=float(columns @ columns) / 2,
            label_non_zeros=Y.nnz,
        )

    def side(self, solver: str) -> int:
        """Number of rows of the Gram matrix that `solver` would factor."""
        return self.n_rows if solver == "dual" else self.n_features


@dataclass(frozen=True)
class Estimate:
    """Work (in dense multiply-adds) and peak memory of one solver on one problem."""

    solver: str
    work: float
    plan: MemoryPlan
    algebra: str


ADVICE = (
    "Keep fewer weights (density or prune), use fewer features (max_features, min_df), "
    "choose solver='cg', or set a smaller block_size."
)


def block_size(n_labels: int, side: int) -> int:
    """Number of labels solved at once: at most about 64 MiB for each array, and a multiple of four blocks if possible.

    Larger blocks are hardly faster. The size must not depend on the number of threads, on which the bits would depend.
    """
    largest = int(np.clip(2**24 // max(1, side), 16, _LARGEST_BLOCK))
    blocks = _BLOCKS * -(-n_labels // (_BLOCKS * largest))
    return max(16, -(-n_labels // max(1, blocks)))


def cholesky_precisions(side: int, n_labels: int) -> tuple[str, ...]:
    """The precisions to start with, the best first: "float64" only if that costs next to nothing."""
    return ("float64", "float32") if side**2 * (side / 6 + n_labels) <= _SMALL else ("float32",)


def gram_bytes(algebra: str, side: int) -> int:
    """Bytes of a Gram matrix and its factor or eigenvectors."""
    return _GRAM_BYTES[algebra] * side**2


def estimate(shape: Shape, solver: str, algebra: str, iterations: int, block: int, jobs: int, weights: int) -> Estimate:
    """Return the cost of `solver` (primal, dual or cg); `weights` is in bytes.

    `algebra` is "float32" or "float64" for a Cholesky factor in that precision, or "spectral" for eigenvectors.
    """
    n, d, labels = shape.n_rows, shape.n_features, shape.n_labels
    at_once = min(jobs * block, labels)  # labels that are solved for at the same time
    parts = {"copies of the features": 32 * shape.non_zeros, "labels": 16 * shape.label_non_zeros, "weights": weights}
    if solver == "cg":
        basis = basis_size(n, d, labels)
        work = iterations * labels * (2 * _SPARSE_PRODUCT * shape.non_zeros + (4 * _VECTOR + 2 * basis) * d)
        parts["label blocks"] = 4 * at_once * (12 * d + 2 * n)
        parts["preconditioner"] = 4 * basis * (5 * d + n)
    else:
        side = shape.side(solver)
        pairs = shape.primal_pairs if solver == "primal" else shape.dual_pairs
        work = _SPARSE_GRAM * pairs + (_EIGEN * side**3 if algebra == "spectral" else side**3 / 6)
        work += side**2 * labels
        entry = 4 if algebra == "float32" else 8
        parts["Gram matrix"] = gram_bytes(algebra, side)
        parts["label blocks"] = 3 * entry * at_once * side
        if solver == "dual":
            work += _SPARSE_PRODUCT * shape.non_zeros * labels
            parts["label blocks"] += 3 * entry * at_once * d
    return Estimate(solver, work, MemoryPlan(f"ridge with solver={solver!r}", parts, ADVICE), algebra)


def sum_parts(X: Any, Y: Any, known: Any) -> dict[str, int]:
    """Bytes of the sums over the rows of `X` and `Y`, plus those of `known` sums and of the total if there are any."""
    side = X.shape[1]
    # A row contributes one sum for each pair of label and feature.
    pairs = min(Y.shape[1] * side, int(np.diff(X.indptr).astype(np.int64) @ np.diff(Y.indptr)))
    parts = {"copies of the features": 32 * X.nnz, "sums of features": 8 * side**2, "sums of labels": 16 * pairs}
    if known is not None:
        parts["sums of features"] *= 3
        parts["sums of labels"] = 2 * (parts["sums of labels"] + 16 * known.cross.nnz)
    return parts


def plan_for_sums(side: int, algebra: str, block: int, weights: int, parts: dict[str, int]) -> MemoryPlan:
    """Memory to solve by `algebra` from the sums in `parts`."""
    solving = {"Gram matrix": gram_bytes(algebra, side), "label blocks": 3 * 8 * block * side, "weights": weights}
    advice = "Updates need a Gram matrix of all features: use fewer features (max_features, min_df)."
    return MemoryPlan("ridge that can be updated", {**parts, **solving}, advice)


def estimate_path(
    shape: Shape, side: str, spectral: bool, n_alphas: int, n_sampled: int, block: int, jobs: int, weights: int
) -> Estimate:
    """Return the cost of leave-one-out over a path of alphas on `n_sampled` rows, plus a fit."""
    at_once = min(jobs * block, shape.n_labels)
    fit = estimate(shape, side, "spectral" if spectral else "float32", 1, block, jobs, weights)
    size = shape.side(side)
    scoring = n_alphas * n_sampled * size * shape.n_labels
    parts = dict(fit.plan.parts)
    if spectral:
        work = fit.work + scoring + size**2 * (n_sampled + shape.n_labels)
        parts["sampled rows"] = 8 * n_sampled * (3 * size + 2 * at_once)
    else:
        work = fit.work + scoring + n_alphas * (size**3 / 6 + size**2 * n_sampled)
        parts["sampled rows"] = 4 * n_sampled * ((n_alphas + 2) * size + 2 * at_once)
        parts["Gram matrix"] *= 2
    return Estimate(side, work, MemoryPlan("ridge over a path of alphas", parts, ADVICE), fit.algebra)


def cheapest(estimates: list[Estimate]) -> Estimate:
    """The least work among those that fit in memory, the first in case of ties; the least memory if none fits."""
    limit = available_memory()
    fitting = [candidate for candidate in estimates if candidate.plan.total <= limit]
    if fitting:
        return min(fitting, key=lambda candidate: candidate.work)
    return min(estimates, key=lambda candidate: candidate.plan.total)
