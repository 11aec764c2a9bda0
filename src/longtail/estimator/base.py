"""`Estimator`: the contract of every learner. The base class checks and shapes; a learner computes."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.utils import ClassifierTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from longtail.arrays import Array
from longtail.errors import InvalidInput, ModelFormatError
from longtail.estimator.explanation import Explanation
from longtail.estimator.head_diagnostics import HeadDiagnostics
from longtail.estimator.output_layer import OutputLayer, Rule
from longtail.estimator.revision import Revision
from longtail.estimator.targets import (
    TrainingSet,
    columns_of,
    read_classes,
    read_feature_names,
    read_training,
    stored_classes,
    weighted_mean,
)
from longtail.labels import LabelHierarchy
from longtail.memory import MemoryPlan
from longtail.metrics import Judgement
from longtail.native import kernels
from longtail.parallel import split
from longtail.parameters import Constraint, check_parameters
from longtail.store import Persistent, State, check_params
from longtail.validation import (
    as_features,
    as_label_mask,
    as_labels,
    check_columns,
    check_k,
    column_names,
    finite,
    is_binary,
)
from longtail.work import is_in_pieces

CELLS = 2**22  # scores of all labels held at once
PLACES_OF_SCORE = 5  # of nDCG in `score`


def column_counts(Y: Any) -> Array:
    """The number of rows of each label."""
    return np.bincount(Y.indices, minlength=Y.shape[1]).astype(np.float64)


def column_weights(Y: Any, weights: Array | None) -> Array:
    """The sum of each label's relevance over the rows, times the `weights` of the rows."""
    if weights is None and is_binary(Y):
        return column_counts(Y)
    values = Y.data.astype(np.float64)
    if weights is not None:
        values *= np.repeat(weights, np.diff(Y.indptr))
    return np.bincount(Y.indices, weights=values, minlength=Y.shape[1])


def total_weight(n_rows: int, weights: Array | None) -> int:
    """The number of rows, or the sum of their weights, rounded up."""
    return n_rows if weights is None else max(1, math.ceil(float(weights.sum(dtype=np.float64)) * (1 - 1e-12)))


def fit_with(learner: Any, X: Any, Y: Any, weights: Array | None) -> Any:
    """Fit a learner; one that cannot weigh rows is needed only to fit without weights.

    Learners of other packages may lack the argument ``sample_weight``.
    """
    return learner.fit(X, Y) if weights is None else learner.fit(X, Y, sample_weight=weights)


def read_prune(prune: float) -> tuple[float, int]:
    """The smallest weight to keep, and the number of weights to keep of each classifier (0: all).

    >>> read_prune(0.1), read_prune(100)
    ((0.1, 0), (0.0, 100))
    """
    if isinstance(prune, int | np.integer) and prune >= 1:
        return 0.0, int(prune)
    return float(prune), 0


def normalised(scores: Array) -> Array:
    """Scores of classes as probabilities that add up to 1 in each row.

    >>> normalised(np.array([[0.2, 0.6], [0.0, 0.0]])).round(2).tolist()
    [[0.25, 0.75], [0.5, 0.5]]
    """
    sums = scores.sum(axis=1, dtype=np.float64, keepdims=True)
    even = 1 / max(1, scores.shape[1])
    return np.divide(scores, sums, out=np.full(scores.shape, even, dtype=np.float64), where=sums > 0)


def _gives_probabilities(learner: Any) -> bool:
    return bool(learner.scores_are_probabilities)


class Estimator(BaseEstimator, Persistent):
    """A learner of many labels from rows of features.

    A learner implements `_fit`, `_scores`, `to_state` and `from_state`. `_fit` sets ``n_features_in_`` and
    ``n_labels_``, and last of all the attribute that `_fitted_by` names. A learner that need not score every label also
    overrides `_topk` and `_predict`. The arguments of these methods are checked: the model is fitted, rows are CSR
    float32 with finite values and the right width, label ids and masks match the labels.

    Fitted with one class for each row instead of a label matrix, a learner is a classifier as scikit-learn has them:
    it has ``classes_``, and `predict` returns one class for each row. Learners know only label matrices; this class
    turns classes into one and back.
    """

    _parameters: ClassVar[dict[str, Constraint]] = {}
    """The constraint on each parameter; checked by `fit` and by `longtail.load`."""

    _fitted_by: ClassVar[str]
    """The attribute that marks a finished fit."""

    _not_saved: ClassVar[tuple[str, ...]] = ()
    """Parameters that are not saved."""

    _bytes_per_score: ClassVar[int] = 4
    """Bytes that `decision_function` needs for each row and label."""

    learns_from_groups: ClassVar[bool] = False
    """Whether `fit` takes groups of rows and the labels of the groups, without a learner of rows inside."""

    prediction_options: ClassVar[tuple[str, ...]] = ()
    """Additional arguments of `predict_topk`."""

    _instead_of_pieces: ClassVar[str] = "label trees, one-vs-rest and ridge train in pieces"
    """What to do if the learner cannot be trained in pieces."""

    n_features_in_: int
    n_labels_: int
    classes_: Array
    """The class of each column, if the learner was fitted with one class for each row; else missing."""
    held_out_: Any = None
    """Rankings of rows that training or an update held out (`longtail.choice.HeldOut`), or None."""
    feature_names_in_: Array
    """The names of the columns, if the learner was fitted to a data frame; else missing."""

    def fit(self, X: Any, Y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows and their labels.

        Parameters
        ----------
        X : sparse matrix or array of shape (n_rows, n_features)
        Y : sparse or dense 0/1 matrix of shape (n_rows, n_labels), or one class for each row
            Learners with `takes_relevance` also take values between 0 and 1. Classes are names or whole numbers; then
            `predict` returns the best class of each row.
        sample_weight : array-like of shape (n_rows,) or None
            How much each row counts, not negative. A row of weight 2 counts as two such rows, one of weight 0 as none.
            Learners without `takes_weights` refuse it.
        """
        self._check_parameters()
        found = read_training(X, Y, sample_weight, type(self).__name__)
        self._check_targets(found)
        self._remember(None, None)
        self._fit(found.X, found.Y, found.weights)
        return self._remember(X, found.classes)

    def _remember(self, X: Any, classes: Array | None) -> Self:
        """Keep what is known of the training rows besides the fit: the names of the columns, and the classes."""
        for name, value in (("classes_", classes), ("feature_names_in_", column_names(X))):
            if value is None:
                self.__dict__.pop(name, None)
            else:
                setattr(self, name, value)
        return self

    def _fit(self, X: Any, Y: Any, weights: Array | None) -> None:
        """Learn from checked rows and labels; `weights` (float32, above 0) is None if all rows weigh 1."""
        raise NotImplementedError(f"{type(self).__name__} has no _fit")

    def _check_targets(self, found: TrainingSet) -> None:
        """Refuse weights and relevance that the learner cannot learn from."""
        name = type(self).__name__
        if found.weights is not None and not self.takes_weights:
            message = f"{name} cannot weigh rows; fit it without sample_weight, or repeat rows"
            raise InvalidInput(message, code="no_sample_weight")
        if is_binary(found.Y):
            if found.weights is None:
                return
        elif not self.takes_relevance:
            raise InvalidInput(
                f"Unknown label type: {name} learns from labels that hold only 0 and 1; found relevance between them",
                code="no_relevance",
            )
        if is_in_pieces():
            message = f"{name} learns weights of rows and relevance in memory only; train outside of in_pieces"
            raise InvalidInput(message, code="not_in_pieces")

    @property
    def takes_weights(self) -> bool:
        """Whether `fit` takes ``sample_weight``."""
        return False

    @property
    def takes_relevance(self) -> bool:
        """Whether `fit` takes labels with values between 0 and 1."""
        return False

    @abstractmethod
    def _scores(self, X: Any) -> Array:
        """The scores of all labels for the rows `X`, as a float32 matrix."""

    def _topk(self, X: Any, k: int, mask: Array | None) -> tuple[Array, Array]:
        """The k best labels of each row that `mask` allows, and their scores; -1 and -inf if there are fewer.

        `k` is at most the number of labels. Ties go to the lowest label.
        """
        labels = np.full((X.shape[0], k), -1, dtype=np.int64)
        scores = np.full((X.shape[0], k), -np.inf, dtype=np.float32)
        for rows in split(X.shape[0], self._rows_at_once()):
            kernels.update_topk(finite(self._scores(X[rows])), 0, mask, labels[rows], scores[rows])
        return labels, scores

    def _predict(self, X: Any) -> Any:
        """The labels of each row, as a sparse 0/1 matrix."""
        parts = [sparse.csr_array((0, self.n_labels_), dtype=np.int8)]
        for rows in split(X.shape[0], self._rows_at_once()):
            parts.append(sparse.csr_array((self._scores(X[rows]) >= 0.5).astype(np.int8)))
        return sparse.csr_array(sparse.vstack(parts, format="csr"))

    def _explain(self, row: Any, label: int) -> Explanation:
        """Explain the score of `label` for one row."""
        raise InvalidInput(
            f"{type(self).__name__} is not linear, so it cannot say what each feature adds to a score; LabelTree, "
            "OneVsRest and Ridge can",
            code="cannot_explain",
        )

    def _rows_at_once(self) -> int:
        return max(1, CELLS // max(1, self.n_labels_))

    @property
    def explains(self) -> bool:
        """Whether `explain` can say what each feature adds."""
        return type(self)._explain is not Estimator._explain

    @property
    def diagnoses(self) -> bool:
        """Whether the fitted model writes a label as a code, so that `diagnose` can judge each of its digits."""
        return False

    @property
    def is_linear(self) -> bool:
        """Whether each score is a linear function of the features."""
        return False

    @property
    def linear_in_targets(self) -> bool:
        """Whether the weights ``coef_`` for a difference of targets are the difference of their weights."""
        return False

    @property
    def scores_along_trees(self) -> bool:
        """Whether a label's score is a product of classifiers along its path in a label tree."""
        return False

    @property
    def trains_in_pieces(self) -> bool:
        """Whether `fit` keeps its work in pieces on disk inside `longtail.in_pieces`, so that workers can share it."""
        return False

    def check_pieces(self) -> None:
        """Raise `InvalidInput` if trainings here keep their work in pieces, and this one cannot."""
        if is_in_pieces() and not self.trains_in_pieces:
            message = f"{type(self).__name__} trains in memory only; {self._instead_of_pieces}"
            raise InvalidInput(message, code="not_in_pieces")

    @property
    def updates(self) -> bool:
        """Whether the fitted model can learn from further rows with ``partial_fit``."""
        return False

    @property
    def takes_revisions(self) -> bool:
        """Whether `updated` can learn changed rows and labels."""
        return type(self)._updated is not Estimator._updated

    @property
    def reads_label_texts(self) -> bool:
        """Whether the fitted model compares rows with label texts, so that `updated` needs those of new labels."""
        return False

    def updated(self, revision: Revision) -> Self:
        """Return a model that has learnt changed rows and labels; this one stays as it is.

        Features are not made anew. What depends on held-out rows, such as calibration, stays as it was, unless the
        model learns it again from new rows; their rankings are then in ``held_out_``. Every row weighs 1, and labels
        hold only 0 and 1.

        Parameters
        ----------
        revision : Revision

        Raises
        ------
        InvalidInput
            With code ``cannot_update`` if the learner cannot, see `takes_revisions`.
        """
        check_is_fitted(self)
        if (revision.X_before.shape[1], revision.Y_before.shape[1]) != (self.n_features_in_, self.n_labels_):
            raise InvalidInput(
                f"the old rows have {revision.X_before.shape[1]} features and {revision.Y_before.shape[1]} labels; "
                f"{type(self).__name__} was fitted to {self.n_features_in_} and {self.n_labels_}"
            )
        if "classes_" in vars(self):
            raise InvalidInput(
                f"{type(self).__name__} was fitted with one class for each row, so it cannot learn changes; fit it "
                "with a label matrix",
                code="cannot_update",
            )
        model = self._updated(revision)
        if "feature_names_in_" in vars(self):
            model.feature_names_in_ = self.feature_names_in_
        return model

    def _updated(self, revision: Revision) -> Self:
        raise InvalidInput(
            f"{type(self).__name__} cannot learn changes; train again on all rows (LabelTree, OneVsRest, "
            "Ridge, RidgeCV and TwoStage can)",
            code="cannot_update",
        )

    @property
    def scores_are_probabilities(self) -> bool:
        """Whether a score estimates the probability that the label is right."""
        return False

    @property
    def decides(self) -> bool:
        """Whether the fitted model has a rule of its own, tuned on held-out rows, which `predict` follows."""
        return False

    @property
    def hierarchies_(self) -> tuple[LabelHierarchy, ...]:
        """The trees over the labels that the model searches; empty if it has none."""
        return ()

    def copy_for(self, rows: str, penalty: float = 1.0) -> Self:
        """Return an unfitted copy to train on a part of the rows.

        Parameters
        ----------
        rows : str
            The name of the part. A learner that keeps files of its training keeps others for each part.
        penalty : float
            Factor of the penalty on the weights, for learners that have one.
        """
        copy: Self = clone(self)
        return copy

    def _job(self) -> dict[str, Any]:
        """What tells a training from others: the learner and its parameters, but not the number of threads."""
        params = {name: _told(value) for name, value in self.get_params(deep=False).items() if name != "n_jobs"}
        return {"learner": type(self).__name__, **params}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, self._fitted_by)

    def _check_rows(self, X: Any) -> Any:
        """Check that the model is fitted, and the rows `X`."""
        check_is_fitted(self)
        check_columns(X, vars(self).get("feature_names_in_"), type(self).__name__)
        return as_features(X, n_features=self.n_features_in_, owner=type(self).__name__)

    def predict_topk(self, X: Any, k: int = 5, allow: Any = None, deny: Any = None) -> tuple[Array, Array]:
        """Return the k best labels of each row and their scores.

        Parameters
        ----------
        X : sparse matrix or array of shape (n_rows, n_features)
        k : int
        allow, deny : sequence of label ids, or mask over all labels, or None
            Labels to allow or to exclude; applied before labels compete for the k places.

        Returns
        -------
        labels : int64 array of shape (n_rows, k)
            Best first, ties to the lowest label; -1 if there are fewer than k.
        scores : float32 array of shape (n_rows, k)
            -inf for places without a label.
        """
        return self._ranked(X, k, allow, deny)

    def _ranked(self, X: Any, k: int, allow: Any, deny: Any, *options: Any) -> tuple[Array, Array]:
        """Check the arguments of `predict_topk`, call `_topk`, and pad the places beyond the last label."""
        X = self._check_rows(X)
        k = check_k(k, X.shape[0])
        mask = as_label_mask(allow, deny, self.n_labels_)
        places = min(k, max(1, self.n_labels_))
        labels, scores = self._topk(X, places, mask, *options)
        finite(scores[labels >= 0])
        if k == places:
            return labels, scores
        beyond = ((0, 0), (0, k - places))
        return np.pad(labels, beyond, constant_values=-1), np.pad(scores, beyond, constant_values=-np.inf)

    def decision_function(self, X: Any) -> Array:
        """Return the scores of every label for every row as one dense matrix: for small vocabularies.

        For two classes, it is how much more the second scores than the first, as in scikit-learn.
        """
        scores = self._all_scores(X, "decision_function")
        if "classes_" in vars(self) and len(self.classes_) == 2:
            if self.scores_are_probabilities:
                scores = normalised(scores)
            return np.asarray(scores[:, 1] - scores[:, 0])
        return scores

    def _all_scores(self, X: Any, work: str) -> Array:
        X = self._check_rows(X)
        MemoryPlan(
            work,
            {"scores": self._bytes_per_score * X.shape[0] * self.n_labels_},
            "Use predict_topk, which never holds all scores, or fewer rows at a time.",
        ).check()
        return np.asarray(finite(self._scores(X)))

    def predict(self, X: Any) -> Any:
        """Return the labels of each row as a sparse 0/1 matrix (n_rows x n_labels), or the best class of each row."""
        X = self._check_rows(X)
        if "classes_" not in vars(self):
            return self._predict(X)
        labels, _ = self._ranked(X, 1, None, None)
        return self.classes_[np.maximum(labels[:, 0], 0)]

    @available_if(_gives_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Return the probability of every label, or of every class, as one dense matrix: for small vocabularies.

        Only learners with `scores_are_probabilities` have this method. The probabilities of the classes of a row add
        up to 1; those of labels are independent of each other.
        """
        scores = self._all_scores(X, "predict_proba")
        return normalised(scores) if "classes_" in vars(self) else scores

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy for one class in each row, and nDCG@5 for a label matrix.

        nDCG judges the ranking, which all learners have, rather than their thresholds. `sample_weight` says how much
        each row counts.
        """
        if "classes_" in vars(self):
            return weighted_mean(self.predict(X) == np.asarray(y), sample_weight)
        judgement = Judgement.of(as_labels(y), self.predict_topk(X, PLACES_OF_SCORE)[0])
        return weighted_mean(judgement.ndcg_of_rows(PLACES_OF_SCORE), sample_weight)

    def state(self) -> State:
        state, found = super().state(), vars(self)
        classes = {"classes": stored_classes(self.classes_)} if "classes_" in found else {}
        names = {"feature_names": tuple(self.feature_names_in_)} if "feature_names_in_" in found else {}
        return replace(state, arrays={**state.arrays, **classes, **names}) if classes or names else state

    @classmethod
    def from_saved(cls, state: State) -> Self:
        model = super().from_saved(state)
        if "classes" in state.arrays:
            model.classes_ = read_classes(state, model.n_labels_)
        if "feature_names" in state.arrays:
            model.feature_names_in_ = read_feature_names(state, model.n_features_in_)
        return model

    def explain(self, x: Any, label: int) -> Explanation:
        """Return exactly what each feature of the row `x` adds to the score of `label`.

        Raises
        ------
        InvalidInput
            If the learner cannot explain, see `explains`.
        """
        row = self._check_rows(x)
        if row.shape[0] != 1:
            raise InvalidInput(f"explain takes one row; found {row.shape[0]}")
        if isinstance(label, bool) or not isinstance(label, int | np.integer) or not 0 <= label < self.n_labels_:
            raise InvalidInput(f"label is {label!r}; expected a label id in 0..{self.n_labels_ - 1}")
        found = self._explain(row, int(label))
        finite([found.score, found.margin, *found.contributions])
        return found

    def diagnose(self, X: Any, Y: Any, label_names: Any = None, most: int = 10) -> HeadDiagnostics:
        """Return how often each digit of the labels' codes is right on these rows, alone and together.

        Parameters
        ----------
        X : sparse matrix or array of shape (n_rows, n_features)
        Y : sparse or dense 0/1 matrix of shape (n_rows, n_labels), or one class for each row as in `fit`
        label_names : sequence of str or None
            Names of the labels; None takes the classes, or the ids.
        most : int
            Maximum number of confused groups of each digit.

        Raises
        ------
        InvalidInput
            With code ``no_heads`` if the model has no digits, see `diagnoses`; or if no row has a label that it knows.
        """
        X = self._check_rows(X)
        classes = vars(self).get("classes_")
        names = classes if label_names is None else label_names
        Y = columns_of(Y, classes)
        if Y.shape != (X.shape[0], self.n_labels_):
            raise InvalidInput(
                f"Y has {Y.shape[0]} rows and {Y.shape[1]} labels; expected {X.shape[0]} and {self.n_labels_}"
            )
        return self._diagnose(X, Y, names, most)

    def _diagnose(self, X: Any, Y: Any, label_names: Any, most: int) -> HeadDiagnostics:
        raise InvalidInput(
            f"{type(self).__name__} does not write labels as codes, so it has no digits to judge",
            code="no_heads",
            advice="networks with the head 'cascade', 'product' or 'kronecker' have them",
        )

    def output_layer(self, rule: Rule = "predict") -> OutputLayer:
        """Return the linear layer that decides on labels, for `longtail.audit`.

        Parameters
        ----------
        rule : {"predict", "topk"}
            Label sets as returned by ``predict``, or as the first places of ``predict_topk``.

        Raises
        ------
        InvalidInput
            If the model has no linear output layer.
        """
        if rule not in ("predict", "topk"):
            raise InvalidInput(f"rule is {rule!r}; expected 'predict' or 'topk'")
        check_is_fitted(self)
        return self._output_layer(rule)

    def _output_layer(self, rule: Rule) -> OutputLayer:
        raise InvalidInput(
            f"{type(self).__name__} has no linear output layer; Ridge, RidgeCV, OneVsRest and most heads of "
            "MultiHeadClassifier have one, or pass the weights as a matrix"
        )

    def summary(self) -> str:
        """Describe the fitted model in a few words."""
        check_is_fitted(self)
        return f"{self.n_labels_:,} labels, {self.n_features_in_:,} features"

    def memory_plan(self, X: Any, Y: Any) -> MemoryPlan:
        """Return the peak memory of `fit`.

        Parameters
        ----------
        X, Y
            As for `fit`.
        """
        self._check_parameters()
        found = read_training(X, Y, None, type(self).__name__)
        return self._memory_plan(found.X, found.Y)

    def _check_parameters(self) -> None:
        """Raise `InvalidInput` unless every parameter meets its constraint."""
        check_parameters(self, self._parameters)

    def _memory_plan(self, X: Any, Y: Any) -> MemoryPlan:
        """The plan of a learner with a weight for each feature and label."""
        weights = 4 * X.shape[1] * Y.shape[1]
        return MemoryPlan(type(self).__name__, {"features": 12 * X.nnz, "labels": 12 * Y.nnz, "weights": weights})

    @classmethod
    def _current_params(cls, params: Mapping[str, Any]) -> dict[str, Any]:
        """Translate the parameters of models that earlier versions saved."""
        return dict(params)

    @classmethod
    def _from_params(cls, state: State) -> Self:
        """Return an unfitted estimator with the parameters of `state`, or raise `ModelFormatError`."""
        state = replace(state, params=cls._current_params(state.params))
        model = cls(**check_params(state, cls, without=cls._not_saved))
        try:
            model._check_parameters()
        except InvalidInput as error:
            raise ModelFormatError(f"{state.kind}: {error}") from None
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier"
        tags.classifier_tags = ClassifierTags(multi_label=True)
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


def _told(value: Any) -> str:
    """A parameter in words; what has too much content for that, by a digest of it."""
    if isinstance(value, np.ndarray):
        return sha256(np.ascontiguousarray(value).data).hexdigest() + str(value.dtype)
    if isinstance(value, LabelHierarchy):
        return " ".join([_told(value.pointers), _told(value.children), repr(value.n_labels), repr(value.node_names)])
    return repr(value)
