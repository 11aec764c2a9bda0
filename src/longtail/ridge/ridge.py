"""`Ridge`: closed-form ridge regression for any number of labels (Onishi & Hayashi, ECIR 2025)."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.errors import InvalidInput, ModelFormatError
from longtail.estimator import TrainingSet, classes_of_rows, column_counts, column_weights, read_training
from longtail.memory import MemoryPlan, available_memory
from longtail.parallel import resolve_jobs
from longtail.parameters import Choice, Constraint, Number
from longtail.ridge.cost import Estimate, Shape, block_size, cheapest, cholesky_precisions, plan_for_sums, sum_parts
from longtail.ridge.model import RidgeModel
from longtail.ridge.pieces import prepared
from longtail.ridge.problem import Problem, Statistics
from longtail.ridge.training import Training, prepare_gradients, solve_by_gradients, solve_directly
from longtail.store import State
from longtail.validation import as_features, as_labels, check_columns, own
from longtail.work import InMemory, Results, Work, begin, is_in_pieces

_log = logging.getLogger(__name__)

_WORTH_A_TOLERANCE = 2e9  # multiply-adds; less work than this is always done exactly
_FEW_ITERATIONS = 4  # conjugate gradients are tried only if they would pay with this many


class Ridge(RidgeModel):
    """Ridge regression on 0/1 labels, solved for all labels at once.

    Minimises ||XW - Y||^2 + alpha ||W||^2 exactly, or to `tol` with conjugate gradients. As in the paper, no intercept
    is fitted by default.

    Parameters
    ----------
    alpha : float
        Strength of the penalty. 0 gives the least-squares solution of smallest norm; conjugate gradients then do not
        scale the features and may need many iterations.
    solver : {"auto", "primal", "dual", "cg"}
        Cholesky on the features ("primal") or on the rows ("dual"), conjugate gradients, or the cheapest of these that
        fits in memory, by an estimate.
    fit_intercept : bool
        Fit a constant per label by centring; X stays sparse.
    weighting : {None, "target", "loss"}
        How labels are weighted by their inverse propensity. "target" scales the targets, which is the same as
        scaling the scores afterwards, so it can also be switched in `predict_topk`. "loss" weights each label's loss,
        which is the same as dividing its alpha by the weight.
    propensity : pair of float
        The constants A and B of the propensity model.
    density : float or None
        Share of all weights to keep: the largest by magnitude over all labels.
    prune : float, int or None
        A float is the smallest magnitude of a weight to keep; a whole number of 1 or more keeps that many weights of
        each label. None keeps all. `density` and `prune` exclude each other.
    tol : float
        Conjugate gradients stop at this length of the preconditioned residual, relative to the right-hand side. The
        relative error of fitted values is then about five times that, or 1e-4; a warning is logged if not.
    max_iter : int
        Maximum number of iterations of conjugate gradients.
    updatable : bool
        Keep the sums that `partial_fit` needs after `fit`.
    block_size : int or None
        Number of labels solved at a time; None chooses.
    n_jobs : int or None
        Number of threads; None uses every core.

    Attributes
    ----------
    coef_ : array or csr_array of shape (n_features, n_labels)
    intercept_ : array of shape (n_labels,)
        In float64 if features are far from zero.
    solver_ : str
        The solver used.
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
        density: float | None = None,
        prune: float | None = None,
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
        self.density = density
        self.prune = prune
        self.tol = tol
        self.max_iter = max_iter
        self.updatable = updatable
        self.block_size = block_size
        self.n_jobs = n_jobs

    @property
    def alpha_(self) -> float:  # type: ignore[override]
        """The penalty, by the name that it has in `RidgeCV`."""
        return self.alpha

    @property
    def trains_in_pieces(self) -> bool:
        return super().trains_in_pieces and not self.updatable

    _behind = False  # whether rows were added since the weights were last solved

    def copy_for(self, rows: str, penalty: float = 1.0) -> Self:
        return super().copy_for(rows, penalty).set_params(alpha=self.alpha * penalty)

    @property
    def updates(self) -> bool:
        return hasattr(self, "statistics_")

    def _fit(self, X: Any, Y: Any, weights: Array | None) -> None:
        """Solve for the weights of every label; relevance is the value to predict."""
        self.check_pieces()
        if self.updatable:
            self._check_updatable(X, Y)
            self._solve_statistics(Statistics.of(X, Y, self.n_jobs, weights))
            return
        self.__dict__.pop("statistics_", None)
        shape = Shape.of(X, Y)
        if not is_in_pieces():
            cheapest(self._estimates(shape)).plan.check()
        work = begin(self._job(), self.n_jobs, features=X, labels=Y)
        given, problem = prepared(work, self.fit_intercept, weights)
        self._solve(work, given, problem, shape, column_weights(Y, weights))

    def partial_fit(
        self, X: Any, Y: Any, classes: Any = None, sample_weight: Any = None, *, solve: bool = True
    ) -> Ridge:
        """Add rows, and labels if `Y` has more columns than before; the result equals a fit on all rows together.

        Earlier rows count as not having a new label.

        Parameters
        ----------
        X : sparse matrix or array of shape (n_rows, n_features)
        Y : sparse or dense 0/1 matrix of shape (n_rows, n_labels)
        classes : array-like or None
            With one class for each row: all classes that will ever occur. None means those of the first rows.
        sample_weight : array-like of shape (n_rows,) or None
            As for `fit`.
        solve : bool
            Whether to update the weights. With many batches, solve only after the last.
        """
        self._check_parameters()
        found = read_training(X, Y, sample_weight, type(self).__name__)
        check_columns(X, vars(self).get("feature_names_in_"), type(self).__name__)
        if not hasattr(self, "coef_") and not hasattr(self, "statistics_"):
            self._remember(X, None)
        X, Y = found.X, self._known_labels(found, classes)
        self._check_targets(found)
        if not hasattr(self, "statistics_") and hasattr(self, "coef_"):
            raise InvalidInput(
                "this model was fitted without the sums that updates need; fit it with updatable=True, or start with "
                "partial_fit"
            )
        known = getattr(self, "statistics_", None)
        if known is not None:
            as_features(X, n_features=len(known.feature_sums), owner=type(self).__name__)
        self._check_updatable(X, Y)
        statistics = Statistics.of(X, Y, self.n_jobs, found.weights)
        if known is not None:
            statistics = known.plus(statistics)
        if solve:
            return self._solve_statistics(statistics)
        self.statistics_, self._behind = statistics, True
        return self

    def _known_labels(self, found: TrainingSet, classes: Any) -> Any:
        """The labels of further rows; each class gets the column that it has."""
        if found.classes is None:
            return found.Y
        if "classes_" not in vars(self):
            if hasattr(self, "statistics_"):
                raise InvalidInput("the model was fitted to a label matrix; expected one, found one class for each row")
            given = found.classes if classes is None else classes_of_rows(classes)
            if given is None:
                raise InvalidInput("classes has more than one dimension; expected a list of all classes")
            self.classes_ = np.unique(given)
        known = self.classes_
        missing = np.setdiff1d(found.classes, known)
        if len(missing):
            raise InvalidInput(f"y has the class {missing[0]!r}, which the first rows did not have", code="bad_classes")
        places = np.searchsorted(known, found.classes)
        Y = found.Y
        return as_labels(own(sparse.csr_array((Y.data, places[Y.indices], Y.indptr), shape=(Y.shape[0], len(known)))))

    def _check_updatable(self, X: Any, Y: Any) -> None:
        """Raise unless the model can be updated with these rows, within the memory available."""
        if self.solver not in ("auto", "primal"):
            raise InvalidInput(f"an updatable model needs solver 'auto' or 'primal', not {self.solver!r}")
        self._update_plan(X, Y).check()

    def _update_plan(self, X: Any, Y: Any) -> MemoryPlan:
        known = getattr(self, "statistics_", None)
        n_labels = Y.shape[1] if known is None else max(Y.shape[1], len(known.label_counts))
        return self._sums_plan(X.shape[1], n_labels, self._algebras(X.shape[1], n_labels)[0], sum_parts(X, Y, known))

    def _sums_plan(self, n_features: int, n_labels: int, algebra: str, parts: dict[str, int]) -> MemoryPlan:
        """The plan of solving from sums by `algebra`, including `parts`."""
        labels = resolve_jobs(self.n_jobs) * min(self._update_block(n_features, n_labels), n_labels)
        return plan_for_sums(n_features, algebra, labels, self._weight_bytes(n_features, n_labels), parts)

    def _update_block(self, n_features: int, n_labels: int) -> int:
        return self.block_size or block_size(n_labels, n_features)

    def _memory_plan(self, X: Any, Y: Any) -> MemoryPlan:
        if self.updatable:
            return self._update_plan(X, Y)
        problem, shape = Problem.build(X, Y, self.fit_intercept), Shape.of(X, Y)
        alphas = self._label_alphas(self._label_weights(column_counts(Y), X.shape[0]), self.alpha)
        training = self._training(InMemory(self.n_jobs, {}), problem, problem, shape.n_features, 1)
        return self._choose(training, shape, alphas)[0].plan

    def _algebras(self, side: int, n_labels: int) -> tuple[str, ...]:
        """What to start with: eigenvectors serve many alphas and alpha 0; a Cholesky factor is cheaper."""
        if self.weighting == "loss" or self.alpha == 0:
            return ("spectral",)
        return cholesky_precisions(side, n_labels)

    def _estimates(self, shape: Shape, iterations: int = 1) -> list[Estimate]:
        """The cost of each possible solver, with this many iterations of conjugate gradients."""
        solvers = ("primal", "dual", "cg") if self.solver == "auto" else (self.solver,)
        return [
            self._estimate(shape, solver, algebra, iterations)
            for solver in solvers
            for algebra in (("float32",) if solver == "cg" else self._algebras(shape.side(solver), shape.n_labels))
        ]

    def cheapest_solver(self, shape: Shape) -> Estimate:
        """The cost of the cheapest solver that fits in memory, before anything is computed."""
        return cheapest(self._estimates(shape, _FEW_ITERATIONS))

    def _choose(self, training: Training, shape: Shape, alphas: Array) -> tuple[Estimate, Results | None]:
        """The chosen solver with its cost and memory, and what conjugate gradients need if they have been tried."""
        estimates = self._estimates(shape, _FEW_ITERATIONS)
        if self.solver != "auto":
            return cheapest(estimates), None
        *factored, gradient = estimates
        direct = cheapest(factored)
        if shape.n_labels == 0 or (alphas == 0).any():
            return direct, None  # without a penalty the condition number is unbounded
        cheap = max(gradient.work, _WORTH_A_TOLERANCE)
        if direct.plan.total <= available_memory() and direct.work <= cheap:
            return direct, None
        tried = prepare_gradients(training, alphas, self.tol, self.max_iter)
        if tried[0]["misled"][0] and direct.plan.total <= available_memory():
            return direct, None
        return cheapest(self._estimates(shape, int(tried[0]["iterations"][0]))), tried

    def _solve(self, work: Work, given: Any, problem: Problem, shape: Shape, label_counts: Array) -> None:
        label_weights = self._label_weights(label_counts, problem.total)
        alphas = self._label_alphas(label_weights, self.alpha)
        training = self._training(work, given, problem, shape.n_features, 1)
        chosen, tried = self._choose(training, shape, alphas)
        if not work.is_stored:
            chosen.plan.check()
            _log.info("%s needs at most this memory: %s", chosen.plan.work, chosen.plan.describe())
        # The choice depends on the memory of this machine, but the pieces of an interrupted training belong to one.
        solver, algebra = work.settled("solver", (chosen.solver, chosen.algebra))
        training = replace(training, size=self._block(shape, solver))
        if solver == "cg":
            tried = tried or prepare_gradients(training, alphas, self.tol, self.max_iter)
            solved = solve_by_gradients(training, tried, alphas, self.tol, self.max_iter)
        else:
            tried = None
            check = partial(self._check_plan, shape, solver)
            solved = solve_directly(training, solver, algebra, self.alpha, alphas, check)
        self._take(solved, problem, solver)
        self.inverse_propensity_ = label_weights

    def _solve_statistics(self, statistics: Statistics) -> Ridge:
        problem = statistics.problem(self.fit_intercept)
        label_weights = self._label_weights(statistics.label_counts, statistics.n_rows)
        alphas = self._label_alphas(label_weights, self.alpha)
        n_features = len(statistics.feature_sums)
        work, size = InMemory(self.n_jobs, {}), self._update_block(n_features, len(alphas))
        training = self._training(work, problem, problem, n_features, size)

        def check(algebra: str) -> None:
            self._sums_plan(n_features, len(alphas), algebra, statistics.parts()).check()

        algebra = self._algebras(n_features, len(alphas))[0]
        self._take(solve_directly(training, "primal", algebra, self.alpha, alphas, check), problem, "primal")
        self.statistics_, self.inverse_propensity_, self._behind = statistics, label_weights, False
        return self

    def to_state(self) -> State:
        sums = getattr(self, "statistics_", None)
        if sums is None:
            return super().to_state()
        if self._behind:
            self._solve_statistics(sums)
        state = super().to_state()
        arrays = {
            "scatter": sums.scatter,
            "cross": sums.cross,
            "feature_sums": sums.feature_sums,
            "label_counts": sums.label_counts,
        }
        return replace(state, facts={**state.facts, "n_rows": sums.n_rows}, arrays={**state.arrays, **arrays})

    def _restore(self, state: State) -> None:
        super()._restore(state)
        if "n_rows" in state.facts:
            rows = _total_of(state)
            features, labels = self.n_features_in_, self.n_labels_
            sums = state.array("feature_sums", np.float64, (features,))
            counts = state.array("label_counts", np.float64, (labels,))
            if "gram" in state.arrays:
                gram = state.array("gram", np.float32, (features, features))
                cross = state.csr("cross", np.float32, (labels, features))
                self.statistics_ = Statistics.of_gram(rows, gram, cross, sums, counts)
            else:
                scatter = state.array("scatter", np.float64, (features, features))
                cross = state.csr("cross", np.float64, (labels, features))
                self.statistics_ = Statistics(rows, scatter, cross, sums, counts)


def _total_of(state: State) -> float:
    """The number of rows behind saved sums, or the sum of their weights."""
    if isinstance(state.facts.get("n_rows"), float):
        total = float(state.fact("n_rows", float))
        if not 0 < total <= 2**53:
            raise ModelFormatError(f"{state.kind}: the fact 'n_rows' is {total}; expected more than 0")
        return total
    return state.size("n_rows", least=1, most=2**53)
