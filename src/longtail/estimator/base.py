"""`Estimator`: the contract of every learner. The base class checks and shapes; a learner computes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from longtail.arrays import Array
from longtail.errors import InvalidInput, ModelFormatError
from longtail.estimator.explanation import Explanation
from longtail.estimator.output_layer import OutputLayer, Rule
from longtail.labels import LabelHierarchy
from longtail.memory import MemoryPlan
from longtail.native import kernels
from longtail.parallel import split
from longtail.parameters import Constraint, check_parameters
from longtail.store import Persistent, State, check_params
from longtail.validation import as_features, as_label_mask, as_labels, check_k, finite
from longtail.work import is_in_pieces

CELLS = 2**22  # scores of all labels held at once


def check_training(X: Any, Y: Any, owner: str) -> tuple[Any, Any]:
    """Check features and labels for a fit of `owner`; return them as CSR matrices."""
    X = as_features(X)
    if X.shape[0] < 1:
        raise InvalidInput(
            f"Found array with {X.shape[0]} sample(s) (shape={X.shape}) while a minimum of 1 is required."
        )
    if X.shape[1] < 1:
        raise InvalidInput(f"Found array with 0 feature(s) (shape={X.shape}) while a minimum of 1 is required.")
    if Y is None:
        raise InvalidInput(f"{owner} requires y to be passed, but the target y is None")
    return X, as_labels(Y, n_rows=X.shape[0])


def column_counts(Y: Any) -> Array:
    """The number of rows of each label."""
    return np.bincount(Y.indices, minlength=Y.shape[1]).astype(np.float64)


def read_prune(prune: float) -> tuple[float, int]:
    """The smallest weight to keep, and the number of weights to keep of each classifier (0: all).

    >>> read_prune(0.1), read_prune(100)
    ((0.1, 0), (0.0, 100))
    """
    if isinstance(prune, int | np.integer) and prune >= 1:
        return 0.0, int(prune)
    return float(prune), 0


class Estimator(BaseEstimator, Persistent):
    """A learner of many labels from rows of features.

    A learner implements `fit`, `_scores`, `to_state` and `from_state`. `fit` sets ``n_features_in_`` and ``n_labels_``,
    and last of all the attribute that `_fitted_by` names. A learner that need not score every label also overrides
    `_topk` and `_predict`. The arguments of these methods are checked: the model is fitted, rows are CSR float32 with
    finite values and the right width, label ids and masks match the labels.
    """

    _parameters: ClassVar[dict[str, Constraint]] = {}
    """The constraint on each parameter; checked by `fit` and by `longtail.load`."""

    _fitted_by: ClassVar[str]
    """The attribute that marks a finished fit."""

    _not_saved: ClassVar[tuple[str, ...]] = ()
    """Parameters that are not saved."""

    _bytes_per_score: ClassVar[int] = 4
    """Bytes that `decision_function` needs for each row and label."""

    prediction_options: ClassVar[tuple[str, ...]] = ()
    """Additional arguments of `predict_topk`."""

    _instead_of_pieces: ClassVar[str] = "label trees, one-vs-rest and ridge train in pieces"
    """What to do if the learner cannot be trained in pieces."""

    n_features_in_: int
    n_labels_: int

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

    def _job(self) -> dict[str, Any]:
        """What tells a training from others: the learner and its parameters, but not the number of threads."""
        params = {name: _told(value) for name, value in self.get_params(deep=False).items() if name != "n_jobs"}
        return {"learner": type(self).__name__, **params}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, self._fitted_by)

    def _check_rows(self, X: Any) -> Any:
        """Check that the model is fitted, and the rows `X`."""
        check_is_fitted(self)
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
        """Return the scores of every label for every row as one dense matrix: for small vocabularies."""
        X = self._check_rows(X)
        MemoryPlan(
            "decision_function",
            {"scores": self._bytes_per_score * X.shape[0] * self.n_labels_},
            "Use predict_topk, which never holds all scores, or fewer rows at a time.",
        ).check()
        return finite(self._scores(X))

    def predict(self, X: Any) -> Any:
        """Return the labels of each row as a sparse 0/1 matrix (n_rows x n_labels)."""
        return self._predict(self._check_rows(X))

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
        return self._memory_plan(*check_training(X, Y, type(self).__name__))

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
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags


def _told(value: Any) -> str:
    """A parameter in words; what has too much content for that, by a digest of it."""
    if isinstance(value, np.ndarray):
        return sha256(np.ascontiguousarray(value).data).hexdigest() + str(value.dtype)
    if isinstance(value, LabelHierarchy):
        return " ".join([_told(value.pointers), _told(value.children), repr(value.n_labels), repr(value.node_names)])
    return repr(value)
