"""`TreeModel`: what `LabelTree` and `OneVsRest` share: parameters, training, search, tuning, saving.

The score of a label is the product of the probabilities along its path. A classifier turns its margin m into about
exp(-max(0, 1 - m)^3), or 1 / (1 + exp(-m)) with the logistic loss. Scores are in (0, 1]. Calibration turns the score of
a tree into the probability that the label is right. The scores of several trees are averaged.
"""

from __future__ import annotations

import logging
import secrets
from abc import abstractmethod
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from longtail import progress
from longtail.arrays import Array
from longtail.errors import InvalidInput, ModelFormatError
from longtail.estimator import (
    CELLS,
    Estimator,
    Explanation,
    OutputLayer,
    Revision,
    Rule,
    column_counts,
    column_weights,
    read_prune,
    total_weight,
)
from longtail.labels import LabelHierarchy, grow_hierarchy, label_vectors, members_by_label
from longtail.memory import MemoryPlan
from longtail.metrics import inverse_propensity
from longtail.native import block_widths, kernels
from longtail.parallel import map_blocks, resolve_jobs, split
from longtail.parameters import Choice, Constraint, Number, Sequence, Threads
from longtail.store import State, saved_params
from longtail.trees.calibration import METHODS, Calibration, calibrations_from_state, calibrations_to_arrays
from longtail.trees.objective import Objective
from longtail.trees.thresholds import DEFAULT, OBJECTIVES, Candidates, is_true, thresholds_from_state, tune_thresholds
from longtail.trees.training import grow
from longtail.trees.updating import regrow
from longtail.trees.weighting import Weighting
from longtail.trees.weights import BLOCK_CHILDREN, TreeWeights
from longtail.validation import as_labels, is_binary
from longtail.work import InMemory, Results, Rows, Work, begin

_log = logging.getLogger(__name__)

_FEWEST_ROWS = 64  # fewer are not worth a thread
# The more rows are searched together, the more of them meet at a node, whose weights are then read once.
_MANY_ROWS, _MOST_ROWS = 4096, 32768
_MOST_PLACES = 2**19  # for nodes and labels of more rows than _MANY_ROWS: about 20 MB
_RIGHT = 0.5  # relevance from which a label of a held-out row is right
TERMS_OF_A_LABEL = 100  # more make the clusters no better
_CLUSTERED_ANEW = 0.25  # rows that move until the labels are clustered again, as a share of those that were clustered
_CANDIDATES = 100  # best labels of a held-out row that calibration and thresholds are learned from


class TreeModel(Estimator):
    """Linear classifiers in the nodes of trees over the labels, in ``trees_``."""

    _fitted_by = "trees_"
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

    loss: str
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
    n_jobs: int | None
    trees_: tuple[TreeWeights, ...]
    calibrations_: tuple[Calibration, ...]
    thresholds_: Array | None
    inverse_propensity_: Array
    gap_: float
    n_sweeps_: int
    rows_clustered_: int  # rows that the clusters were made from; 0 if the trees were given
    rows_moved_: int  # rows that came or left in updates since then
    staleness_: tuple[Array, ...]  # only after an update
    n_trained_: int  # classifiers that the last update trained again

    @abstractmethod
    def _clustering(
        self, work: Work, members: Results, X: Any, Y: Any, weighting: Weighting | None
    ) -> Callable[[str, int], LabelHierarchy]:
        """A function that returns the tree over the labels for the prefix of its stages and a random seed."""

    def _n_trees(self) -> int:
        return 1

    def _beam(self) -> int:
        """Nodes visited per level and row; 1 if the root is the only node."""
        return 1

    def _training_beam(self) -> int:
        """The beam that finds negatives for a second training; 0 for no second training."""
        return 0

    def _clusters(self) -> bool:
        """Whether training clusters the labels."""
        return False

    def _path_weight(self) -> float:
        """Weight of the nodes above a label in the logarithm of its score."""
        return 1.0

    @property
    def takes_weights(self) -> bool:
        return True

    @property
    def takes_relevance(self) -> bool:
        return True

    def _fit(self, X: Any, Y: Any, weights: Array | None) -> None:
        """Train the classifiers of every node; relevance is the share of the cost of missing a label."""
        resolve_jobs(self.n_jobs)
        # An interrupted fit leaves an unfitted model, never old trees with new sizes.
        self.__dict__.pop("_search", None)
        for made_before in ("trees_", "staleness_", "n_trained_"):
            self.__dict__.pop(made_before, None)
        costs = self._miss_costs(X, Y, weights)
        self.n_features_in_, self.n_labels_ = X.shape[1], Y.shape[1]
        seed = secrets.randbits(30) if self.random_state is None else int(self.random_state)
        self._tune(X, Y, weights, seed)
        work = begin(self._job(), self.n_jobs, features=X, labels=Y)
        if not work.is_stored:
            plan = self._memory_plan(X, Y)
            if weights is not None:
                plan = replace(plan, parts=plan.parts | self._weighted_parts(X, Y))
            plan.check()
            _log.info("%s needs at most this memory: %s", plan.work, plan.describe())
        self._grow(work, X, Y, costs, seed, Weighting.of(weights, None if is_binary(Y) else Rows.of(Y)))
        self._searcher()  # now, so that predicting changes nothing

    def _grow(self, work: Work, X: Any, Y: Any, costs: Array, seed: int, weighting: Weighting | None) -> None:
        """Cluster the labels and train all classifiers of each tree."""
        counts = column_counts(Y)
        members = members_by_label(work, counts)
        hierarchy_of = self._clustering(work, members, X, Y, weighting)
        trees, n_trees = [], self._n_trees()
        self.gap_, self.n_sweeps_ = 0.0, 0
        for number in range(n_trees):
            with progress.stage(f"tree {number + 1} of {n_trees}") if n_trees > 1 else nullcontext():
                name = f"tree{number}_"
                grown = grow(
                    work,
                    name,
                    members,
                    counts,
                    hierarchy_of(name, seed + number),
                    costs,
                    self._objective(seed + number),
                    beam=self._training_beam(),
                    weighting=weighting,
                )
            trees.append(grown.weights)
            self.gap_, self.n_sweeps_ = max(self.gap_, grown.gap), max(self.n_sweeps_, grown.sweeps)
        self.trees_ = tuple(trees)
        self.rows_clustered_, self.rows_moved_ = X.shape[0] if self._clusters() else 0, 0

    def _updated(self, revision: Revision) -> Self:
        """Change each tree; those classifiers are trained again whose rows have changed, see `trees.updating`.

        If so many rows have moved that other clusters are due, the trees are trained as a whole. Calibration stays, and
        so do thresholds; a new label gets the median threshold.
        """
        model = clone(self)
        X, Y = revision.X, revision.Y
        costs = model._miss_costs(X, Y, None)
        model.n_features_in_, model.n_labels_ = X.shape[1], Y.shape[1]
        seed = secrets.randbits(30) if self.random_state is None else int(self.random_state)
        model._memory_plan(X, Y).check()
        work = InMemory(self.n_jobs, {"features": X, "labels": Y})
        moved = self.rows_moved_ + len(revision.left) + len(revision.came)
        if self.rows_clustered_ and Y.nnz and moved >= _CLUSTERED_ANEW * self.rows_clustered_:
            model._grow(work, X, Y, costs, seed, None)
            model.n_trained_ = sum(len(tree.hierarchy.children) for tree in model.trees_)
        else:
            model._regrow(work, self, revision, costs, seed)
            model.rows_clustered_, model.rows_moved_ = self.rows_clustered_, moved
        model.calibrations_, model.thresholds_ = self.calibrations_, None
        if self.thresholds_ is not None:
            usual = np.median(self.thresholds_) if len(self.thresholds_) else DEFAULT
            before = np.append(self.thresholds_, np.float32(usual))
            model.thresholds_ = before[revision.labels].astype(np.float32)
        model._searcher()
        return model

    def _regrow(self, work: Work, old: Self, revision: Revision, costs: Array, seed: int) -> None:
        """Change the trees of `old`."""
        X, Y = revision.X, revision.Y
        counts = column_counts(Y)
        members = members_by_label(work, counts)
        vectors = cache(lambda: label_vectors(X, Y, TERMS_OF_A_LABEL, self.n_jobs))
        limits = self._leaf_limits()
        self.gap_, self.n_sweeps_, self.n_trained_ = old.gap_, old.n_sweeps_, 0
        trees, staleness = [], []
        for number, (tree, stale) in enumerate(zip(old.trees_, old._staleness(), strict=True)):
            growth = grow_hierarchy(
                tree.hierarchy, revision.labels, counts > 0, vectors, *limits, [seed + number], self.n_jobs
            )
            found = regrow(
                work,
                f"tree{number}_",
                members,
                counts,
                tree,
                stale,
                growth,
                revision,
                costs,
                self._objective(seed + number),
                beam=self._training_beam(),
                everything=self.weighting == "loss",
            )
            trees.append(found.weights)
            staleness.append(found.staleness)
            self.gap_, self.n_sweeps_ = max(self.gap_, found.gap), max(self.n_sweeps_, found.sweeps)
            self.n_trained_ += found.trained
        self.trees_, self.staleness_ = tuple(trees), tuple(staleness)

    def _leaf_limits(self) -> tuple[int | None, int]:
        """The leaf size and the branching by which an update splits a leaf that has grown; None splits none."""
        return None, 2

    def _staleness(self) -> tuple[Array, ...]:
        """For each classifier of each tree, how much its objective may have risen since it was trained."""
        found = vars(self).get("staleness_")
        return found or tuple(np.zeros(len(tree.hierarchy.children), dtype=np.float32) for tree in self.trees_)

    def _objective(self, seed: int) -> Objective:
        prune = read_prune(self.prune)
        return Objective(self.loss, float(self.C), self.tol, self.max_sweeps, *prune, seed, self.precision)

    def _weighted_parts(self, X: Any, Y: Any) -> dict[str, int]:
        """What weights of rows need in addition: rows twice, and a cost for each pair of row and classifier."""
        lanes = min(64, max(8, Y.shape[1]))
        return {"costs of weighted rows": (20 * X.nnz + 24 * lanes * X.shape[0]) * resolve_jobs(self.n_jobs)}

    def _miss_costs(self, X: Any, Y: Any, weights: Array | None = None) -> Array:
        """The cost of missing each label; sets the inverse propensities."""
        n_rows = max(total_weight(X.shape[0], weights), 3)
        counts = np.minimum(column_weights(Y, weights), n_rows)
        a, b = self.propensity
        self.inverse_propensity_ = inverse_propensity(counts, n_rows, a=a, b=b).astype(np.float32)
        costs = np.full(Y.shape[1], self.C, dtype=np.float32)
        if self.weighting == "loss" and Y.nnz:
            # A miss still costs C on average over all labels of all rows; otherwise rare labels would be overfitted.
            costs *= self.inverse_propensity_ * (counts.sum() / (counts @ self.inverse_propensity_))
        return costs.astype(np.float32, copy=False)

    def _plan(self, X: Any, Y: Any, n_trees: int, widest: int, duals: bool) -> MemoryPlan:
        """Peak memory of `fit`; the number of weights kept can only be estimated."""
        jobs = resolve_jobs(self.n_jobs)
        lanes = min(64, max(8, widest))
        siblings = sum(block_widths(min(widest, BLOCK_CHILDREN)))
        columns = int(np.count_nonzero(np.bincount(X.indices, minlength=X.shape[1]))) if X.nnz else 0
        by_rows = Y.nnz * max(1, X.nnz // max(1, X.shape[0]))
        kept = min(columns * Y.shape[1], by_rows if self.prune == 0 else by_rows // 4)
        _, top = read_prune(self.prune)
        if top:
            kept = min(kept, 2 * top * Y.shape[1])
        stored = 4 if self.precision == 16 else 6
        parts = {
            "features": 12 * X.nnz,
            "rows being learned from": (8 * X.nnz + 24 * X.shape[0]) * jobs,
            "classifiers being learned": 4 * lanes * (columns + X.shape[0]) * jobs,
            "labels of rows": 64 * Y.nnz,
            "dual variables": 4 * (siblings * Y.nnz + lanes * X.shape[0]) if duals else 0,
            "negatives found by the beam": 64 * self._beam() * X.shape[0] if duals else 0,
            "held-out rows": self._held_out_bytes(X, Y),
            "weights kept (estimated)": (n_trees * stored + (12 if duals else 8)) * kept,
        }
        advice = "Keep fewer weights (prune), use fewer trees or threads (n_jobs), or fewer features."
        return MemoryPlan(type(self).__name__, parts, advice)

    def _held_out_bytes(self, X: Any, Y: Any) -> int:
        """A copy of the held-out rows, and about 100 bytes for each of their best labels."""
        if self.calibrate is None and self.thresholds is None:
            return 0
        candidates = int(self.holdout * X.shape[0]) * min(_CANDIDATES, Y.shape[1])
        return 8 * (X.nnz + Y.nnz) + 100 * candidates

    def copy_for(self, rows: str, penalty: float = 1.0) -> Self:
        return super().copy_for(rows, penalty).set_params(C=self.C / penalty)

    @property
    def scores_are_probabilities(self) -> bool:
        return self.weighting != "score"  # which multiplies probabilities by weights

    @property
    def scores_along_trees(self) -> bool:
        return True

    @property
    def trains_in_pieces(self) -> bool:
        return True

    @property
    def hierarchies_(self) -> tuple[LabelHierarchy, ...]:
        """The tree over the labels of each of ``trees_``: to print, to export, to train another model on."""
        check_is_fitted(self)
        return tuple(tree.hierarchy for tree in self.trees_)

    def _searcher(self) -> Any:
        """The kernel's view of the trees, made once."""
        found = self.__dict__.get("_search")
        if found is None:
            check_is_fitted(self)
            found = self._search_in(self.trees_)
            for number, each in enumerate(self.calibrations_):
                found.calibrate(number, each.slope, each.offset, each.knots, each.values)
            self.__dict__["_search"] = found
        return found

    def _search_in(self, trees: tuple[TreeWeights, ...]) -> Any:
        arrays = [tree.for_search() for tree in trees]
        return kernels.TreeSearch(
            self.n_features_in_, self.n_labels_, self.loss == "logistic", self._path_weight(), arrays
        )

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        state.pop("_search", None)
        return state

    def _label_factors(self) -> Array | None:
        """Factor in (0, 1] on the score of each label, or None."""
        if self.weighting != "score":
            return None
        return self.inverse_propensity_ / self.inverse_propensity_.max(initial=1)

    def _topk(self, X: Any, k: int, mask: Array | None) -> tuple[Array, Array]:
        return self._best(self._searcher(), X, k, mask, self._label_factors())

    def _best(self, search: Any, X: Any, k: int, mask: Array | None, factors: Array | None) -> tuple[Array, Array]:
        """The k best labels, or as many as there are, and their scores."""
        rows, n_rows, beam = Rows.of(X), X.shape[0], self._beam()
        places = min(k, max(1, self.n_labels_))
        labels = np.empty((n_rows, places), dtype=np.int64)
        scores = np.empty((n_rows, places), dtype=np.float32)

        def part(block: slice) -> int:
            search.topk(
                rows.indptr, rows.indices, rows.data, block.start, block.stop, beam, mask, factors, labels, scores
            )
            return block.stop - block.start

        with progress.task("predicting", total=n_rows) as advance:
            for done in map_blocks(part, self._row_blocks(n_rows, places + beam), self.n_jobs, blas=False):
                advance(done)
        return labels, scores

    def _row_blocks(self, n_rows: int, places: int) -> list[slice]:
        """Blocks of rows for the threads; the search holds `places` nodes and labels of each row."""
        if n_rows <= _FEWEST_ROWS:
            return [slice(0, n_rows)]
        most = max(_MANY_ROWS, min(_MOST_ROWS, _MOST_PLACES // places))
        return split(n_rows, min(most, max(_FEWEST_ROWS, -(-n_rows // resolve_jobs(self.n_jobs)))))

    def _scores(self, X: Any) -> Array:
        """The scores of a search without a beam; labels that had no rows in training score 0."""
        search = self._searcher()
        rows = Rows.of(X)
        beam = max(1, *(tree.hierarchy.n_nodes for tree in self.trees_))
        scores = np.zeros((X.shape[0], self.n_labels_), dtype=np.float32)
        factors = self._label_factors()

        def part(block: slice) -> None:
            search.all(rows.indptr, rows.indices, rows.data, block.start, block.stop, beam, factors, scores)

        for _ in map_blocks(part, self._row_blocks(X.shape[0], beam), self.n_jobs, blas=False):
            pass
        return scores

    @property
    def decides(self) -> bool:
        return self.__sklearn_is_fitted__() and self.thresholds_ is not None

    def _thresholds(self) -> Array:
        """The score from which each label is given."""
        found = np.float32(DEFAULT) if self.thresholds_ is None else self.thresholds_
        return np.broadcast_to(found, self.n_labels_)

    def _predict(self, X: Any) -> Any:
        """Labels that the beam reaches with a score of at least their threshold."""
        search = self._searcher()
        factors, places = self._label_factors(), self._reach()
        thresholds = self._thresholds()
        parts = [sparse.csr_array((0, self.n_labels_), dtype=np.int8)]
        for block in split(X.shape[0], max(1, CELLS // places)):
            labels, scores = self._best(search, X[block], places, None, factors)
            given = (labels >= 0) & (scores > 0)
            given[given] = scores[given] >= thresholds[labels[given]]
            indptr = np.concatenate([[0], np.cumsum(given.sum(axis=1))])
            found = sparse.csr_array(
                (np.ones(int(indptr[-1]), dtype=np.int8), labels[given], indptr), shape=(len(labels), self.n_labels_)
            )
            found.sort_indices()
            parts.append(found)
        return sparse.csr_array(sparse.vstack(parts, format="csr"))

    def _reach(self) -> int:
        """The most labels that a row can get: those of the widest nodes that the beam can visit, in every tree."""
        total = 0
        for tree in self.trees_:
            pointers, children = tree.hierarchy.pointers, tree.hierarchy.children
            before = np.concatenate([[0], np.cumsum(children < 0)])
            labels = np.sort(before[pointers[1:]] - before[pointers[:-1]])
            total += int(labels[max(0, len(labels) - self._beam() * tree.hierarchy.depth) :].sum())
        return max(1, min(self.n_labels_, total))

    def _explain(self, row: Any, label: int) -> Explanation:
        """The margin is the sum of the margins along the path, averaged over trees.

        The score is that of a search that misses nothing; `predict_topk` gives slightly less if the beam misses the
        label in one of several trees.
        """
        # With all other labels denied, the search follows one path in each tree, whatever the beam.
        only = np.zeros(self.n_labels_, dtype=bool)
        only[label] = True
        found, score = self._best(self._searcher(), row, 1, only, self._label_factors())
        logistic, path_weight = self.loss == "logistic", self._path_weight()
        steps = [
            step
            for number, tree in enumerate(self.trees_, start=1)
            for step in tree.steps(number, row, label, logistic, path_weight)
        ]
        # One place for each feature of the row: the number of features is only what the file claims.
        total = np.zeros(len(row.indices), dtype=np.float64)
        for step in steps:
            total[np.searchsorted(row.indices, step.features)] += step.contributions
        total /= len(self.trees_)
        kept = np.flatnonzero(total)
        kept = kept[np.argsort(-np.abs(total[kept]), kind="stable")]
        intercept = sum(step.intercept for step in steps) / len(self.trees_)
        return Explanation(
            label=label,
            score=float(score[0, 0]) if found[0, 0] >= 0 else 0.0,
            margin=float(total.sum() + intercept),
            features=row.indices[kept].astype(np.int64),
            contributions=total[kept],
            intercept=intercept,
            steps=tuple(steps),
        )

    def _output_layer(self, rule: Rule) -> OutputLayer:
        raise InvalidInput(
            f"{type(self).__name__} has no linear output layer: the score of a label is a product along its path in a "
            "tree"
        )

    def summary(self) -> str:
        check_is_fitted(self)
        trees, nodes = len(self.trees_), sum(tree.hierarchy.n_nodes for tree in self.trees_)
        return (
            f"{trees:,} {'tree' if trees == 1 else 'trees'} of {nodes:,} {'node' if nodes == 1 else 'nodes'}, "
            f"{self._n_weights():,} weights"
        )

    def _n_weights(self) -> int:
        return sum(tree.n_weights for tree in self.trees_)

    def _tune(self, X: Any, Y: Any, weights: Array | None, seed: int) -> None:
        """Learn calibration and thresholds for the model from one that is trained without the held-out rows.

        Each held-out row counts once, and a label is right for it from a relevance of one half.
        """
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
        _log.info("%s: training without %d held-out rows", type(self).__name__, n_held)
        model = type(self)(**params).fit(X[rest], Y[rest], None if weights is None else weights[rest])
        truth = Y[held] if is_binary(Y) else sparse.csr_array(Y[held] >= _RIGHT)
        if self.calibrate is not None:
            self.calibrations_ = model.calibrate_on(X[held], truth, self.calibrate).calibrations_
        if self.thresholds is not None:
            self.thresholds_ = model.tune_thresholds_on(X[held], truth, self.thresholds).thresholds_

    def calibrate_on(self, X: Any, Y: Any, method: str = "platt") -> Self:
        """Learn on held-out rows to turn the scores of each tree into the probability that a label is right.

        Learns from the 100 best labels of each row. Replaces an earlier calibration, and drops thresholds, which were
        tuned for other scores: tune them afterwards.

        Parameters
        ----------
        X : sparse matrix or array of shape (n_rows, n_features)
        Y : sparse or dense 0/1 matrix of shape (n_rows, n_labels)
        method : {"platt", "isotonic"}
            A sigmoid of the logarithm of the score, or a table, which needs more rows.
        """
        check_is_fitted(self)
        X, Y = self._held_out(X, Y, "method", method, METHODS)
        found = []
        for tree in self.trees_:
            labels, scores = self._best(self._search_in((tree,)), X, _CANDIDATES, None, None)
            rows, places = np.nonzero(labels >= 0)
            hits = is_true(rows, labels[rows, places], Y)
            found.append(Calibration.fit(method, np.log(scores[rows, places]), hits))
        self.calibrations_, self.thresholds_ = tuple(found), None
        self.__dict__.pop("_search", None)
        self._searcher()
        return self

    def tune_thresholds_on(self, X: Any, Y: Any, objective: str = "f1") -> Self:
        """Choose on held-out rows the score from which `predict` gives each label.

        Parameters
        ----------
        X : sparse matrix or array of shape (n_rows, n_features)
        Y : sparse or dense 0/1 matrix of shape (n_rows, n_labels)
        objective : {"f1", "macro_f1"}
            The F1 of all pairs of row and label together, or that of each label. Labels with fewer than 20 of the rows
            ("f1") or 8 ("macro_f1") share one threshold.
        """
        search = self._searcher()
        X, Y = self._held_out(X, Y, "objective", objective, OBJECTIVES)
        found = self._best(search, X, _CANDIDATES, None, self._label_factors())
        self.thresholds_ = tune_thresholds(Candidates.of(*found, Y), objective)
        return self

    def _held_out(self, X: Any, Y: Any, name: str, value: Any, options: tuple[str, ...]) -> tuple[Any, Any]:
        choice = Choice(options)
        if not choice.accepts(value):
            raise InvalidInput(f"{name} is {value!r}; expected {choice.describe()}", code="bad_parameter", name=name)
        X = self._check_rows(X)
        Y = as_labels(Y, n_rows=X.shape[0])
        if Y.shape[1] != self.n_labels_:
            raise InvalidInput(f"Y has {Y.shape[1]} labels, but {type(self).__name__} was trained on {self.n_labels_}")
        if not X.shape[0]:
            raise InvalidInput("there are no rows to learn from; pass rows that the model was not trained on")
        return X, Y

    def to_state(self) -> State:
        check_is_fitted(self)
        facts = {
            "n_features": self.n_features_in_,
            "n_labels": self.n_labels_,
            "n_trees": len(self.trees_),
            "gap": float(self.gap_),
            "n_sweeps": int(self.n_sweeps_),
            "rows_clustered": self.rows_clustered_,
            "rows_moved": self.rows_moved_,
        }
        parts = {f"tree{number}": tree.to_state() for number, tree in enumerate(self.trees_)}
        params = saved_params(self, without=self._not_saved)
        arrays = {"inverse_propensity": self.inverse_propensity_, **calibrations_to_arrays(self.calibrations_)}
        if self.thresholds_ is not None:
            arrays["thresholds"] = self.thresholds_
        for number, stale in enumerate(vars(self).get("staleness_", ())):
            arrays[f"staleness{number}"] = stale
        return State(type(self).__name__, params, facts, arrays, parts)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Build the fitted estimator again, or raise `ModelFormatError`."""
        model = cls._from_params(state)
        model.n_features_in_, model.n_labels_ = state.size("n_features"), state.size("n_labels")
        model.gap_, model.n_sweeps_ = float(state.fact("gap", (int, float))), state.size("n_sweeps")
        model.rows_clustered_, model.rows_moved_ = state.size("rows_clustered"), state.size("rows_moved")
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
        if "staleness0" in state.arrays:
            model.staleness_ = tuple(
                _checked_staleness(state, number, tree) for number, tree in enumerate(model.trees_)
            )
        return model


def _checked_staleness(state: State, number: int, tree: TreeWeights) -> Array:
    found = state.array(f"staleness{number}", np.float32, tree.hierarchy.children.shape)
    if not (np.isfinite(found).all() and (found >= 0).all()):
        raise ModelFormatError(f"{state.kind}: the staleness of classifiers must be finite and not negative")
    return found
