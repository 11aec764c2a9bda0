"""`RidgeModel`: what `Ridge` and `RidgeCV` share: gathering weights, prediction, explanation, saving."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from longtail import progress
from longtail.arrays import Array
from longtail.errors import InvalidInput, ModelFormatError
from longtail.estimator import Estimator, Explanation, OutputLayer, Revision, Rule, check_memory
from longtail.metrics import inverse_propensity
from longtail.native import kernels
from longtail.parallel import map_blocks, resolve_jobs, split
from longtail.parameters import Choice, Constraint, Number, Sequence, Threads
from longtail.ridge.cost import Estimate, Shape, block_size, estimate
from longtail.ridge.gram import shift_columns, weighted_sum
from longtail.ridge.sparsify import Sparsification
from longtail.ridge.training import Solved, Training
from longtail.store import State, saved_params
from longtail.validation import finite
from longtail.work import Work, is_in_pieces

_ROWS = 512  # rows scored together
_PANEL = 128  # labels scored together: their dense weights stay in cache while the rows pass


class RidgeModel(Estimator):
    """Linear scores from ``coef_`` (n_features x n_labels) and ``intercept_``.

    If features are far from zero, x coef + intercept is a small difference of large numbers. Scores are then computed
    as (x - centre) coef + the scores at the centre, which single precision can do.
    """

    _fitted_by = "coef_"
    prediction_options = ("weighting",)
    _instead_of_pieces = "use prune instead of density, and train without updatable"

    _parameters: ClassVar[dict[str, Constraint]] = {
        "fit_intercept": Choice((True, False)),
        "propensity": Sequence(Number(above=0), length=2),
        "density": Number(above=0, high=1, optional=True),
        "prune": Number(low=0, high=2**31, optional=True),
        "block_size": Number(low=1, whole=True, optional=True),
        "n_jobs": Threads(),
    }

    solver: str
    fit_intercept: bool
    weighting: str | None
    propensity: tuple[float, float]
    density: float | None
    prune: float | None
    block_size: int | None
    n_jobs: int | None
    coef_: Any
    centre_: Array | None
    centre_scores_: Array
    alpha_: float
    inverse_propensity_: Array
    solver_: str
    n_iter_: int

    @property
    def intercept_(self) -> Array:
        """The scores of a row of zeros; in float64 if features are far from zero."""
        if self.centre_ is None:
            return self.centre_scores_
        return self.centre_scores_ - weighted_sum(self.coef_, self.centre_.astype(np.float64))

    @intercept_.setter
    def intercept_(self, intercept: Array) -> None:
        self.centre_, self.centre_scores_ = None, intercept

    @property
    def is_linear(self) -> bool:
        return True

    def _updated(self, revision: Revision) -> Self:
        """Solve again on the present rows, which is exact and takes no longer than an update of dense sums."""
        found: Self = clone(self).fit(revision.X, revision.Y)
        return found

    @property
    def trains_in_pieces(self) -> bool:
        return self._sparsification().is_identity or self._sparsification().prunes

    @property
    def linear_in_targets(self) -> bool:
        return self.weighting is None and self._sparsification().is_identity

    def summary(self) -> str:
        check_is_fitted(self)
        return f"alpha {self.alpha_:.4g}, solver {self.solver_}"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.density is not None and self.prune is not None:
            raise InvalidInput(
                f"density and prune exclude each other; found density={self.density} and prune={self.prune}",
                code="bad_parameter",
                name="density",
            )

    def _sparsification(self) -> Sparsification:
        return Sparsification.of(self.density, self.prune)

    @property
    def takes_weights(self) -> bool:
        return True

    @property
    def takes_relevance(self) -> bool:
        return True

    def _label_weights(self, label_counts: Array, n_rows: float) -> Array:
        """The inverse propensity of each label."""
        a, b = self.propensity
        rows = max(1, math.ceil(n_rows * (1 - 1e-12)))
        return inverse_propensity(np.minimum(label_counts, rows), rows, a=a, b=b).astype(np.float32)

    def _label_alphas(self, label_weights: Array, alpha: float) -> Array:
        """The alpha of each label."""
        alphas = np.full(len(label_weights), alpha, dtype=np.float32)
        return alphas / label_weights if self.weighting == "loss" else alphas

    def _label_scale(self) -> Array | None:
        """The factor on the score of each label, or None."""
        return self.inverse_propensity_ if self.weighting == "target" else None

    def _block(self, shape: Shape, solver: str) -> int:
        if self.block_size is not None:
            return self.block_size
        if solver == "cg":
            return 64
        return block_size(
            shape.n_labels, shape.n_features if solver == "primal" else max(shape.n_rows, shape.n_features)
        )

    def _weight_bytes(self, n_features: int, n_labels: int) -> int:
        return self._sparsification().memory(n_features, n_labels)

    def _estimate(self, shape: Shape, solver: str, algebra: str, iterations: int = 1) -> Estimate:
        """What a fit by one solver costs."""
        jobs, weights = resolve_jobs(self.n_jobs), self._weight_bytes(shape.n_features, shape.n_labels)
        return estimate(shape, solver, algebra, iterations, self._block(shape, solver), jobs, weights)

    def _check_plan(self, shape: Shape, solver: str, algebra: str) -> None:
        """Refuse what does not fit in memory; in pieces, tasks wait for memory instead."""
        if not is_in_pieces():
            self._estimate(shape, solver, algebra).plan.check()

    def _training(self, work: Work, given: Any, problem: Any, n_features: int, size: int) -> Training:
        return Training(work, given, problem, self._sparsification(), n_features, size)

    def _take(self, solved: Solved, problem: Any, solver: str) -> None:
        """Set the fitted attributes."""
        self.coef_, self.solver_, self.n_iter_ = solved.coefficients, solver, solved.iterations
        self.n_features_in_, self.n_labels_ = self.coef_.shape
        # Computed from the rounded and pruned weights, so that scores have the right mean.
        at_centre = 0 if problem.mean is None else problem.label_mean - weighted_sum(self.coef_, problem.mean)
        self.centre_, self.centre_scores_ = problem.centre, np.full(self.n_labels_, at_centre, dtype=np.float32)

    def _blocks(self, X: Any, scale: Array | None, panel: int) -> Any:
        """Yield (first label, scores) of the rows `X`, label block by label block in ascending order."""
        X = shift_columns(X, self.centre_)
        for block in [slice(0, self.n_labels_)] if sparse.issparse(self.coef_) else split(self.n_labels_, panel):
            scores = self._from_centre(X, block)
            if scale is not None:
                scores *= scale[block]
            yield block.start, scores

    def _from_centre(self, X: Any, block: slice) -> Array:
        """Scores of a block of labels (all labels if the weights are sparse) for rows measured from the centre."""
        out = np.empty((X.shape[0], block.stop - block.start), dtype=np.float32)
        coef = self.coef_
        if sparse.issparse(coef):
            kernels.multiply_sparse(X.indptr, X.indices, X.data, coef.indptr, coef.indices, coef.data, out)
        else:
            kernels.multiply(X.indptr, X.indices, X.data, np.ascontiguousarray(coef[:, block]), out)
        out += self.centre_scores_[block]
        return out

    def scores(self, X: Any, block: slice) -> Array:
        """Scores of a block of labels for checked rows: for dense weights, without weighting of labels."""
        return self._from_centre(shift_columns(X, self.centre_), block)

    def _rows_scored(self) -> int:
        return min(_ROWS, self._rows_at_once()) if sparse.issparse(self.coef_) else _ROWS

    def predict_topk(
        self, X: Any, k: int = 5, allow: Any = None, deny: Any = None, *, weighting: str | None = "as fitted"
    ) -> tuple[Array, Array]:
        """Return the k best labels of each row and their scores.

        The same as for every estimator, plus `weighting` ("target" or None), which switches the weighting of targets on
        or off without another fit: ridge is linear in Y, so W(Y diag t) = W(Y) diag t.
        """
        if weighting == "as fitted":
            return self._ranked(X, k, allow, deny)
        if weighting not in ("target", None):
            raise InvalidInput(
                f"weighting is {weighting!r}; expected 'target' or None", code="bad_parameter", name="weighting"
            )
        check_is_fitted(self)
        return self._ranked(X, k, allow, deny, self.inverse_propensity_ if weighting == "target" else None)

    def _topk(self, X: Any, k: int, mask: Array | None, *scales: Array | None) -> tuple[Array, Array]:
        [scale] = scales or [self._label_scale()]
        labels = np.full((X.shape[0], k), -1, dtype=np.int64)
        scores = np.full((X.shape[0], k), -np.inf, dtype=np.float32)
        # A single panel saves a copy of the weights if there are too few rows to pay for it.
        panel = _PANEL if X.shape[0] >= 32 else max(1, self.n_labels_)

        def score(rows: slice) -> int:
            # Slicing out all rows would cost more than scoring a single one.
            part = X if rows == slice(0, X.shape[0]) else X[rows]
            for first, block in self._blocks(part, scale, panel):
                allowed = None if mask is None else mask[first : first + block.shape[1]]
                kernels.update_topk(finite(block), first, allowed, labels[rows], scores[rows])
            return rows.stop - rows.start

        with progress.task("predicting", total=X.shape[0]) as advance:
            for done in map_blocks(score, split(X.shape[0], self._rows_scored()), self.n_jobs):
                advance(done)
        return labels, scores

    def _scores(self, X: Any) -> Array:
        scores = np.empty((X.shape[0], self.n_labels_), dtype=np.float32)
        for rows in split(X.shape[0], self._rows_scored()):
            for first, block in self._blocks(X[rows], self._label_scale(), _PANEL):
                scores[rows, first : first + block.shape[1]] = block
        return scores

    def _predict(self, X: Any) -> Any:
        """Labels whose fitted value is at least one half, regardless of the weighting of scores."""
        parts = [sparse.csr_array((0, self.n_labels_), dtype=np.int8)]
        for rows in split(X.shape[0], self._rows_at_once()):
            blocks = [np.zeros((rows.stop - rows.start, 0), dtype=bool)]
            blocks += [block >= 0.5 for _, block in self._blocks(X[rows], None, _PANEL)]
            parts.append(sparse.csr_array(np.concatenate(blocks, axis=1).astype(np.int8)))
        return sparse.csr_array(sparse.vstack(parts, format="csr"))

    def _explain(self, row: Any, label: int) -> Explanation:
        if sparse.issparse(self.coef_):
            column = self.coef_[row.indices][:, [label]].toarray().ravel()
        else:
            column = self.coef_[row.indices, label]
        scale = self._label_scale()
        factor = 1.0 if scale is None else float(scale[label])
        contributions = row.data.astype(np.float64) * column * factor
        intercept = float(self.centre_scores_[label])
        if self.centre_ is not None:
            intercept -= float(weighted_sum(self.coef_[:, [label]], self.centre_.astype(np.float64))[0])
        intercept *= factor
        order = np.argsort(-np.abs(contributions), kind="stable")
        order = order[contributions[order] != 0]
        score = float(contributions.sum() + intercept)
        return Explanation(
            label=label,
            score=score,
            margin=score,
            features=row.indices[order],
            contributions=contributions[order],
            intercept=intercept,
        )

    def _output_layer(self, rule: Rule) -> OutputLayer:
        coefficients = self.coef_.T
        if sparse.issparse(coefficients):
            weights = sparse.csr_array(coefficients, dtype=np.float64)
        else:
            check_memory({"weights in 64 bits, twice": 16 * coefficients.size})
            weights = np.ascontiguousarray(coefficients, dtype=np.float64)
        intercepts = self.intercept_.astype(np.float64)
        if rule == "predict":
            return OutputLayer(weights, intercepts - 0.5, rule, "its fitted value is at least 0.5", at_least=True)
        scale = self._label_scale()
        if scale is not None:
            weights = (
                sparse.csr_array(sparse.diags_array(scale.astype(np.float64)) @ weights)
                if sparse.issparse(weights)
                else weights * scale.astype(np.float64)[:, None]
            )
            intercepts = intercepts * scale
        return OutputLayer(weights, intercepts, rule, "its score is among the highest")

    def to_state(self) -> State:
        check_is_fitted(self)
        facts = {
            "n_features": self.n_features_in_,
            "n_labels": self.n_labels_,
            "solver": self.solver_,
            "n_iter": self.n_iter_,
        }
        arrays = {"coef": self.coef_, "inverse_propensity": self.inverse_propensity_}
        if self.centre_ is None:
            arrays["intercept"] = self.centre_scores_
        else:
            arrays |= {"centre": self.centre_, "centre_scores": self.centre_scores_}
        return State(type(self).__name__, saved_params(self), facts, arrays)

    @classmethod
    def _current_params(cls, params: Mapping[str, Any]) -> dict[str, Any]:
        """Translate `keep`, `threshold` and `top_features_per_label` of earlier versions."""
        current = dict(params)
        old = {name: current.pop(name, None) for name in ("keep", "threshold", "top_features_per_label")}
        given = {name: value for name, value in old.items() if value is not None}
        if not given:
            return current
        if len(given) > 1 or not {"density", "prune"}.isdisjoint(current):
            raise ModelFormatError(f"{cls.__name__}: the parameters {sorted(given)} exclude each other or newer ones")
        [(name, value)] = given.items()
        if name == "threshold" and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)  # a whole number would be a number of weights
        return {**current, "density" if name == "keep" else "prune": value}

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Build the fitted estimator again, or raise `ModelFormatError`."""
        model = cls._from_params(state)
        model._restore(state)
        return model

    def _restore(self, state: State) -> None:
        """Take the fitted attributes from `state`, checking each."""
        features, labels = state.size("n_features"), state.size("n_labels")
        read = state.csr if sparse.issparse(state.arrays.get("coef")) else state.array
        self.coef_ = read("coef", np.float32, (features, labels))
        has_centre = "centre" in state.arrays
        self.centre_ = state.array("centre", np.float32, (features,)) if has_centre else None
        self.centre_scores_ = state.array("centre_scores" if has_centre else "intercept", np.float32, (labels,))
        self.inverse_propensity_ = state.array("inverse_propensity", np.float32, (labels,))
        constants = [self.centre_scores_, self.inverse_propensity_] + ([] if self.centre_ is None else [self.centre_])
        if not all(np.isfinite(part).all() for part in constants):
            raise ModelFormatError(f"{state.kind}: intercepts, centres and inverse propensities must be finite")
        if not (self.inverse_propensity_ > 0).all():
            raise ModelFormatError(f"{state.kind}: inverse propensities must be positive")
        self.n_features_in_, self.n_labels_ = features, labels
        self.solver_, self.n_iter_ = state.fact("solver", str), state.size("n_iter")
