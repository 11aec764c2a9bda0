"""`ClassifierTree`: what `LabelTree` and `OneVsRest` share: parameters, training of one tree, tuning, saving."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator
from itertools import chain
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from longtail import progress
from longtail.arrays import Array
from longtail.errors import InvalidInput, ModelFormatError
from longtail.estimator.training_data import check_training, column_counts
from longtail.labels import LabelHierarchy
from longtail.memory import MemoryPlan
from longtail.metrics import inverse_propensity
from longtail.native import block_widths, kernels
from longtail.parallel import map_blocks, resolve_jobs, split
from longtail.parameters import Choice, Constraint, Number, Sequence, Threads
from longtail.store import State
from longtail.store.state import saved_params
from longtail.trees.calibration import METHODS, calibrations_from_state, calibrations_to_arrays
from longtail.trees.model import CANDIDATES, TreeModel
from longtail.trees.thresholds import OBJECTIVES, thresholds_from_state
from longtail.trees.training import Examples, Negatives, Objective, Rows, Trained, tasks_of, train
from longtail.trees.weights import BLOCK_CHILDREN, NO_BLOCK, TrainedBlock, TreeWeights

_log = logging.getLogger(__name__)

_ROWS_SEARCHED = 1024


class ClassifierTree(TreeModel):
    """What `LabelTree` and `OneVsRest` share: the classifiers, their parameters, saving."""

    _parameters: ClassVar[dict[str, Constraint]] = {
        "loss": Choice(("squared_hinge", "logistic")),
        "C": Number(above=0, high=1e6),
        "prune": Number(low=0, high=2**31),
        "weighting": Choice((None, "loss", "score")),
        "propensity": Sequence(Number(above=0), length=2),
        "calibrate": Choice((None, *METHODS)),
        "thresholds": Choice((None, *OBJECTIVES)),
        "holdout": Number(above=0, high=0.9),
        "precision": Choice((16, 32)),
        "tol": Number(above=0),
        "max_sweeps": Number(low=1, high=2**31, whole=True),
        "random_state": Number(low=0, high=2**31, whole=True, optional=True),
        "n_jobs": Threads(),
    }

    C: float
    prune: float
    weighting: str | None
    propensity: tuple[float, float]
    calibrate: str | None
    thresholds: str | None
    holdout: float
    precision: int
    tol: float
    max_sweeps: int
    random_state: int | None
    inverse_propensity_: Array
    gap_: float
    n_sweeps_: int

    def _objective(self, seed: int) -> Objective:
        top = self.prune if isinstance(self.prune, int | np.integer) and self.prune >= 1 else 0
        threshold = 0.0 if top else float(self.prune)
        return Objective(self.loss, float(self.C), self.tol, self.max_sweeps, threshold, int(top), seed)

    def _seed(self) -> int:
        return secrets.randbits(30) if self.random_state is None else int(self.random_state)

    def _begin(self, X: Any, Y: Any) -> tuple[Any, Any, Array]:
        """Check parameters and data; the cost of missing each label."""
        self._check_parameters()
        resolve_jobs(self.n_jobs)
        X, Y = check_training(X, Y, type(self).__name__)
        counts = column_counts(Y)
        a, b = self.propensity
        # A fit that is broken off leaves a model that is not fitted, never old trees with new sizes.
        self.__dict__.pop("_search", None)
        self.__dict__.pop("trees_", None)
        self.inverse_propensity_ = inverse_propensity(counts, max(X.shape[0], 3), a=a, b=b).astype(np.float32)
        self.n_features_in_, self.n_labels_ = X.shape[1], Y.shape[1]
        costs = np.full(Y.shape[1], self.C, dtype=np.float32)
        if self.weighting == "loss" and Y.nnz:
            # On average over the labels of all rows a miss costs C still, or rare labels would be learned by heart.
            costs *= self.inverse_propensity_ * (counts.sum() / (counts @ self.inverse_propensity_))
        return X, Y, costs.astype(np.float32, copy=False)

    def _tune(self, X: Any, Y: Any, seed: int) -> None:
        """Learn calibration and thresholds from a model that has not seen all rows, for the one that will."""
        self.calibrations_, self.thresholds_ = (), None
        if self.calibrate is None and self.thresholds is None:
            return
        n_held = max(1, round(self.holdout * X.shape[0]))
        if n_held >= X.shape[0]:
            raise InvalidInput(
                f"{type(self).__name__}: holdout={self.holdout} of {X.shape[0]} rows leaves none to train on; "
                f"calibrate and thresholds need more rows"
            )
        order = np.random.default_rng(seed).permutation(X.shape[0])
        held, rest = np.sort(order[:n_held]), np.sort(order[n_held:])
        params = {**self.get_params(deep=False), "calibrate": None, "thresholds": None, "random_state": seed}
        _log.info("%s: training without %d rows, which are held out", type(self).__name__, n_held)
        model = type(self)(**params).fit(X[rest], Y[rest])
        if self.calibrate is not None:
            self.calibrations_ = model.calibrate_on(X[held], Y[held], self.calibrate).calibrations_
        if self.thresholds is not None:
            self.thresholds_ = model.tune_thresholds_on(X[held], Y[held], self.thresholds).thresholds_

    def _plan(self, X: Any, Y: Any, n_trees: int, widest: int, duals: bool) -> MemoryPlan:
        """What `fit` holds at its peak; the weights that are kept can only be estimated."""
        jobs = resolve_jobs(self.n_jobs)
        lanes = min(64, max(8, widest))
        siblings = sum(block_widths(min(widest, BLOCK_CHILDREN)))
        columns = int(np.count_nonzero(np.bincount(X.indices, minlength=X.shape[1]))) if X.nnz else 0
        by_rows = Y.nnz * max(1, X.nnz // X.shape[0])
        kept = min(columns * Y.shape[1], by_rows if self.prune == 0 else by_rows // 4)
        if self._objective(0).top:
            kept = min(kept, 2 * self._objective(0).top * Y.shape[1])
        stored = 4 if self.precision == 16 else 6
        parts = {
            "features": 12 * X.nnz,
            "rows being learned from": (8 * X.nnz + 24 * X.shape[0]) * jobs,
            "classifiers being learned": 4 * lanes * (columns + X.shape[0]) * jobs,
            "labels of rows": 128 * Y.nnz,
            "dual variables": 4 * (siblings * Y.nnz + lanes * X.shape[0]) if duals else 0,
            "rows that the beam mistakes": 64 * self._beam() * X.shape[0] if duals else 0,
            "held-out rows": self._held_out_bytes(X, Y),
            "weights kept (estimated)": (n_trees * stored + (12 if duals else 8)) * kept,
        }
        advice = "Keep fewer weights (prune), use fewer trees or threads (n_jobs), or fewer features."
        return MemoryPlan(type(self).__name__, parts, advice)

    def _held_out_bytes(self, X: Any, Y: Any) -> int:
        """The rows apart from the others, and about 100 bytes for each of their best labels."""
        if self.calibrate is None and self.thresholds is None:
            return 0
        candidates = int(self.holdout * X.shape[0]) * min(CANDIDATES, Y.shape[1])
        return 8 * (X.nnz + Y.nnz) + 100 * candidates

    def _grow(self, rows: Rows, Y: Any, hierarchy: LabelHierarchy, costs: Array, seed: int, beam: int) -> TreeWeights:
        """Train the classifiers of one tree; a `beam` above 0 trains again with what the beam mistakes for positive.

        Rows without labels teach the root what is none of its children.
        """
        examples = Examples.of(hierarchy, Y, costs)
        tasks = tasks_of(hierarchy)
        objective = self._objective(seed)
        unlabelled = np.flatnonzero(np.diff(Y.indptr) == 0)
        at_root = (unlabelled, np.zeros(len(unlabelled), dtype=np.int64))
        negatives = Negatives.of([at_root], examples)
        trained = train(rows, examples, tasks, objective, self.n_jobs, keep_duals=beam > 0, negatives=negatives)
        weights = self._packed(hierarchy, rows.n_features, trained)
        if beam > 0 and hierarchy.n_nodes > 1:
            mistaken = self._mistaken(rows, Y.shape[0], weights, beam)
            negatives = Negatives.of(chain([at_root], mistaken), examples)
            trained = train(rows, examples, tasks, objective, self.n_jobs, negatives=negatives, before=trained)
            weights = self._packed(hierarchy, rows.n_features, trained)
        self.gap_ = max([getattr(self, "gap_", 0.0), *(each.gap for each in trained)])
        self.n_sweeps_ = max([getattr(self, "n_sweeps_", 0), *(each.sweeps for each in trained)])
        return weights

    def _packed(self, hierarchy: LabelHierarchy, n_features: int, trained: list[Trained]) -> TreeWeights:
        """Store the weights of trained blocks, which are let go one after another; the rest of `trained` stays."""

        def blocks() -> Iterator[TrainedBlock]:
            for i, each in enumerate(trained):
                trained[i] = each._replace(block=NO_BLOCK)
                yield each.block

        return TreeWeights.pack(hierarchy, n_features, blocks(), self.precision)

    def _mistaken(self, rows: Rows, n_rows: int, weights: TreeWeights, beam: int) -> Iterator[tuple[Array, Array]]:
        """Rows and nodes below the root to which the beam sends them, block after block."""
        search = kernels.TreeSearch(
            rows.n_features, weights.hierarchy.n_labels, self.loss == "logistic", 1.0, [weights.for_search()]
        )

        def visits(block: slice) -> tuple[Array, Array]:
            found: tuple[Array, Array] = search.visited(
                0, rows.indptr, rows.indices, rows.data, block.start, block.stop, beam
            )
            return found

        with progress.task("searching for negatives", total=n_rows) as advance:
            blocks = split(n_rows, _ROWS_SEARCHED)
            for block, pairs in zip(blocks, map_blocks(visits, blocks, self.n_jobs), strict=True):
                yield pairs
                advance(block.stop - block.start)

    @property
    def scores_are_probabilities(self) -> bool:
        return self.weighting != "score"  # else probabilities times weights

    def _label_factors(self) -> Array | None:
        if self.weighting != "score":
            return None
        return self.inverse_propensity_ / self.inverse_propensity_.max(initial=1)

    def to_state(self) -> State:
        check_is_fitted(self)
        facts = {
            "n_features": self.n_features_in_,
            "n_labels": self.n_labels_,
            "n_trees": len(self.trees_),
            "gap": float(self.gap_),
            "n_sweeps": int(self.n_sweeps_),
        }
        parts = {f"tree{number}": tree.to_state() for number, tree in enumerate(self.trees_)}
        params = saved_params(self, without=self._not_saved)
        arrays = {"inverse_propensity": self.inverse_propensity_, **calibrations_to_arrays(self.calibrations_)}
        if self.thresholds_ is not None:
            arrays["thresholds"] = self.thresholds_
        return State(type(self).__name__, params, facts, arrays, parts)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Build the fitted estimator again, or raise `ModelFormatError`."""
        model = cls._from_params(state)
        model.n_features_in_, model.n_labels_ = state.size("n_features"), state.size("n_labels")
        model.gap_, model.n_sweeps_ = float(state.fact("gap", (int, float))), state.size("n_sweeps")
        model.inverse_propensity_ = state.array("inverse_propensity", np.float32, (model.n_labels_,))
        if not (np.isfinite(model.inverse_propensity_).all() and (model.inverse_propensity_ > 0).all()):
            raise ModelFormatError(f"{state.kind}: inverse propensities must be finite and positive")
        n_trees = state.size("n_trees", least=1)
        if n_trees != len(state.parts):
            raise ModelFormatError(f"{state.kind}: {n_trees} trees, but {len(state.parts)} parts")
        model.trees_ = tuple(
            TreeWeights.from_state(state.part(f"tree{number}", "TreeWeights")) for number in range(n_trees)
        )
        for tree in model.trees_:
            if tree.n_features != model.n_features_in_ or tree.hierarchy.n_labels != model.n_labels_:
                raise ModelFormatError(f"{state.kind}: a tree has other features or labels than the model")
        model.calibrations_ = calibrations_from_state(state, n_trees)
        model.thresholds_ = thresholds_from_state(state, model.n_labels_)
        return model
