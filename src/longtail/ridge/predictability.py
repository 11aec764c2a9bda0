"""How well each label can be predicted from the features: the leave-one-out R2 of one ridge fit.

One Cholesky factor serves all labels and rows; predictions are held for one block of labels at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from longtail import progress
from longtail.arrays import Array
from longtail.errors import InvalidInput
from longtail.estimator import check_training, column_counts
from longtail.native import kernels
from longtail.parallel import split
from longtail.parameters import Number
from longtail.ridge.cost import Shape, cheapest, estimate_path
from longtail.ridge.leave_one_out import FactoredPath, Path, SpectralPath, remaining
from longtail.ridge.problem import Problem
from longtail.ridge.solvers import Spectral

_ENTRIES = 4e8  # default limit for rows x min(rows, features), the size of the matrix held
_DECIMALS = 5  # the limit of single precision; labels with the same rows get the same score


def label_predictability(
    X: Any,
    Y: Any,
    *,
    alpha: float | None = None,
    fit_intercept: bool = True,
    sample: int | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> Array:
    """Return the cross-validated R2 of each label under ridge: every row is predicted by the model trained without it.

    Parameters
    ----------
    X : sparse matrix or array of shape (n_rows, n_features)
    Y : sparse or dense 0/1 matrix of shape (n_rows, n_labels)
    alpha : float or None
        The penalty; None takes the mean squared length of the rows, which is 1 for rows of unit length.
    fit_intercept : bool
    sample : int or None
        Maximum number of rows to use. None uses all rows, or as many as fit into 1.6 GB.
    random_state : int
        Random seed for the sample.
    n_jobs : int or None
        Number of threads; None uses every core.

    Returns
    -------
    array of n_labels
        1 - sum of squared errors / sum of squared deviations from the mean, to five decimals: 1 for a label predicted
        without error, below 0 for a label that its mean predicts better, and 0 for a label that no row or every row
        has.

    Examples
    --------
    >>> X = [[1, 0], [1, 0], [1, 0], [0, 1], [0, 1], [0, 1]]
    >>> Y = [[1, 1, 0], [1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 0], [0, 0, 0]]
    >>> label_predictability(X, Y, alpha=0.01).round(2).tolist()
    [1.0, -1.25, 0.0]
    """
    X, Y = check_training(X, Y, "label_predictability")
    constraints = {
        "alpha": (alpha, Number(above=0, optional=True)),
        "sample": (sample, Number(low=2, whole=True, optional=True)),
        "random_state": (random_state, Number(low=0, whole=True)),
    }
    for name, (value, constraint) in constraints.items():
        if not constraint.accepts(value):
            raise InvalidInput(f"label_predictability: {name} is {value!r}; expected {constraint.describe()}")
    n_rows = _affordable(X.shape) if sample is None else sample
    if n_rows < X.shape[0]:
        rows = np.sort(np.random.default_rng(random_state).choice(X.shape[0], n_rows, replace=False))
        X, Y = X[rows], Y[rows]
    n_rows = X.shape[0]
    counts = column_counts(Y)
    varying = np.flatnonzero((counts > 0) & (counts < n_rows))
    scores = np.zeros(Y.shape[1])
    if len(varying) == 0 or n_rows < 2:
        return scores
    if alpha is None:
        alpha = float(X.data.astype(np.float64) @ X.data) / n_rows or 1.0
    problem = Problem.build(X, Y, fit_intercept).select(varying)
    errors = _squared_errors(problem, Shape.of(X, Y), np.array([alpha]), n_jobs)
    counts = counts[varying]
    scores[varying] = np.round(1 - errors / (counts * (1 - counts / n_rows)), _DECIMALS)
    return scores


def _affordable(shape: tuple[int, int]) -> int:
    """Number of rows for which rows x min(rows, features) stays within the limit."""
    n_rows, n_features = shape
    if n_rows * min(n_rows, n_features) <= _ENTRIES:
        return n_rows
    return int(max(_ENTRIES**0.5, _ENTRIES // n_features))


class _Fitted:
    """Fitted values without the mean of the labels, one label per row."""

    def __init__(self, problem: Problem, shape: Shape, alphas: Array, n_jobs: int | None, block: int) -> None:
        self._problem = problem
        n_rows = problem.X.shape[0]
        rows = np.arange(n_rows)
        chosen = cheapest([estimate_path(shape, side, False, 1, n_rows, block, 1, 0) for side in ("primal", "dual")])
        chosen.plan.check()
        path: Any = FactoredPath(problem, chosen.solver, rows, alphas, n_jobs)
        self._smoother: Array | None = None
        if path.failed:
            estimate_path(shape, chosen.solver, True, 1, n_rows, block, 1, 0).plan.check()
            path = SpectralPath(Spectral.of(problem, chosen.solver, n_jobs), rows, alphas)
        elif chosen.solver == "dual":
            self._smoother = path.left(0)
            self._sums = self._smoother.sum(axis=0)
        self._path: Path = path
        self.remaining = remaining(path, problem)[1][:, 0]

    def of(self, block: slice) -> Array:
        if self._smoother is None:
            return np.asarray(self._path.right(block) @ self._path.left(0).T, dtype=np.float32)
        # The smoother is symmetric and a label has few rows: summing its rows is much cheaper than a product with dense
        # targets.
        Yt = self._problem.Yt
        out = np.empty((block.stop - block.start, len(self._smoother)), dtype=np.float32)
        kernels.multiply(Yt.indptr[block.start : block.stop + 1], Yt.indices, Yt.data, self._smoother, out)
        if self._problem.label_mean is not None:
            out -= self._problem.label_mean[block, None] * self._sums[None, :]
        return out


def _squared_errors(problem: Problem, shape: Shape, alphas: Array, n_jobs: int | None) -> Array:
    """The sum of squared leave-one-out errors of each label."""
    n_rows, n_labels = problem.X.shape[0], problem.Yt.shape[0]
    size = int(np.clip(2**23 // n_rows, 16, 2048))
    fitted = _Fitted(problem, shape, alphas, n_jobs, size)
    errors = np.empty(n_labels)
    with progress.task("predictability of labels", total=n_labels) as advance:
        for block in split(n_labels, size):
            residuals = fitted.of(block)
            if problem.label_mean is not None:
                residuals += problem.label_mean[block, None]
            starts = problem.Yt.indptr[block.start : block.stop + 1]
            labels = np.repeat(np.arange(block.stop - block.start), np.diff(starts))
            residuals[labels, problem.Yt.indices[starts[0] : starts[-1]]] -= 1
            residuals /= fitted.remaining
            errors[block] = np.einsum("ij,ij->i", residuals, residuals, dtype=np.float64)
            advance(block.stop - block.start)
    return errors
