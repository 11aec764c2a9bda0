"""The stages that choose alpha: a path of alphas for sampled rows, and leave-one-out rankings by blocks of labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail.arrays import Array
from longtail.native import kernels
from longtail.parallel import blas_threads, split
from longtail.ridge.leave_one_out import FactoredPath, Path, SpectralPath, leave_one_out, left_of
from longtail.ridge.pieces import gram_of
from longtail.ridge.problem import Problem
from longtail.ridge.solvers import Spectral
from longtail.ridge.training import Training, find_eigenvectors
from longtail.work import Kept, Piece, Results


@dataclass(frozen=True)
class FoundPath:
    """A path as an argument of stages, and what it was made from: a Gram matrix or eigenvectors."""

    path: Any
    gram: Any = None
    eigenvectors: Results | None = None


@dataclass(frozen=True)
class StoredPath(Kept):
    """A path in files: the results of `_left` for each alpha, or eigenvectors."""

    given: Any
    side: str
    kept: Any
    lefts: Results | None
    eigenvectors: Results | None

    @blas_threads(1)
    def open(self) -> Path:
        problem, kept = self.given.open(), self.kept.open()
        if self.eigenvectors is not None:
            [found] = self.eigenvectors
            spectral = Spectral(problem, self.side, found["values"], found["vectors"].T)
            return SpectralPath(spectral, kept["rows"], kept["alphas"])
        assert self.lefts is not None
        return LeftFactors(problem, self.side, list(self.lefts))


class LeftFactors:
    """A path whose left factors are known."""

    def __init__(self, problem: Problem, side: str, pieces: list[Piece]) -> None:
        self._problem, self._side, self._pieces = problem, side, pieces
        self.leverage = np.column_stack([piece["leverage"] for piece in pieces])

    def left(self, which: int) -> Array:
        return self._pieces[which]["left"]

    def right(self, block: slice) -> Array:
        return self._problem.right(self._side, block, np.float32)


def factored_path(training: Training, side: str, rows: Array, alphas: Array) -> FoundPath | None:
    """The path from one Cholesky factor per alpha; None if single precision is not enough."""
    work, problem = training.work, training.problem
    if not work.is_stored:
        path = FactoredPath(problem, side, rows, alphas, work.jobs)
        return None if path.failed else FoundPath(path, path.gram)
    gram = gram_of(work, training.given, problem, side, "float32")
    kept = work.keep("sampled", {"rows": rows, "alphas": alphas})
    n = problem.factored(side)[0].shape[1]
    memory = np.full(len(alphas), 4 * n * (n + 3 * len(rows)))
    ranges = [(which, which + 1) for which in range(len(alphas))]
    lefts = work.run("factoring-the-path", _left, ranges, training.given, side, gram, kept, memory=memory)
    if any(piece["failed"][0] for piece in lefts):
        return None
    return FoundPath(StoredPath(training.given, side, kept, lefts, None), gram)


@blas_threads(1)
def _left(problem: Problem, side: str, gram: Array, kept: Piece, start: int, stop: int) -> Piece:
    found = left_of(problem, side, np.asarray(kept["rows"]), gram, float(kept["alphas"][start]), 1)
    if found is None:
        return {"failed": np.array([True])}
    return {"failed": np.array([False]), "left": found[0], "leverage": found[1]}


def spectral_path(training: Training, side: str, rows: Array, alphas: Array) -> FoundPath:
    """The path from one eigendecomposition."""
    work = training.work
    found = find_eigenvectors(training, side)
    if work.is_stored:
        kept = work.keep("sampled", {"rows": rows, "alphas": alphas})
        return FoundPath(StoredPath(training.given, side, kept, None, found), eigenvectors=found)
    spectral = Spectral(training.problem, side, found[0]["values"], found[0]["vectors"].T)
    with blas_threads(1):
        return FoundPath(SpectralPath(spectral, rows, alphas), eigenvectors=found)


def rank_without_each_row(
    training: Training, path: FoundPath, rows: Array, n_alphas: int, k: int, size: int, scale: Array | None
) -> list[Array]:
    """For each alpha, the k best labels of `rows`, each ranked by the model trained without it.

    `size` is the number of labels scored at once; `scale` multiplies the scores of each label.
    """
    n_labels = training.problem.n_labels
    blocks = split(n_labels, size)
    kept = training.work.keep("ranked", {"rows": rows, **({} if scale is None else {"scale": scale})})
    memory = np.full(len(blocks), 4 * min(size, n_labels) * (4 * len(rows) + training.problem.n_rows))
    costs = np.array([block.stop - block.start for block in blocks], dtype=np.int64)
    ranges = [(number, number + 1) for number in range(len(blocks))]
    arguments = training.given, path.path, kept, n_alphas, k, size
    labels = np.full((n_alphas, len(rows), k), -1, dtype=np.int64)
    scores = np.full((n_alphas, len(rows), k), -np.inf, dtype=np.float32)
    for piece in training.work.each("leave-one-out", _ranked, ranges, *arguments, costs=costs, memory=memory):
        both = [np.concatenate(pair, axis=2) for pair in ((labels, piece["labels"]), (scores, piece["scores"]))]
        # Blocks come in order, so ties go to the lowest label.
        best = np.argsort(-both[1], axis=2, kind="stable")[:, :, :k]
        labels, scores = (np.take_along_axis(part, best, axis=2) for part in both)
    return list(labels)


@blas_threads(1)
def _ranked(
    problem: Problem, path: Path, kept: Piece, n_alphas: int, k: int, size: int, start: int, stop: int
) -> Piece:
    """The best labels of one block, for each alpha and row."""
    rows, scale = np.asarray(kept["rows"]), kept.get("scale")
    block = slice(start * size, min(stop * size, problem.n_labels))
    labels = np.full((n_alphas, len(rows), k), -1, dtype=np.int64)
    best = np.full((n_alphas, len(rows), k), -np.inf, dtype=np.float32)
    for which, scores in leave_one_out(path, problem, rows, n_alphas, block):
        if scale is not None:
            scores *= scale[block]
        kernels.update_topk(scores, block.start, None, labels[which], best[which])
    return {"labels": labels, "scores": best}
