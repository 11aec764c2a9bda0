"""`TreeModel`: what every learner made of label trees can do once it is trained.

A label's score is the product over its path of what each classifier makes of its margin m: about exp(-max(0, 1 - m)^3),
or 1 / (1 + exp(-m)) for the logistic loss. It is in (0, 1]. A calibrated tree turns it into the chance of being right.
Several trees are averaged.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from longtail import progress
from longtail.arrays import Array
from longtail.errors import InvalidInput
from longtail.estimator import Estimator, Explanation, OutputLayer, Rule, Step
from longtail.estimator.base import CELLS
from longtail.labels import LabelHierarchy
from longtail.native import kernels
from longtail.native.tree_search import log_probability
from longtail.parallel import map_blocks, resolve_jobs, split
from longtail.parameters import Choice
from longtail.trees.calibration import METHODS, Calibration
from longtail.trees.thresholds import DEFAULT, OBJECTIVES, Candidates, is_true, tune_thresholds
from longtail.trees.training import Rows
from longtail.trees.weights import TreeWeights
from longtail.validation import as_labels

_FEWEST_ROWS = 64  # that are worth a thread
_MOST_ROWS = 4096
CANDIDATES = 100  # best labels of a held-out row from which calibration and thresholds are learned


class TreeModel(Estimator):
    """Prediction, explanation and decision values from ``trees_``."""

    _fitted_by = "trees_"

    loss: str
    n_jobs: int | None
    trees_: tuple[TreeWeights, ...]
    calibrations_: tuple[Calibration, ...]
    thresholds_: Array | None

    def _beam(self) -> int:
        """Nodes visited per level and row: the root, where there is no other."""
        return 1

    def _path_weight(self) -> float:
        """Weight of the nodes above a label in the logarithm of its score."""
        return 1.0

    def _label_factors(self) -> Array | None:
        """Factor in (0, 1] on each label's score, or None."""
        return None

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
            for done in map_blocks(part, self._row_blocks(n_rows), self.n_jobs, blas=False):
                advance(done)
        return labels, scores

    def _row_blocks(self, n_rows: int) -> list[slice]:
        if n_rows <= _FEWEST_ROWS:
            return [slice(0, n_rows)]
        return split(n_rows, min(_MOST_ROWS, max(_FEWEST_ROWS, -(-n_rows // resolve_jobs(self.n_jobs)))))

    def _scores(self, X: Any) -> Array:
        """The scores of a search without a beam; labels that had no rows in training score 0."""
        search = self._searcher()
        rows = Rows.of(X)
        beam = max(1, *(tree.hierarchy.n_nodes for tree in self.trees_))
        scores = np.zeros((X.shape[0], self.n_labels_), dtype=np.float32)
        factors = self._label_factors()

        def part(block: slice) -> None:
            search.all(rows.indptr, rows.indices, rows.data, block.start, block.stop, beam, factors, scores)

        for _ in map_blocks(part, self._row_blocks(X.shape[0]), self.n_jobs, blas=False):
            pass
        return scores

    def _thresholds(self) -> Any:
        """The score from which on a label is given: one for all, or one per label."""
        return DEFAULT if self.thresholds_ is None else self.thresholds_

    def _predict(self, X: Any) -> Any:
        """Labels that the beam reaches with a score of at least their threshold."""
        search = self._searcher()
        factors, places = self._label_factors(), self._reach()
        thresholds = np.broadcast_to(np.asarray(self._thresholds(), dtype=np.float32), self.n_labels_)
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
        """The most labels that a row can get: those of the widest nodes that the beam may visit, in every tree."""
        total = 0
        for tree in self.trees_:
            pointers, children = tree.hierarchy.pointers, tree.hierarchy.children
            before = np.concatenate([[0], np.cumsum(children < 0)])
            labels = np.sort(before[pointers[1:]] - before[pointers[:-1]])
            total += int(labels[max(0, len(labels) - self._beam() * tree.hierarchy.depth) :].sum())
        return max(1, min(self.n_labels_, total))

    @property
    def scores_along_trees(self) -> bool:
        return True

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

    def calibrate_on(self, X: Any, Y: Any, method: str = "platt") -> Self:
        """Turn the scores of each tree into the chance of being right, as rows show it that training did not see.

        Learned from the 100 best labels of each row. An earlier calibration is replaced, and thresholds, which were
        tuned for other scores, are dropped: tune them afterwards.

        Parameters
        ----------
        X : sparse matrix or array of shape (n_rows, n_features)
        Y : sparse or dense 0/1 matrix of shape (n_rows, n_labels)
        method : {"platt", "isotonic"}
            A sigmoid over the logarithm of the score, or a table, which needs more rows.
        """
        check_is_fitted(self)
        X, Y = self._held_out(X, Y, "method", method, METHODS)
        found = []
        for tree in self.trees_:
            labels, scores = self._best(self._search_in((tree,)), X, CANDIDATES, None, None)
            rows, places = np.nonzero(labels >= 0)
            hits = is_true(rows, labels[rows, places], Y)
            found.append(Calibration.fit(method, np.log(scores[rows, places]), hits))
        self.calibrations_, self.thresholds_ = tuple(found), None
        self.__dict__.pop("_search", None)
        self._searcher()
        return self

    def tune_thresholds_on(self, X: Any, Y: Any, objective: str = "f1") -> Self:
        """Choose the scores from which on `predict` gives each label, by rows that training did not see.

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
        found = self._best(search, X, CANDIDATES, None, self._label_factors())
        self.thresholds_ = tune_thresholds(Candidates.of(*found, Y), objective)
        return self

    def _held_out(self, X: Any, Y: Any, name: str, value: Any, options: tuple[str, ...]) -> tuple[Any, Any]:
        choice = Choice(options)
        if not choice.accepts(value):
            raise InvalidInput(f"{name} is {value!r}; expected {choice.describe()}")
        X = self._check_rows(X)
        Y = as_labels(Y, n_rows=X.shape[0])
        if Y.shape[1] != self.n_labels_:
            raise InvalidInput(f"Y has {Y.shape[1]} labels, but {type(self).__name__} was trained on {self.n_labels_}")
        if not X.shape[0]:
            raise InvalidInput("there are no rows to learn from; give rows that the model was not trained on")
        return X, Y

    def _explain(self, row: Any, label: int) -> Explanation:
        """Along its path in each tree: the margins of the path, averaged over trees, add up to the margin.

        The score is that of a search that misses nothing; `predict_topk` gives a little less where the beam misses the
        label in one of several trees.
        """
        search = self._searcher()
        # With all other labels shut off the search goes down one path in each tree, whatever the beam.
        only = np.zeros(self.n_labels_, dtype=bool)
        only[label] = True
        found, score = np.empty((1, 1), dtype=np.int64), np.empty((1, 1), dtype=np.float32)
        values = Rows.of(row)
        search.topk(
            values.indptr, values.indices, values.data, 0, 1, self._beam(), only, self._label_factors(), found, score
        )
        steps = [step for number in range(len(self.trees_)) for step in self._steps(number, row, label)]
        # One place for each feature of the row: how many features there are is only what the file says.
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

    def _steps(self, number: int, row: Any, label: int) -> list[Step]:
        tree = self.trees_[number]
        hierarchy = tree.hierarchy
        if hierarchy.parents()[1][label] < 0:
            return []
        path = hierarchy.path(label)
        steps = []
        for node, child in zip(path, [*path[1:], ~label], strict=True):
            first = int(hierarchy.pointers[node])
            slot = int(np.flatnonzero(hierarchy.children[first : int(hierarchy.pointers[node + 1])] == child)[0])
            features, weights = tree.edge_weights(node, slot)
            shared, mine, theirs = np.intersect1d(row.indices, features, return_indices=True)
            contributions = row.data[mine].astype(np.float64) * weights[theirs]
            order = np.argsort(-np.abs(contributions), kind="stable")
            intercept = float(tree.intercepts[first + slot])
            margin = float(contributions.sum() + intercept)
            weight = 1.0 if child < 0 else self._path_weight()
            steps.append(
                Step(
                    tree=number + 1,
                    node=node,
                    probability=float(np.exp(weight * log_probability(np.array(margin), self.loss == "logistic"))),
                    margin=margin,
                    features=shared[order],
                    contributions=contributions[order],
                    intercept=intercept,
                )
            )
        return steps
