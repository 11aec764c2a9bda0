"""`LabelTree`: a tree over the labels, linear classifiers in its nodes, searched with a beam (Parabel, WWW 2018)."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from typing import Any, ClassVar

from longtail import progress
from longtail.errors import InvalidInput
from longtail.estimator.training_data import column_counts
from longtail.labels import LabelHierarchy, cluster_labels, label_vectors
from longtail.memory import MemoryPlan
from longtail.parameters import Choice, Constraint, Number
from longtail.trees.classifier_tree import ClassifierTree
from longtail.trees.training import Rows

_log = logging.getLogger(__name__)

# Classifiers that have seen what the beam mistakes hardly need the nodes above them to tell a label from the rest.
_PATH_WEIGHT_OF_BEAM = 0.25
_TERMS_OF_A_LABEL = 100  # more make the clusters no better


class LabelTree(ClassifierTree):
    """A tree over the labels, linear classifiers in its nodes, a beam search at prediction.

    Similar labels are put together by clustering; at each node one classifier per child learns from the rows that have
    a label below the node; a row is led down the tree and only the most promising nodes are looked into. Training takes
    time in proportion to rows x log labels, prediction to log labels.

    Parameters
    ----------
    leaf_size : int
        Labels a node may have.
    branching : int
        Nodes a node may have.
    n_trees : int
        Trees, of different clusterings, whose scores are averaged.
    loss : {"squared_hinge", "logistic"}
    C : float
        Weight of the loss against the penalty.
    beam : int
        Nodes that are looked into per level at prediction.
    prune : float or int
        A float drops weights of at most this magnitude; a whole number of at least 1 keeps so many weights of each
        classifier.
    negatives : {"siblings", "beam"}
        What a node learns to refuse: rows with a label elsewhere below it, or in a second training also rows that the
        beam sends there by mistake. With the second, training takes about twice as long with some hundred labels and
        three to four times as long with thousands; the model is nearly as accurate as one-vs-rest.
    weighting : {None, "loss", "score"}
        Rare labels: "loss" makes missing a label cost in proportion to its inverse propensity, C on average over all
        pairs of row and label; "score" multiplies scores by it, relative to the rarest.
    propensity : pair of float
        The constants A and B of the propensity model.
    calibrate : {None, "platt", "isotonic"}
        Turn scores into the chance of being right, learned on held-out rows: by a sigmoid, or by a table, which needs
        more rows.
    thresholds : {None, "f1", "macro_f1"}
        Choose on held-out rows from which score on `predict` gives a label: for the best F1 of all pairs of row and
        label together, or of each label. None gives labels that score at least 0.5.
    holdout : float
        Share of rows that are held out for `calibrate` and `thresholds`. The model is then trained twice: without them,
        to learn both, and with all rows, to be kept.
    hierarchy : LabelHierarchy or None
        A tree to use instead of learning one.
    precision : {16, 32}
        Bits of a stored weight.
    tol : float
        Gap between primal and dual value, relative to the primal, at which the classifiers of a node are done.
    max_sweeps : int
        Most passes over the rows of a node.
    random_state : int or None
        The same number gives the same model, whatever `n_jobs`; None another each time.
    n_jobs : int or None
        Threads; None uses every core.

    Attributes
    ----------
    trees_ : tuple of TreeWeights
    hierarchies_ : tuple of LabelHierarchy
    inverse_propensity_ : array of shape (n_labels,)
    calibrations_ : tuple of Calibration
        One per tree; empty without calibration.
    thresholds_ : float32 array of shape (n_labels,) or None
    gap_ : float
        Largest relative gap at which a node's training ended.
    n_sweeps_ : int
        Most passes over the rows that a node took.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail import LabelTree
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1], [0.1, 0.9]])
    >>> Y = np.array([[1, 0], [0, 1], [1, 0], [0, 1]])
    >>> labels, scores = LabelTree().fit(X, Y).predict_topk(X, k=1)
    >>> labels.ravel().tolist()
    [0, 1, 0, 1]
    """

    _parameters: ClassVar[dict[str, Constraint]] = {
        **ClassifierTree._parameters,
        "leaf_size": Number(low=1, high=2**31, whole=True),
        "branching": Number(low=2, high=2**31, whole=True),
        "n_trees": Number(low=1, high=1000, whole=True),
        "beam": Number(low=1, high=2**31, whole=True),
        "negatives": Choice(("siblings", "beam")),
    }
    _not_saved = ("hierarchy",)

    def __init__(
        self,
        leaf_size: int = 100,
        branching: int = 64,
        n_trees: int = 1,
        loss: str = "squared_hinge",
        C: float = 1.0,
        beam: int = 10,
        prune: float = 0.1,
        negatives: str = "siblings",
        *,
        weighting: str | None = None,
        propensity: tuple[float, float] = (0.55, 1.5),
        calibrate: str | None = None,
        thresholds: str | None = None,
        holdout: float = 0.1,
        hierarchy: LabelHierarchy | None = None,
        precision: int = 16,
        tol: float = 0.01,
        max_sweeps: int = 20,
        random_state: int | None = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.leaf_size = leaf_size
        self.branching = branching
        self.n_trees = n_trees
        self.loss = loss
        self.C = C
        self.beam = beam
        self.prune = prune
        self.negatives = negatives
        self.weighting = weighting
        self.propensity = propensity
        self.calibrate = calibrate
        self.thresholds = thresholds
        self.holdout = holdout
        self.hierarchy = hierarchy
        self.precision = precision
        self.tol = tol
        self.max_sweeps = max_sweeps
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _beam(self) -> int:
        return self.beam

    def _path_weight(self) -> float:
        return _PATH_WEIGHT_OF_BEAM if self.negatives == "beam" else 1.0

    def _memory_plan(self, X: Any, Y: Any) -> MemoryPlan:
        return self._plan(X, Y, self.n_trees, max(self.leaf_size, self.branching), self.negatives == "beam")

    def fit(self, X: Any, Y: Any) -> LabelTree:
        """Cluster the labels and train the classifiers of every node.

        Parameters
        ----------
        X : sparse matrix or array of shape (n_rows, n_features)
        Y : sparse or dense 0/1 matrix of shape (n_rows, n_labels)
        """
        X, Y, costs = self._begin(X, Y)
        plan = self._memory_plan(X, Y).check()
        _log.info("%s: at most %s", plan.work, plan.describe())
        rows, seed = Rows.of(X), self._seed()
        self._tune(X, Y, seed)
        self.gap_, self.n_sweeps_ = 0.0, 0
        vectors = None if self.hierarchy is not None else label_vectors(X, Y, top=_TERMS_OF_A_LABEL, n_jobs=self.n_jobs)
        trees = []
        beam = self.beam if self.negatives == "beam" else 0
        for number in range(self.n_trees):
            with progress.stage(f"tree {number + 1} of {self.n_trees}") if self.n_trees > 1 else nullcontext():
                hierarchy = self._hierarchy(Y, vectors, seed + number)
                trees.append(self._grow(rows, Y, hierarchy, costs, seed + number, beam))
        self.trees_ = tuple(trees)
        self._searcher()  # now, so that predicting changes nothing
        return self

    def _hierarchy(self, Y: Any, vectors: Any, seed: int) -> LabelHierarchy:
        if self.hierarchy is None:
            return cluster_labels(vectors, self.leaf_size, self.branching, seed, self.n_jobs)
        if not isinstance(self.hierarchy, LabelHierarchy):
            raise InvalidInput(f"hierarchy is a {type(self.hierarchy).__name__}; expected a LabelHierarchy or None")
        if self.hierarchy.n_labels != Y.shape[1]:
            raise InvalidInput(f"the hierarchy is over {self.hierarchy.n_labels} labels, but Y has {Y.shape[1]}")
        return self.hierarchy.restricted_to(column_counts(Y) > 0)
