"""`RidgeModel`: what `Ridge` and `RidgeCV` share: gathering weights, label weighting, saving."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from longtail import progress
from longtail.arrays import Array
from longtail.errors import InvalidInput, ModelFormatError
from longtail.metrics import inverse_propensity
from longtail.parallel import blas_threads, map_blocks, resolve_jobs, split
from longtail.parameters import Choice, Constraint, Number, Sequence, Threads
from longtail.ridge.centring import weighted_sum
from longtail.ridge.cost import Shape, block_size
from longtail.ridge.linear_model import LinearModel
from longtail.ridge.solvers import Solver
from longtail.ridge.sparsify import Sparsification
from longtail.store import State
from longtail.store.state import saved_params


class RidgeModel(LinearModel):
    """Shared by `Ridge` and `RidgeCV`."""

    prediction_options = ("weighting",)

    _parameters: ClassVar[dict[str, Constraint]] = {
        "fit_intercept": Choice((True, False)),
        "propensity": Sequence(Number(above=0), length=2),
        "keep": Number(above=0, high=1, optional=True),
        "top_features_per_label": Number(low=1, whole=True, optional=True),
        "threshold": Number(low=0, optional=True),
        "block_size": Number(low=1, whole=True, optional=True),
        "n_jobs": Threads(),
    }

    fit_intercept: bool
    weighting: str | None
    propensity: tuple[float, float]
    keep: float | None
    top_features_per_label: int | None
    threshold: float | None
    block_size: int | None
    alpha_: float
    inverse_propensity_: Array
    solver_: str
    n_iter_: int

    @property
    def is_linear(self) -> bool:
        return True

    @property
    def learns_residuals(self) -> bool:
        return self.weighting is None and self._sparsification().is_identity

    def summary(self) -> str:
        check_is_fitted(self)
        return f"alpha {self.alpha_:.4g}, solver {self.solver_}"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        given = [name for name in ("keep", "top_features_per_label", "threshold") if getattr(self, name) is not None]
        if len(given) > 1:
            raise InvalidInput(f"give at most one of keep, top_features_per_label and threshold; found {given}")

    def _sparsification(self) -> Sparsification:
        return Sparsification(self.keep, self.top_features_per_label, self.threshold)

    def _label_weights(self, label_counts: Array, n_rows: int) -> Array:
        """The inverse propensity of each label."""
        a, b = self.propensity
        return inverse_propensity(label_counts, n_rows, a=a, b=b).astype(np.float32)

    def _label_alphas(self, label_weights: Array, alpha: float) -> Array:
        """The alpha of each label."""
        alphas = np.full(len(label_weights), alpha, dtype=np.float32)
        return alphas / label_weights if self.weighting == "loss" else alphas

    def _block(self, shape: Shape, solver: str) -> int:
        if self.block_size is not None:
            return self.block_size
        if solver == "cg":
            return 64
        return block_size(shape, shape.n_features if solver == "primal" else max(shape.n_rows, shape.n_features))

    def _gather(self, solver: Solver, alphas: Array, problem: Any, n_features: int, size: int) -> None:
        """Solve block after block, keeping of each block only what the sparsification keeps."""
        n_labels = len(alphas)
        collector = self._sparsification().collector(n_features, n_labels)
        blocks = split(n_labels, size)

        def solve(block: slice) -> Array:
            return solver.solve(block, alphas[block])

        # What the factored solvers leave to BLAS keeps to as many threads as ours would have.
        with blas_threads(resolve_jobs(self.n_jobs)), progress.task("solving for labels", total=n_labels) as advance:
            for block, weights in zip(
                blocks, map_blocks(solve, blocks, self.n_jobs if solver.threaded else 1), strict=True
            ):
                collector.add(block.start, weights)
                advance(len(weights))
        self.coef_ = collector.finish()
        # From the weights as they were rounded and kept, so that scores have the right mean whatever was dropped.
        at_centre = 0 if problem.mean is None else problem.label_mean - weighted_sum(self.coef_, problem.mean)
        self.centre_, self.centre_scores_ = problem.centre, np.full(n_labels, at_centre, dtype=np.float32)
        self.n_features_in_ = n_features
        self.n_labels_ = n_labels

    def _label_scale(self) -> Array | None:
        return self.inverse_propensity_ if self.weighting == "target" else None

    def predict_topk(
        self, X: Any, k: int = 5, allow: Any = None, deny: Any = None, *, weighting: str | None = "as fitted"
    ) -> tuple[Array, Array]:
        """The k best labels of each row and their scores.

        As for every estimator, and `weighting` ("target" or None) can switch the weighting of targets on or off
        without another fit: ridge is linear in Y, so scaled targets give scaled scores, W(Y diag t) = W(Y) diag t.
        """
        if weighting == "as fitted":
            return self._ranked(X, k, allow, deny)
        if weighting not in ("target", None):
            raise InvalidInput(f"weighting is {weighting!r}; expected 'target' or None")
        check_is_fitted(self)
        return self._ranked(X, k, allow, deny, self.inverse_propensity_ if weighting == "target" else None)

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
