"""`OneVsRest`: one linear classifier per label over all rows: the accuracy reference, where it can be afforded."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from longtail.estimator import OutputLayer, Rule
from longtail.estimator.training_data import column_counts
from longtail.labels import LabelHierarchy
from longtail.memory import MemoryPlan
from longtail.trees.classifier_tree import ClassifierTree
from longtail.trees.one_vs_rest_layer import one_vs_rest_layer
from longtail.trees.training import Rows

_log = logging.getLogger(__name__)


class OneVsRest(ClassifierTree):
    """A linear classifier for every label, each against all other rows.

    A label tree of one node: 64 labels are trained in lockstep, so that a pass over a row serves 64 classifiers.

    Parameters
    ----------
    loss : {"squared_hinge", "logistic"}
    C : float
        Weight of the loss against the penalty.
    prune : float or int
        A float drops weights of at most this magnitude; a whole number of at least 1 keeps so many weights of each
        label.
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
    precision : {16, 32}
        Bits of a stored weight.
    tol : float
        Gap between primal and dual value, relative to the primal, at which a block of labels is done.
    max_sweeps : int
        Most passes over the rows.
    random_state : int or None
        Order in which rows are visited.
    n_jobs : int or None
        Threads; None uses every core.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail import OneVsRest
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1], [0.1, 0.9]])
    >>> Y = np.array([[1, 0], [0, 1], [1, 0], [0, 1]])
    >>> OneVsRest().fit(X, Y).predict_topk(X, k=1)[0].ravel().tolist()
    [0, 1, 0, 1]
    """

    def __init__(
        self,
        loss: str = "squared_hinge",
        C: float = 1.0,
        prune: float = 0.05,
        *,
        weighting: str | None = None,
        propensity: tuple[float, float] = (0.55, 1.5),
        calibrate: str | None = None,
        thresholds: str | None = None,
        holdout: float = 0.1,
        precision: int = 16,
        tol: float = 0.01,
        max_sweeps: int = 20,
        random_state: int | None = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.loss = loss
        self.C = C
        self.prune = prune
        self.weighting = weighting
        self.propensity = propensity
        self.calibrate = calibrate
        self.thresholds = thresholds
        self.holdout = holdout
        self.precision = precision
        self.tol = tol
        self.max_sweeps = max_sweeps
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _memory_plan(self, X: Any, Y: Any) -> MemoryPlan:
        return self._plan(X, Y, 1, Y.shape[1], duals=False)

    def fit(self, X: Any, Y: Any) -> OneVsRest:
        """Train the classifier of every label.

        Parameters
        ----------
        X : sparse matrix or array of shape (n_rows, n_features)
        Y : sparse or dense 0/1 matrix of shape (n_rows, n_labels)
        """
        X, Y, costs = self._begin(X, Y)
        plan = self._memory_plan(X, Y).check()
        _log.info("%s: at most %s", plan.work, plan.describe())
        labels = np.flatnonzero(column_counts(Y))
        pointers = [0, len(labels)] if len(labels) else [0]
        hierarchy = LabelHierarchy(np.array(pointers), ~labels, Y.shape[1])
        seed = self._seed()
        self._tune(X, Y, seed)
        self.gap_, self.n_sweeps_ = 0.0, 0
        self.trees_ = (self._grow(Rows.of(X), Y, hierarchy, costs, seed, beam=0),)
        self._searcher()  # now, so that predicting changes nothing
        return self

    @property
    def scores_along_trees(self) -> bool:
        return False

    def _output_layer(self, rule: Rule) -> OutputLayer:
        return one_vs_rest_layer(self, rule)

    def summary(self) -> str:
        check_is_fitted(self)
        return f"{self._n_weights():,} weights"
