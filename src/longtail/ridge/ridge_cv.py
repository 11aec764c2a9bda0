"""`RidgeCV`: ridge that chooses alpha by exact leave-one-out ranking quality.

The whole path of alphas costs one eigendecomposition, or one Cholesky factor per alpha if that is cheaper, and no
refits.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.errors import ModelFormatError
from longtail.estimator import column_weights
from longtail.metrics import ndcg_at_k, precision_at_k, psp_at_k, recall_at_k
from longtail.parallel import resolve_jobs
from longtail.parameters import Choice, Constraint, Number, Sequence
from longtail.ridge.cost import Estimate, Shape, cheapest, cholesky_precisions, estimate_path
from longtail.ridge.gram import column_squares, scale_rows
from longtail.ridge.model import RidgeModel
from longtail.ridge.path_stages import FoundPath, factored_path, rank_without_each_row, spectral_path
from longtail.ridge.pieces import prepared
from longtail.ridge.training import Training, solve_by_eigenvectors, solve_directly
from longtail.store import State
from longtail.validation import as_labels, is_binary
from longtail.work import begin, is_in_pieces

_log = logging.getLogger(__name__)

_RIGHT = 0.5  # relevance from which a label of a row is right
_RELATIVE_ALPHAS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
_METRICS = {"P": precision_at_k, "nDCG": ndcg_at_k, "PSP": psp_at_k, "R": recall_at_k}


class RidgeCV(RidgeModel):
    """Ridge with alpha chosen from a path by leave-one-out and a ranking metric.

    Parameters
    ----------
    alphas : sequence of float or None
        The path. None takes seven values from 0.03 to 30 times the mean squared length of the rows.
    metric : {"P", "nDCG", "PSP", "R"}
        The metric to compare alphas by.
    k : int
        The cutoff of the metric.
    sample : int or None
        Maximum number of rows to score. Leave-one-out predictions are exact; only the mean over rows is sampled. None
        scores every row.
    random_state : int
        Random seed for the sample.
    solver, fit_intercept, weighting, propensity, density, prune, block_size, n_jobs
        As for `Ridge`; `solver` is "auto", "primal" or "dual" and names the side of the eigendecomposition.

    Attributes
    ----------
    alpha_ : float
        The chosen alpha.
    alphas_ : array
        The path.
    cv_scores_ : array
        The metric at each alpha of the path.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail import RidgeCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 4))
    >>> Y = (X @ rng.normal(size=(4, 3)) > 0).astype(int)
    >>> model = RidgeCV(alphas=(0.1, 1.0, 10000.0)).fit(X, Y)
    >>> model.alpha_ in (0.1, 1.0)
    True
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        **RidgeModel._parameters,
        "alphas": Sequence(Number(above=0), optional=True),
        "metric": Choice(tuple(_METRICS)),
        "k": Number(low=1, whole=True),
        "sample": Number(low=1, whole=True, optional=True),
        "random_state": Number(low=0, whole=True),
        "solver": Choice(("auto", "primal", "dual")),
        "weighting": Choice((None, "target")),
    }

    def __init__(
        self,
        alphas: Any = None,
        *,
        metric: str = "nDCG",
        k: int = 5,
        sample: int | None = 2000,
        random_state: int = 0,
        solver: str = "auto",
        fit_intercept: bool = False,
        weighting: str | None = None,
        propensity: tuple[float, float] = (0.55, 1.5),
        density: float | None = None,
        prune: float | None = None,
        block_size: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.alphas = alphas
        self.metric = metric
        self.k = k
        self.sample = sample
        self.random_state = random_state
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.weighting = weighting
        self.propensity = propensity
        self.density = density
        self.prune = prune
        self.block_size = block_size
        self.n_jobs = n_jobs

    def copy_for(self, rows: str, penalty: float = 1.0) -> Self:
        """A copy of a fitted model has its alpha: another one would give scores of another scale."""
        copy = super().copy_for(rows, penalty)
        return copy.set_params(alphas=(self.alpha_ * penalty,)) if hasattr(self, "alpha_") else copy

    def _fit(self, X: Any, Y: Any, weights: Array | None) -> None:
        """Choose alpha, then solve for the weights of every label with it.

        A label is right for a row that judges alpha from a relevance of one half.
        """
        self.check_pieces()
        shape = Shape.of(X, Y)
        rows = self._sampled_rows(Y)
        self.alphas_ = self._path(X, weights)
        chosen = self.cheapest_path(shape)
        if not is_in_pieces():
            chosen.plan.check()
            _log.info("%s needs at most this memory: %s", chosen.plan.work, chosen.plan.describe())
        work = begin(self._job(), self.n_jobs, features=X, labels=Y)
        side, algebra = work.settled("solver", (chosen.solver, chosen.algebra))
        given, problem = prepared(work, self.fit_intercept, weights)
        self.inverse_propensity_ = self._label_weights(column_weights(Y, weights), problem.total)
        training = self._training(work, given, problem, shape.n_features, self._block(shape, side))
        found = factored_path(training, side, rows, self.alphas_) if algebra != "spectral" else None
        if found is None:
            if not is_in_pieces():
                self._path_estimate(shape, side, spectral=True).plan.check()
            found = spectral_path(training, side, rows, self.alphas_)
        # If no row has a label, there is nothing to choose by and the first alpha is taken.
        self.cv_scores_ = self._judge(training, found, rows, Y[rows]) if len(rows) else np.zeros(len(self.alphas_))
        self.alpha_ = float(self.alphas_[int(np.argmax(self.cv_scores_))])
        _log.info("leave-one-out %s@%d is best at alpha=%.4g", self.metric, self.k, self.alpha_)
        alphas = self._label_alphas(self.inverse_propensity_, self.alpha_)
        if found.eigenvectors is not None:
            solved = solve_by_eigenvectors(training, side, found.eigenvectors, alphas)
        else:
            precisions = cholesky_precisions(shape.side(side), shape.n_labels)
            precision = cheapest([self._estimate(shape, side, each) for each in precisions]).algebra
            [precision] = work.settled("precision", (precision,))
            gram, found = found.gram if precision == "float32" else None, None
            check = partial(self._check_plan, shape, side)
            solved = solve_directly(training, side, precision, self.alpha_, alphas, check, gram)
        self._take(solved, problem, side)

    def _path(self, X: Any, weights: Array | None) -> Array:
        if self.alphas is not None:
            return np.asarray(self.alphas, dtype=np.float64)
        if weights is None:
            scale = float(column_squares(X).sum()) / X.shape[0]
        else:
            scale = float(column_squares(scale_rows(X, np.sqrt(weights))).sum() / weights.sum(dtype=np.float64))
        return np.array(_RELATIVE_ALPHAS) * (scale or 1.0)

    def cheapest_path(self, shape: Shape) -> Estimate:
        """The side to work on, and whether one eigendecomposition is cheaper than a Cholesky factor per alpha."""
        sides = ("primal", "dual") if self.solver == "auto" else (self.solver,)
        return cheapest([self._path_estimate(shape, side, spectral) for side in sides for spectral in (False, True)])

    def _path_estimate(self, shape: Shape, side: str, spectral: bool) -> Estimate:
        weights = self._weight_bytes(shape.n_features, shape.n_labels)
        sampled = shape.n_rows if self.sample is None else min(self.sample, shape.n_rows)
        block = max(self._block(shape, side), self._cv_block(sampled))
        count = len(_RELATIVE_ALPHAS if self.alphas is None else self.alphas)
        return estimate_path(shape, side, spectral, count, sampled, block, resolve_jobs(self.n_jobs), weights)

    def _sampled_rows(self, Y: Any) -> Array:
        """The rows to score: rows with labels, at most `sample` of them."""
        rows = np.flatnonzero(np.diff(Y.indptr))
        if self.sample is None or len(rows) <= self.sample:
            return rows
        return np.sort(np.random.default_rng(self.random_state).choice(rows, self.sample, replace=False))

    def _judge(self, training: Training, path: FoundPath, rows: Array, truth: Any) -> Array:
        """The metric of the leave-one-out rankings at each alpha."""
        rankings = rank_without_each_row(
            training, path, rows, len(self.alphas_), self.k, self._cv_block(len(rows)), self._label_scale()
        )
        metric: Any = _METRICS[self.metric]
        extra = (self.inverse_propensity_,) if self.metric == "PSP" else ()
        truth = truth if is_binary(truth) else sparse.csr_array(truth >= _RIGHT)
        truth = as_labels(truth)
        return np.array([metric(truth, ranking, self.k, *extra) for ranking in rankings])

    def _cv_block(self, rows: int) -> int:
        return self.block_size or int(np.clip(2**24 // max(1, rows), 16, 2048))

    def to_state(self) -> State:
        state = super().to_state()
        arrays = {**state.arrays, "alphas": self.alphas_, "cv_scores": self.cv_scores_}
        return State(state.kind, state.params, {**state.facts, "alpha": self.alpha_}, arrays)

    def _restore(self, state: State) -> None:
        super()._restore(state)
        self.alpha_ = float(state.fact("alpha", (int, float)))
        self.alphas_ = state.array("alphas", np.float64, (None,))
        self.cv_scores_ = state.array("cv_scores", np.float64, (len(self.alphas_),))
        if len(self.alphas_) == 0:
            raise ModelFormatError(f"{state.kind}: the path of alphas is empty")
