"""`LabelTree`: a tree over the labels, linear classifiers in its nodes, searched with a beam (Parabel, WWW 2018)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from longtail.errors import InvalidInput
from longtail.estimator import column_counts
from longtail.labels import LabelHierarchy, check_sums, cluster_vectors, vectors_by_label
from longtail.memory import MemoryPlan
from longtail.parameters import Choice, Constraint, Number
from longtail.trees.model import TERMS_OF_A_LABEL, TreeModel
from longtail.trees.weighting import Weighting
from longtail.work import Results, Work

# Classifiers trained on what the beam mistakes hardly need the nodes above them to tell a label from the rest.
_PATH_WEIGHT_OF_BEAM = 0.25


class LabelTree(TreeModel):
    """A tree over the labels, linear classifiers in its nodes, a beam search at prediction.

    Clustering puts similar labels together. At each node, one classifier per child learns from the rows that have a
    label below the node. At prediction a row descends the tree, and only the most promising nodes are visited. Training
    time grows with rows x log labels, prediction time with log labels.

    Parameters
    ----------
    leaf_size : int
        Maximum number of labels in a leaf.
    branching : int
        Maximum number of children of a node.
    n_trees : int
        Number of trees with different clusterings; their scores are averaged.
    loss : {"squared_hinge", "logistic"}
    C : float
        Weight of the loss relative to the penalty.
    beam : int
        Number of nodes visited per level at prediction.
    prune : float or int
        A float drops weights up to this magnitude; a whole number of 1 or more keeps that many weights of each
        classifier.
    negatives : {"siblings", "beam"}
        Negative examples of a node. "siblings": rows with a label elsewhere below it. "beam" trains a second time and
        adds rows that the beam sends there by mistake. Training then takes about twice as long with a few hundred
        labels and three to four times as long with thousands; the model is nearly as accurate as one-vs-rest.
    weighting : {None, "loss", "score"}
        How to favour rare labels by their inverse propensity. "loss" makes the cost of missing a label proportional to
        it, with C as the mean over all pairs of row and label. "score" multiplies scores by it, relative to the rarest.
    propensity : pair of float
        The constants A and B of the propensity model.
    calibrate : {None, "platt", "isotonic"}
        Learn on held-out rows to turn scores into the probability that a label is right: by a sigmoid, or by a table,
        which needs more rows.
    thresholds : {None, "f1", "macro_f1"}
        Choose on held-out rows the score from which `predict` gives a label, for the best F1 of all pairs of row and
        label together, or of each label. None gives labels that score at least 0.5.
    holdout : float
        Share of rows held out for `calibrate` and `thresholds`. The model is then trained twice: first without these
        rows to learn both, then on all rows.
    hierarchy : LabelHierarchy or None
        A given tree over the labels; None learns one.
    precision : {16, 32}
        Bits of a stored weight.
    tol : float
        Training of a node stops at this gap between primal and dual value, relative to the primal.
    max_sweeps : int
        Maximum number of passes over the rows of a node.
    random_state : int or None
        Random seed. The same seed gives the same model for any `n_jobs`; None gives another model each time.
    n_jobs : int or None
        Number of threads; None uses every core.

    Attributes
    ----------
    trees_ : tuple of TreeWeights
    hierarchies_ : tuple of LabelHierarchy
    inverse_propensity_ : array of shape (n_labels,)
    calibrations_ : tuple of Calibration
        One per tree; empty without calibration.
    thresholds_ : float32 array of shape (n_labels,) or None
    gap_ : float
        Largest relative gap of a node at the end of training.
    n_sweeps_ : int
        Largest number of passes over the rows of a node.

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
        **TreeModel._parameters,
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

    def _n_trees(self) -> int:
        return self.n_trees

    def _beam(self) -> int:
        return self.beam

    def _training_beam(self) -> int:
        return self.beam if self.negatives == "beam" else 0

    def _clusters(self) -> bool:
        return self.hierarchy is None

    def _path_weight(self) -> float:
        return _PATH_WEIGHT_OF_BEAM if self.negatives == "beam" else 1.0

    def _leaf_limits(self) -> tuple[int | None, int]:
        return self.leaf_size, self.branching

    def _memory_plan(self, X: Any, Y: Any) -> MemoryPlan:
        return self._plan(X, Y, self.n_trees, max(self.leaf_size, self.branching), self.negatives == "beam")

    def _clustering(
        self, work: Work, members: Results, X: Any, Y: Any, weighting: Weighting | None
    ) -> Callable[[str, int], LabelHierarchy]:
        if self.hierarchy is not None:
            if not isinstance(self.hierarchy, LabelHierarchy):
                raise InvalidInput(f"hierarchy is a {type(self.hierarchy).__name__}; expected a LabelHierarchy or None")
            if self.hierarchy.n_labels != Y.shape[1]:
                raise InvalidInput(f"the hierarchy is over {self.hierarchy.n_labels} labels, but Y has {Y.shape[1]}")
            given = self.hierarchy.restricted_to(column_counts(Y) > 0)
            return lambda name, seed: given
        counts = column_counts(Y)
        check_sums(X, counts)
        factors = None if weighting is None else weighting.of_members(members)
        vectors = vectors_by_label(work, members, counts, TERMS_OF_A_LABEL, factors)
        return lambda name, seed: cluster_vectors(work, name, vectors, X.shape[1], self.leaf_size, self.branching, seed)
