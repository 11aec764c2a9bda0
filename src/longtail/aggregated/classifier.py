"""`AggregatedClassifier`: trains any estimator where labels are known only for groups of rows."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from longtail import progress
from longtail.aggregated.aggregation import Aggregation
from longtail.aggregated.assignment import RULES, Assignment, place_labels
from longtail.aggregated.refinement import explained, refine
from longtail.aggregated.vectors import search_rows, vectors_of
from longtail.arrays import Array
from longtail.choice import check_learner, choose_learner
from longtail.errors import InvalidInput, ModelFormatError
from longtail.estimator import Estimator, Explanation, OutputLayer, Rule
from longtail.labels import LabelHierarchy
from longtail.parameters import Choice, Constraint, Number, Threads
from longtail.printable import counted
from longtail.store import State, part_state, put_learner_together, saved_params
from longtail.validation import as_features

_log = logging.getLogger(__name__)

STRATEGIES = ("iterate", "eagle", "eagle-0", "all", "auto")
_DEFAULT = "iterate"
# Strategy auto needs this many groups with members and labels to compare strategies.
FEWEST_GROUPS = 20
_FEW_HELD_OUT = 10


class AggregatedClassifier(Estimator):
    """Learns to label rows where labels are known only for groups of rows.

    Parameters
    ----------
    estimator : Estimator or None
        Learns from the rows once these have labels. None chooses one by the size of the data.
    strategy : {"iterate", "eagle", "eagle-0", "all", "auto"}
        How labels find their rows.

        - eagle: labels go to the rows most similar to the vectors of `GroupRobustLabelVectors`.
        - eagle-0: the vectors are plain means; `n_iter` is ignored.
        - iterate: starts as eagle. Then, `rounds` times, models trained on some of the groups place the labels of the
          others.
        - all: every member gets every label of its groups.
        - auto: trains each of these on part of the groups and takes the one that explains the held-out groups best.
          With fewer than 20 groups that have members and labels it takes iterate.
    rule : {"joint", "count", "argmax"}
        Which members get a label of their group, see `assign_labels`.
    n_iter, step
        Number and length of the steps in the search for label vectors.
    rounds : int
        How often strategy iterate places the labels again.
    folds : int
        Into how many parts strategy iterate divides the groups.
    holdout : float
        Share of the groups that strategy auto holds out.
    random_state : int or None
        Seed for dividing the groups.
    n_jobs : int or None
        Threads of the search for label vectors; None uses every core. The estimator has its own.

    Attributes
    ----------
    estimator_ : the trained estimator
    strategy_ : str
        `strategy`, or the one that auto took.
    evidence_ : dict
        The strategies that auto tried, and the share of the labels of held-out groups that each explained. Empty
        where it tried none.
    row_labels_ : csr_array of shape (n_rows, n_labels)
        The labels that the estimator was trained on. Rows without labels were left out.
    label_vectors_ : csr_array of shape (n_labels, n_features) or None
        None for strategy all.
    assignment_ : Assignment or None
        Which row each label went to, and how sure that is. None for strategy all.

    Notes
    -----
    A saved model does not keep ``row_labels_``, ``label_vectors_``, ``assignment_`` and ``evidence_``.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail import AggregatedClassifier, Ridge
    >>> X = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1]], dtype=np.float32)
    >>> groups = [[1, 0], [1, 0], [0, 1], [0, 1]]
    >>> group_labels = [[1, 1, 0], [1, 0, 1]]  # label 0 in both groups
    >>> model = AggregatedClassifier(Ridge(alpha=0.1)).fit(X, groups, group_labels)
    >>> model.row_labels_.toarray().astype(int).tolist()
    [[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 1]]
    """

    _fitted_by = "estimator_"
    _not_saved = ("estimator",)
    _parameters: ClassVar[dict[str, Constraint]] = {
        "strategy": Choice(STRATEGIES),
        "rule": Choice(RULES),
        "n_iter": Number(low=0, high=2**31, whole=True),
        "step": Number(low=0, high=1e6),
        "rounds": Number(low=1, high=1000, whole=True),
        "folds": Number(low=2, high=1000, whole=True),
        "holdout": Number(above=0, high=0.9),
        "random_state": Number(low=0, high=2**31, whole=True, optional=True),
        "n_jobs": Threads(),
    }

    estimator_: Any
    strategy_: str
    evidence_: dict[str, float]
    row_labels_: Any
    label_vectors_: Any
    assignment_: Assignment | None

    def __init__(
        self,
        estimator: Any = None,
        strategy: str = _DEFAULT,
        rule: str = "joint",
        n_iter: int = 20,
        step: float = 0.1,
        rounds: int = 2,
        folds: int = 2,
        holdout: float = 0.2,
        random_state: int | None = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.strategy = strategy
        self.rule = rule
        self.n_iter = n_iter
        self.step = step
        self.rounds = rounds
        self.folds = folds
        self.holdout = holdout
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, groups: Any, group_labels: Any, sample_weight: Any = None) -> Self:  # type: ignore[override]
        """Find the rows of the labels, then train the estimator on them.

        Parameters
        ----------
        X : sparse matrix or array-like of shape (n_rows, n_features)
            Usually with rows of length 1.
        groups : sparse or dense 0/1 matrix of shape (n_rows, n_groups)
            Groups may overlap, differ in size and be empty. Rows in no group are ignored.
        group_labels : sparse or dense matrix of whole numbers, of shape (n_groups, n_labels)
            How often each label is in a group, or 1 where the number is unknown.
        sample_weight : None
            Rows of groups have no weights: what a row counts would also have to decide which rows get labels.
        """
        if sample_weight is not None:
            message = "AggregatedClassifier cannot weigh rows; fit it without sample_weight"
            raise InvalidInput(message, code="no_sample_weight")
        X, aggregation, seed = self._checked(X, groups, group_labels)
        if not len(aggregation.label_groups):
            raise InvalidInput("no group has both members and labels, so there is nothing to learn", code="no_labels")
        self.__dict__.pop("estimator_", None)
        self.strategy_, self.evidence_ = self._chosen_strategy(X, aggregation, seed)
        self.row_labels_, self.label_vectors_, self.assignment_ = self._label_rows(X, aggregation, self.strategy_, seed)
        labelled = int(np.count_nonzero(np.diff(self.row_labels_.indptr)))
        _log.info(
            "training on %s with %.1f labels each; %s got no label",
            counted(labelled, "row"),
            self.row_labels_.nnz / labelled,
            counted(X.shape[0] - labelled, "row"),
        )
        self._take(self._train_on_labelled(X, self.row_labels_))
        return self

    def _take(self, estimator: Any) -> None:
        self.estimator_ = estimator
        self.n_features_in_, self.n_labels_ = int(estimator.n_features_in_), int(estimator.n_labels_)

    def assign_labels(self, X: Any, groups: Any, group_labels: Any) -> Assignment:
        """Find the rows of the labels as `fit` does, without training an estimator on them.

        Strategy all assigns no labels and is refused.
        """
        X, aggregation, seed = self._checked(X, groups, group_labels)
        if self.strategy == "all":
            raise InvalidInput("strategy 'all' gives every label to every member; there is nothing to assign")
        if not len(aggregation.label_groups):
            return place_labels(aggregation, np.zeros(0), self.rule)
        strategy, tried = self._chosen_strategy(X, aggregation, seed)
        if strategy == "all":  # it assigns nothing, so take the best of the others
            strategy = max((name for name in tried if name != "all"), key=lambda name: tried[name])
        found = self._label_rows(X, aggregation, strategy, seed)[2]
        assert found is not None
        return found

    def _checked(self, X: Any, groups: Any, group_labels: Any) -> tuple[Any, Aggregation, int]:
        """The checked arguments of `fit`, and a seed."""
        self._check_parameters()
        if self.estimator is not None:
            check_learner(self.estimator, type(self).__name__)
        X = as_features(X)
        aggregation = Aggregation.of(groups, group_labels, X.shape[0])
        return X, aggregation, secrets.randbits(30) if self.random_state is None else int(self.random_state)

    def _chosen_strategy(self, X: Any, aggregation: Aggregation, seed: int) -> tuple[str, dict[str, float]]:
        """The strategy to follow and, where several were tried, the share of labels that each explained."""
        if self.strategy != "auto":
            return self.strategy, {}
        usable = np.unique(aggregation.label_groups)
        if len(usable) < FEWEST_GROUPS:
            _log.info("%d groups are too few to compare strategies; using %s", len(usable), _DEFAULT)
            return _DEFAULT, {}
        if (held_out := round(self.holdout * len(usable))) < _FEW_HELD_OUT:
            _log.info("strategies are compared on only %d groups; consider choosing one yourself", held_out)
        evidence = self._try_strategies(X, aggregation, usable, seed)
        best = max(evidence, key=evidence.__getitem__)
        shares = ", ".join(f"{name} {100 * share:.1f} %" for name, share in evidence.items())
        _log.info("share of labels explained in held-out groups: %s; using %s", shares, best)
        return best, evidence

    def _label_rows(
        self, X: Any, aggregation: Aggregation, strategy: str, seed: int
    ) -> tuple[Any, Any, Assignment | None]:
        """Labels of rows, label vectors, and the assignment that led to them."""
        if strategy == "all":
            return aggregation.union(), None, None
        n_iter = 0 if strategy == "eagle-0" else self.n_iter
        search = search_rows(X, aggregation, n_iter, self.step, self.n_jobs)
        found = place_labels(aggregation, search.similarities, self.rule)
        if strategy == "iterate":
            with _quiet():
                found = refine(
                    *(X, aggregation, found, search.similarities, self._train),
                    *(self.rule, self.rounds, self.folds, seed),
                )
        return found.row_labels, vectors_of(X, aggregation, search, None, self.n_jobs), found

    def _train(self, X: Any, Y: Any) -> Any:
        if self.estimator is not None:
            return clone(self.estimator).fit(X, Y)
        estimator, reasons = choose_learner(X, Y)
        for reason in reasons:
            _log.info(reason)
        return estimator.fit(X, Y)

    def _train_on_labelled(self, X: Any, row_labels: Any) -> Any:
        labelled = np.flatnonzero(np.diff(row_labels.indptr))
        return self._train(X[labelled], row_labels[labelled])

    def _try_strategies(self, X: Any, aggregation: Aggregation, usable: Array, seed: int) -> dict[str, float]:
        """The share of the labels of held-out groups that a model of each strategy explains."""
        count = round(self.holdout * len(usable))
        if not 0 < count < len(usable):
            raise InvalidInput(
                f"AggregatedClassifier: holdout={self.holdout} of {len(usable)} groups with members and labels leaves "
                f"none to train on or none to compare on; choose a strategy other than 'auto'"
            )
        held = np.zeros(aggregation.n_groups, dtype=bool)
        held[np.random.default_rng(seed).permutation(usable)[:count]] = True
        seen, unseen = aggregation.restricted_to(~held), aggregation.restricted_to(held)
        evidence = {}
        # Cheapest first: of equally good strategies the first is taken.
        for strategy in ("all", "eagle-0", "eagle", "iterate"):
            with progress.stage(f"trying {strategy}"), _quiet():
                model = self._train_on_labelled(X, self._label_rows(X, seen, strategy, seed)[0])
            evidence[strategy] = explained(model, X, unseen)
        return evidence

    def _fitted(self) -> Any:
        check_is_fitted(self)
        return self.estimator_

    def _topk(self, X: Any, k: int, mask: Array | None) -> tuple[Array, Array]:
        found: tuple[Array, Array] = self.estimator_.predict_topk(X, k, allow=mask)
        return found

    def _scores(self, X: Any) -> Array:
        return np.asarray(self.estimator_.decision_function(X))

    def _predict(self, X: Any) -> Any:
        return self.estimator_.predict(X)

    def _explain(self, row: Any, label: int) -> Explanation:
        found: Explanation = self.estimator_.explain(row, label)
        return found

    def _output_layer(self, rule: Rule) -> OutputLayer:
        found: OutputLayer = self.estimator_.output_layer(rule)
        return found

    @property
    def explains(self) -> bool:
        return bool(self._fitted().explains)

    @property
    def scores_are_probabilities(self) -> bool:
        return bool(self._fitted().scores_are_probabilities)

    @property
    def hierarchies_(self) -> tuple[LabelHierarchy, ...]:
        return tuple(self._fitted().hierarchies_)

    def summary(self) -> str:
        learned = self._fitted().summary()
        return f"labels placed by {self.strategy_}, {learned}"

    def to_state(self) -> State:
        return State(
            "AggregatedClassifier",
            saved_params(self, without=self._not_saved),
            {"strategy": self.strategy_},
            {},
            {"estimator": part_state(self._fitted())},
        )

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Build the fitted classifier again, or raise `ModelFormatError`."""
        model = cls._from_params(state)
        model.strategy_ = state.fact("strategy", str)
        if model.strategy_ not in STRATEGIES:
            raise ModelFormatError(f"{state.kind}: unknown strategy {model.strategy_!r}")
        model._take(put_learner_together(state.part("estimator")))
        model.estimator = model.estimator_
        return model


@contextmanager
def _quiet() -> Iterator[None]:
    """Log only warnings: a strategy may train a dozen models, and the lines about each would bury the rest."""
    logger = logging.getLogger("longtail")
    level = logger.level
    logger.setLevel(max(level, logging.WARNING))
    try:
        yield
    finally:
        logger.setLevel(level)
