"""Earlier methods that learn fewer targets than labels, which the paper compares with, each in its simplest form.

All of them fit ridge to centred features and labels through one eigendecomposition (`Regression`), which serves every
method and every alpha. They differ in the targets and in how these are decoded to scores of all labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import eigsh

from longtail.arrays import Array
from longtail.native import kernels
from longtail.parallel import split
from longtail.ridge import Problem, Spectral, column_sums
from longtail.validation import as_features, as_labels

_ROWS = 1024
_FEW_OF = 8  # Lanczos is used for fewer than an eighth of the eigenvectors
_LEAST = 1e-10  # relative to the largest eigenvalue; smaller ones are rounding errors


class Ranker(Protocol):
    def predict_topk(self, X: Any, k: int = 5) -> tuple[Array, Array]: ...


class Regression:
    """Ridge with an intercept for any targets, after one eigendecomposition of X'X.

    Parameters
    ----------
    X : sparse matrix or array of shape (n_rows, n_features)
        Should have few features.
    Y : sparse or dense 0/1 matrix of shape (n_rows, n_labels)

    Examples
    --------
    >>> regression = Regression(np.array([[1.0], [-1.0]]), np.array([[1, 0], [0, 1]]))
    >>> regression.weights(regression.cross, alpha=2.0)
    array([[ 0.25, -0.25]])
    """

    def __init__(self, X: Any, Y: Any) -> None:
        self.X = as_features(X)
        self.Y = as_labels(Y, n_rows=self.X.shape[0])
        problem = Problem.build(self.X, self.Y, fit_intercept=True)
        self.mean, self.label_mean = (column_sums(matrix) / problem.n_rows for matrix in (self.X, self.Y))
        self._spectral = Spectral.of(problem, "primal", None)
        # X'Y of the centred matrices. All targets below are linear in Y, so they need nothing else.
        self.cross = problem.right("primal", slice(0, self.Y.shape[1]), np.float64).T

    def weights(self, cross: Array, alpha: float | Array) -> Array:
        """(X'X + alpha I)^-1 cross; `alpha` may differ by column."""
        alphas = np.broadcast_to(np.asarray(alpha, dtype=np.float64), cross.shape[1])
        vectors = self._spectral.vectors
        return np.asarray(vectors @ ((vectors.T @ cross) / (self._spectral.values[:, None] + alphas)))

    def fitted(self, weights: Array) -> Array:
        """The centred X times the weights."""
        return np.asarray(self.X @ weights - self.mean @ weights)


@dataclass(frozen=True)
class LowRank:
    """Scores (x - mean) weights codes + label_mean."""

    weights: Array
    codes: Array
    mean: Array
    label_mean: Array

    def predict_topk(self, X: Any, k: int = 5) -> tuple[Array, Array]:
        """The k best labels of each row and their scores."""
        X = as_features(X, n_features=len(self.mean), owner="LowRank")
        labels = np.full((X.shape[0], k), -1, dtype=np.int64)
        scores = np.full((X.shape[0], k), -np.inf, dtype=np.float32)
        offset = self.label_mean - (self.mean @ self.weights) @ self.codes
        for rows in split(X.shape[0], _ROWS):
            block = ((X[rows] @ self.weights) @ self.codes + offset).astype(np.float32)
            kernels.update_topk(block, 0, None, labels[rows], scores[rows])
        return labels, scores


def cplst(regression: Regression, n_targets: int, alpha: float) -> LowRank:
    """Conditional principal label space transformation (Chen & Lin, NIPS 2012).

    Labels are projected on the leading eigenvectors V of Y'HY, with H = X(X'X + alpha I)^-1 X': the directions of
    large variance that the features can predict. Scores are projected back with V'.
    """
    full = regression.weights(regression.cross, alpha)
    directions = _leading(regression.cross.T @ full, n_targets)
    return _low_rank(regression, full @ directions, directions.T)


def ml_cssp(regression: Regression, n_targets: int, alpha: float, seed: int = 0) -> LowRank:
    """Column subset selection (Bi & Kwok, ICML 2013).

    Labels are drawn with probabilities proportional to their leverage, the squared length of their row in the leading
    right singular vectors of Y, until there are `n_targets` different ones; all others are linear in these.
    """
    Y = regression.Y.astype(np.float64)
    gram = (Y.T @ Y).toarray()
    leverage = (_leading(gram, n_targets) ** 2).sum(axis=1)
    drawable = np.flatnonzero(np.diagonal(gram) > 0)
    chances = np.maximum(leverage[drawable], _LEAST)
    # Drawing a label again changes nothing, so labels can be drawn without replacement.
    count = min(n_targets, len(drawable))
    chosen = np.random.default_rng(seed).choice(drawable, count, replace=False, p=chances / chances.sum())
    centred = gram - Y.shape[0] * np.outer(regression.label_mean, regression.label_mean)
    codes = linalg.pinvh(centred[np.ix_(chosen, chosen)], rtol=_LEAST) @ centred[chosen]
    return _low_rank(regression, regression.weights(regression.cross[:, chosen], alpha), codes)


def leml(regression: Regression, n_targets: int, alpha: float, sweeps: int = 15) -> LowRank:
    """Low-rank empirical risk minimisation with squared loss (Yu et al., ICML 2014).

    Minimises ||Y - X W H'||^2 + alpha (||W||^2 + ||H||^2) alternately. H is ridge on n_targets columns. For W, with
    H'H = Q diag(s) Q', each column of WQ is a ridge problem with penalty alpha / s. It is solved exactly, where the
    original takes steps of conjugate gradients.
    """
    directions = np.random.default_rng(0).normal(size=(regression.Y.shape[1], n_targets))
    directions /= np.sqrt(len(directions))
    weights = np.zeros((regression.cross.shape[0], n_targets))
    for _ in range(sweeps):
        strength, turn = linalg.eigh(directions.T @ directions)
        strength = np.maximum(strength, _LEAST * max(strength[-1], _LEAST))
        right = (regression.cross @ (directions @ turn)) / strength
        weights = regression.weights(right, alpha / strength) @ turn.T
        fitted = regression.fitted(weights)
        gram = fitted.T @ fitted + alpha * np.eye(n_targets)
        # The columns of `fitted` sum to zero, so Y need not be centred.
        directions = linalg.solve(gram, (regression.Y.T @ fitted).T, assume_a="pos").T
    return _low_rank(regression, weights, directions.T)


@dataclass(frozen=True)
class Compressed:
    """Random projections of labels, predicted, and decoded by orthogonal matching pursuit."""

    weights: Array
    mean: Array
    offset: Array
    projection: Array
    sparsity: int

    def predict_topk(self, X: Any, k: int = 5) -> tuple[Array, Array]:
        """The k labels of each row with the largest decoded values, and the values; -1 beyond the decoded labels."""
        X = as_features(X, n_features=len(self.mean), owner="Compressed")
        labels = np.full((X.shape[0], k), -1, dtype=np.int64)
        scores = np.full((X.shape[0], k), -np.inf, dtype=np.float32)
        for rows in split(X.shape[0], _ROWS):
            targets = X[rows] @ self.weights - self.mean @ self.weights + self.offset
            found, values = matching_pursuit(self.projection, targets, self.sparsity)
            order = np.lexsort((found, -values), axis=1)[:, :k]
            width = order.shape[1]
            labels[rows, :width] = np.take_along_axis(found, order, axis=1)
            scores[rows, :width] = np.take_along_axis(values, order, axis=1)
        return labels, scores


def compressed_sensing(regression: Regression, n_targets: int, alpha: float, sparsity: int = 10) -> Compressed:
    """Compressed sensing (Hsu et al., NIPS 2009): regress on Y A' for a random A and recover sparse labels.

    Recovery is orthogonal matching pursuit with `sparsity` labels for every row.
    """
    n_labels = regression.Y.shape[1]
    projection = np.random.default_rng(0).normal(size=(n_targets, n_labels)) / np.sqrt(n_targets)
    weights = regression.weights(regression.cross @ projection.T, alpha)
    return Compressed(
        weights, regression.mean, projection @ regression.label_mean, projection, min(sparsity, n_labels, n_targets)
    )


def matching_pursuit(projection: Array, targets: Array, sparsity: int) -> tuple[Array, Array]:
    """Labels and values with projection[:, labels] values ~ targets, for all rows of targets at once.

    Each step adds the label whose column fits the residual best and refits the values of all chosen labels.

    Examples
    --------
    >>> projection = np.array([[1.0, 0.0, 0.6], [0.0, 1.0, 0.8]])
    >>> matching_pursuit(projection, np.array([[3.0, 4.0]]), 1)
    (array([[2]]), array([[5.]]))
    """
    rows = np.arange(len(targets))
    length = np.maximum(np.linalg.norm(projection, axis=0), _LEAST)
    gram = projection.T @ projection
    start = targets @ projection
    chosen = np.zeros((len(targets), 0), dtype=np.int64)
    values = np.zeros((len(targets), 0))
    fit = start
    for _ in range(sparsity):
        match = np.abs(fit) / length
        match[rows[:, None], chosen] = -1
        chosen = np.concatenate([chosen, match.argmax(axis=1)[:, None]], axis=1)
        inner = gram[chosen[:, :, None], chosen[:, None, :]] + _LEAST * np.eye(chosen.shape[1])
        values = np.linalg.solve(inner, np.take_along_axis(start, chosen, axis=1)[:, :, None])[:, :, 0]
        fit = (targets - np.einsum("ns,nst->nt", values, projection.T[chosen])) @ projection
    return chosen, values


def _leading(matrix: Array, count: int) -> Array:
    """Eigenvectors of the largest eigenvalues of a symmetric matrix, one per column."""
    size = len(matrix)
    count = min(count, size)
    symmetric = (matrix + matrix.T) / 2
    if size > _FEW_OF * count:
        # A fixed start vector makes Lanczos deterministic.
        values, vectors = eigsh(symmetric, count, which="LA", v0=np.ones(size))
        return np.asarray(vectors[:, np.argsort(-values)])
    _, vectors = linalg.eigh(symmetric, subset_by_index=[size - count, size - 1])
    return np.asarray(vectors[:, ::-1])


def _low_rank(regression: Regression, weights: Array, codes: Array) -> LowRank:
    return LowRank(weights, codes, regression.mean, regression.label_mean)
