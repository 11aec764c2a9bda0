"""`Ridge`: closed-form ridge regression for any number of labels (Onishi & Hayashi, ECIR 2025)."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from longtail.errors import InvalidInput
from longtail.linear.conjugate import ConjugateGradients
from longtail.linear.cost import Estimate, Shape, cheapest, estimate
from longtail.linear.ridge_model import RidgeModel
from longtail.linear.solvers import DualCholesky, PrimalCholesky, Problem, Spectral
from longtail.linear.statistics import Statistics
from longtail.linear.training_data import check_training, column_counts
from longtail.memory import MemoryPlan, available_memory
from longtail.parallel import resolve_jobs
from longtail.parameters import Choice, Constraint, Number
from longtail.store import State
from longtail.validation import as_features

Array = np.ndarray[Any, np.dtype[Any]]
_log = logging.getLogger(__name__)

_PROBED_LABELS = 8
_WORTH_A_TOLERANCE = 2e9  # less work than this, in multiply-adds, is done exactly whatever could be saved
_FEW_ITERATIONS = 4  # unless so few would pay, conjugate gradients are not even tried


class Ridge(RidgeModel):
    """Ridge regression on 0/1 labels, solved for all labels at once.

    Minimises ||XW - Y||^2 + alpha ||W||^2 exactly, or to `tol` with conjugate gradients. No intercept is fitted
    unless asked for, as in the paper.

    Parameters
    ----------
    alpha : float
        Strength of the penalty. 0 gives the least-squares solution of smallest norm.
    solver : {"auto", "primal", "dual", "cg"}
        Cholesky on the side of the features or of the rows, conjugate gradients, or whichever is estimated to be
        cheapest among those that fit in memory.
    fit_intercept : bool
        Fit a constant per label by centring; X stays sparse.
    weighting : {None, "target", "loss"}
        How labels are weighted by their inverse propensity. "target" scales the targets, which is the same as
        scaling the scores afterwards, so it can also be switched in `predict_topk`. "loss" weights each label's loss,
        which is the same as dividing its alpha by the weight.
    propensity : pair of float
        The constants A and B of the propensity model.
    keep : float or None
        Share of all weights to keep, the largest by magnitude.
    top_features_per_label : int or None
        Number of weights to keep for each label.
    threshold : float or None
        Smallest magnitude of a weight to keep. Give at most one of the three.
    tol : float
        Length of the preconditioned residual, relative to that of the right-hand side, at which conjugate gradients
        stop.
    max_iter : int
        Most iterations of conjugate gradients.
    updatable : bool
        Keep the sums that `partial_fit` needs after `fit`.
    block_size : int or None
        Labels solved at a time; None chooses.
    n_jobs : int or None
        Threads; None uses every core.

    Attributes
    ----------
    coef_ : array or csr_array of shape (n_features, n_labels)
    intercept_ : array of shape (n_labels,)
    solver_ : str
        The solver that was used.
    n_iter_ : int
        Iterations of conjugate gradients, or 0.
    inverse_propensity_ : array of shape (n_labels,)

    Examples
    --------
    >>> import numpy as np
    >>> from longtail import Ridge
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> Y = np.array([[1, 0], [0, 1], [1, 1]])
    >>> labels, scores = Ridge(alpha=0.1).fit(X, Y).predict_topk(X, k=1)
    >>> labels.ravel().tolist()
    [0, 1, 0]
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        **RidgeModel._parameters,
        "alpha": Number(low=0, high=1e30),
        "solver": Choice(("auto", "primal", "dual", "cg")),
        "weighting": Choice((None, "target", "loss")),
        "tol": Number(above=0),
        "max_iter": Number(low=1, whole=True),
        "updatable": Choice((True, False)),
    }

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        solver: str = "auto",
        fit_intercept: bool = False,
        weighting: str | None = None,
        propensity: tuple[float, float] = (0.55, 1.5),
        keep: float | None = None,
        top_features_per_label: int | None = None,
        threshold: float | None = None,
        tol: float = 2e-3,
        max_iter: int = 500,
        updatable: bool = False,
        block_size: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.alpha = alpha
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.weighting = weighting
        self.propensity = propensity
        self.keep = keep
        self.top_features_per_label = top_features_per_label
        self.threshold = threshold
        self.tol = tol
        self.max_iter = max_iter
        self.updatable = updatable
        self.block_size = block_size
        self.n_jobs = n_jobs

    def fit(self, X: Any, Y: Any) -> Ridge:
        """Solve for the weights of every label.

        Parameters
        ----------
        X : sparse matrix or array of shape (n_rows, n_features)
        Y : sparse or dense 0/1 matrix of shape (n_rows, n_labels)
        """
        self._check()
        X, Y = check_training(X, Y, type(self).__name__)
        if self.updatable:
            self._check_updatable(X, Y.shape[1])
            return self._solve_statistics(Statistics.of(X, Y, self.n_jobs))
        self.__dict__.pop("statistics_", None)
        shape = Shape.of(X, Y)
        cheapest(self._estimates(shape)).plan.check()
        self._solve(Problem.build(X, Y, self.fit_intercept), shape, column_counts(Y), self.alpha)
        return self

    def partial_fit(self, X: Any, Y: Any, *, solve: bool = True) -> Ridge:
        """Add rows, and labels where `Y` has more columns than before; the result equals a fit on all rows.

        Rows seen before the first row of a new label count as not having it.

        Parameters
        ----------
        X : sparse matrix or array of shape (n_rows, n_features)
        Y : sparse or dense 0/1 matrix of shape (n_rows, n_labels)
        solve : bool
            Whether to bring the weights up to date. With many batches, solve only at the last.
        """
        self._check()
        X, Y = check_training(X, Y, type(self).__name__)
        if not hasattr(self, "statistics_") and hasattr(self, "coef_"):
            raise InvalidInput(
                "this model was fitted without the sums that updates need; fit it with updatable=True, or begin with "
                "partial_fit"
            )
        known = getattr(self, "statistics_", None)
        if known is not None:
            as_features(X, n_features=len(known.feature_sums), owner=type(self).__name__)
        self._check_updatable(X, Y.shape[1] if known is None else max(Y.shape[1], len(known.label_counts)))
        new = Statistics.of(X, Y, self.n_jobs)
        statistics = new if known is None else known.plus(new)
        if solve:
            return self._solve_statistics(statistics)
        self.statistics_ = statistics
        return self

    def _check_updatable(self, X: Any, n_labels: int) -> None:
        """Refuse what updates cannot do, or have no memory for."""
        if self.solver not in ("auto", "primal"):
            raise InvalidInput(f"a model that can be updated needs solver 'auto' or 'primal', not {self.solver!r}")
        self._update_plan(X, n_labels).check()

    def _update_plan(self, X: Any, n_labels: int) -> MemoryPlan:
        side = X.shape[1]
        parts = {
            "Gram matrices": (36 if self._spectral(self.alpha) else 16) * side**2,
            "features": 16 * X.nnz,
            "label blocks": 12 * self._update_block(side) * side,
            "weights": self._check().memory(side, n_labels),
        }
        advice = "Updates need a Gram matrix of all features: use fewer features (max_features, min_df)."
        return MemoryPlan("ridge that can be updated", parts, advice)

    def _update_block(self, n_features: int) -> int:
        return self.block_size or max(16, min(2048, 2**24 // max(1, n_features)))

    def memory_plan(self, X: Any, Y: Any) -> MemoryPlan:
        """What `fit` would hold at its peak, as a `MemoryPlan`."""
        self._check()
        X, Y = check_training(X, Y, type(self).__name__)
        if self.updatable:
            return self._update_plan(X, Y.shape[1])
        problem = Problem.build(X, Y, self.fit_intercept)
        alphas = self._label_alphas(self._label_weights(column_counts(Y), X.shape[0]), self.alpha)
        return self._choose(problem, Shape.of(X, Y), alphas)[0].plan

    def _spectral(self, alpha: float) -> bool:
        return self.weighting == "loss" or alpha == 0

    def _estimates(self, shape: Shape, iterations: int = 1) -> list[Estimate]:
        """What each solver that may be used would cost, with so many iterations of conjugate gradients."""
        solvers = ("primal", "dual", "cg") if self.solver == "auto" else (self.solver,)
        return [self._estimate(shape, solver, self._spectral(self.alpha), iterations) for solver in solvers]

    def _estimate(self, shape: Shape, solver: str, spectral: bool, iterations: int = 1) -> Estimate:
        jobs = resolve_jobs(self.n_jobs)
        weights = self._check().memory(shape.n_features, shape.n_labels)
        return estimate(shape, solver, spectral, iterations, self._block(shape, solver), jobs, weights)

    def _choose(self, problem: Problem, shape: Shape, alphas: Array) -> tuple[Estimate, ConjugateGradients | None]:
        """The chosen solver with its cost and memory, and conjugate gradients themselves where they were tried."""
        estimates = self._estimates(shape, _FEW_ITERATIONS)
        if len(estimates) == 1:
            return estimates[0], None
        *factored, gradient = estimates
        direct = cheapest(factored)
        if shape.n_labels == 0 or (alphas == 0).any():
            return direct, None  # without a penalty conjugate gradients have no condition number to rely on
        cheap = max(gradient.work, _WORTH_A_TOLERANCE)
        if direct.plan.total <= available_memory() and direct.work <= cheap:
            return direct, None
        gradients = ConjugateGradients(problem, alphas, self.tol, self.max_iter)
        _try_on_few_labels(gradients, problem, alphas)
        chosen = cheapest(self._estimates(shape, gradients.iterations))
        return chosen, gradients if chosen.solver == "cg" else None

    def _solve(self, problem: Problem, shape: Shape, label_counts: Array, alpha: float) -> None:
        label_weights = self._label_weights(label_counts, shape.n_rows)
        alphas = self._label_alphas(label_weights, alpha)
        chosen, gradients = self._choose(problem, shape, alphas)
        chosen.plan.check()
        _log.info("%s: at most %s", chosen.plan.work, chosen.plan.describe())
        solver: Any
        if chosen.solver == "cg":
            solver = gradients or ConjugateGradients(problem, alphas, self.tol, self.max_iter)
        elif self._spectral(alpha):
            solver = Spectral(problem, self.n_jobs, chosen.solver)
        else:
            cholesky = PrimalCholesky if chosen.solver == "primal" else DualCholesky
            solver = cholesky(problem, alpha, self.n_jobs)
            if solver.failed:
                _log.info("the Gram matrix is too ill-conditioned for Cholesky; using its eigendecomposition")
                solver = None
                self._estimate(shape, chosen.solver, spectral=True).plan.check()
                solver = Spectral(problem, self.n_jobs, chosen.solver)
        self.solver_ = chosen.solver
        self._gather(solver, alphas, problem, shape.n_features, self._block(shape, chosen.solver))
        self.n_iter_ = getattr(solver, "iterations", 0)
        self.inverse_propensity_ = label_weights

    def _solve_statistics(self, statistics: Statistics) -> Ridge:
        problem = statistics.problem(self.fit_intercept)
        label_weights = self._label_weights(statistics.label_counts, statistics.n_rows)
        alphas = self._label_alphas(label_weights, self.alpha)
        n_features = len(statistics.feature_sums)
        solver: Any = None
        if not self._spectral(self.alpha):
            solver = PrimalCholesky(problem, self.alpha, self.n_jobs, gram=problem.gram())
        if solver is None or solver.failed:
            solver = Spectral(problem, self.n_jobs, "primal", gram=problem.gram())
        self.solver_, self.n_iter_ = "primal", 0
        self._gather(solver, alphas, problem, n_features, self._update_block(n_features))
        self.statistics_, self.inverse_propensity_ = statistics, label_weights
        return self

    def to_state(self) -> State:
        sums = getattr(self, "statistics_", None)
        if sums is None:
            return super().to_state()
        if not hasattr(self, "n_labels_") or len(sums.label_counts) != self.n_labels_:
            self._solve_statistics(sums)  # rows were added whose weights nobody has asked for yet
        state = super().to_state()
        arrays = {
            "gram": sums.gram,
            "cross": sums.cross,
            "feature_sums": sums.feature_sums,
            "label_counts": sums.label_counts,
        }
        return replace(state, facts={**state.facts, "n_rows": sums.n_rows}, arrays={**state.arrays, **arrays})

    def _restore(self, state: State) -> None:
        super()._restore(state)
        if "n_rows" in state.facts:
            rows = state.size("n_rows", least=1, most=2**53)
            features, labels = self.n_features_in_, self.n_labels_
            self.statistics_ = Statistics(
                rows,
                state.array("gram", np.float32, (features, features)),
                state.csr("cross", np.float32, (labels, features)),
                state.array("feature_sums", np.float64, (features,)),
                state.array("label_counts", np.float64, (labels,)),
            )


def _try_on_few_labels(gradients: ConjugateGradients, problem: Problem, alphas: Array) -> None:
    """Let conjugate gradients show how many iterations they need, on labels from the rarest to the most frequent."""
    order = np.argsort(np.diff(problem.Yt.indptr), kind="stable")
    few = order[np.linspace(0, len(order) - 1, min(_PROBED_LABELS, len(order))).astype(int)]
    gradients.solve_for(problem.select(few).cross(slice(0, len(few))), alphas[few])
