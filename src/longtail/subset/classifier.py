"""`LabelSubsetClassifier`: learns a few labels, decodes the others, and learns apart those that do not fit."""

from __future__ import annotations

import logging
import secrets
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from longtail import progress
from longtail.arrays import Array
from longtail.choice import LearnerOptions, choose_learner
from longtail.errors import InvalidInput
from longtail.estimator import Estimator, Explanation, check_training
from longtail.parameters import Choice, Constraint, Number, Threads
from longtail.ridge import label_predictability
from longtail.store import State, saved_params
from longtail.subset.affinity import label_affinity, sparse_decoder
from longtail.subset.budget import FEWEST_ROWS, PLACES, Budget, smallest_enough, try_budgets, worst
from longtail.subset.decoding import Decoding, ridge_decoding, sparse_decoding
from longtail.subset.model import SubsetModel
from longtail.subset.outliers import Outliers
from longtail.subset.selection import SPELLINGS, select_labels
from longtail.subset.state import LEARNERS, model_from, model_state

_log = logging.getLogger(__name__)

AFFINITIES = ("auto", "self-representation", "conditional", "co-occurrence")
_COUNT = 100
_FEW_LABELS = 1000  # up to which the self-representation takes no longer than training


class LabelSubsetClassifier(Estimator):
    """Learns `n_labels` labels that stand for all, and the outliers among the others.

    A subset of labels is chosen that explains the others and can be predicted (`longtail.subset.select_labels`).
    `estimator` learns only these. A decoder Z, with Y ~ Ys Z, turns their scores into scores of all labels; labels that
    it describes worst are outliers, and `outlier_estimator` learns them apart (Barezi et al., NAACL 2019).

    Parameters
    ----------
    estimator : LabelTree, OneVsRest, Ridge, RidgeCV or None
        What learns the subset; None is ridge with an intercept and its alpha chosen by leave-one-out.
    n_labels : int or None
        Labels in the subset, at most as many as there are; None is 100, or all of them where there are fewer.
    outliers : {"auto", "all"}, int or float
        Labels learned apart, worst described first: a number of labels, or a share of those outside the subset. "all"
        is the paper's. "auto" trains on a part of the rows and takes, of eight shares from none to all, the smallest
        whose nDCG@5 on the other rows is within 0.002 of the best; all where fewer than 50 rows have labels.
        That learns every label once to judge by: give a number where there are very many.
    outlier_estimator : LabelTree, OneVsRest, Ridge, RidgeCV or None
        What learns the outliers; None is ridge with an intercept and an alpha of its own. Ridge learns what the decoder
        leaves over, and adds it; other estimators learn the labels, and their scores stand in for the decoded ones.
    decoder : {"ridge", "l1"}
        Least squares with a penalty, or the paper's program, see `longtail.subset.sparse_decoder`.
    decoder_alpha : float or None
        The penalty of ridge (None: 1), or the weight of outliers in the program (None: 10).
    criterion : str
        What the subset is chosen by, see `longtail.subset.select_labels`.
    affinity : {"auto", "self-representation", "conditional", "co-occurrence"}
        How much labels say about each other; "auto" is self-representation up to 1,000 labels, else conditional.
    affinity_alpha : float
        Weight of outliers in the self-representation.
    penalty : float
    score_weight : float or None
        Weights of redundancy and of predictability in the criterion; None gives predictability as much say as affinity.
    subset : LabelSubset, array of label ids or None
        A subset that is chosen already; `n_labels` and what concerns the choice then do not count.
    holdout : float
        Share of the rows with labels that outliers="auto" judges by.
    random_state : int or None
        Of the choice and of the rows held out.
    n_jobs : int or None
        Threads of prediction and of the default estimators.

    Attributes
    ----------
    labels_ : int64 array of shape (n_labels,)
        The subset, in order of choice.
    subset_ : LabelSubset or None
        The choice with its gains, None where it was given as ids.
    estimator_ : the trained estimator of the subset
    decoding_ : Decoding
        The decoder.
    outlier_norms_ : float64 array of shape (n_labels,)
        ||E_j||, how much of each label the subset leaves over.
    outlier_labels_ : int64 array
        Labels learned apart, ascending.
    outlier_estimator_ : their trained estimator, or None
    budgets_ : dict of int to float
        nDCG@5 on the rows held out by number of outliers; empty where nothing was tried.

    Notes
    -----
    With ridge of the same alpha for the subset and for all outliers, Ys_hat Z + E_hat = R(Ys Z) + R(Y - Ys Z) = R(Y):
    the result is plain ridge, whatever the subset, to the precision of the solver. Outliers do work of their own only
    where their estimator differs, in kind or in its penalty, or where they are not all learned.

    A loaded model predicts; ``subset_``, ``outlier_norms_`` and ``budgets_`` are not saved.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail import LabelSubsetClassifier
    >>> X = np.repeat(np.eye(3), 4, axis=0)
    >>> Y = np.repeat([[1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 0, 0]], 4, axis=0)  # labels 0, 1 and 2, 3 go together
    >>> model = LabelSubsetClassifier(n_labels=2, outliers=0).fit(X, Y)
    >>> sorted(model.labels_.tolist())
    [0, 2]
    >>> model.predict_topk(np.eye(3), k=2)[0].tolist()
    [[0, 1], [2, 3], [0, 1]]
    """

    _fitted_by = "estimator_"
    _not_saved = ("estimator", "outlier_estimator", "subset")
    _parameters: ClassVar[dict[str, Constraint]] = {
        "n_labels": Number(low=1, whole=True, optional=True),
        "outliers": Budget(),
        "decoder": Choice(("ridge", "l1")),
        "decoder_alpha": Number(above=0, high=1e9, optional=True),
        "criterion": Choice(SPELLINGS),
        "affinity": Choice(AFFINITIES),
        "affinity_alpha": Number(above=0, high=1e9),
        "penalty": Number(low=0, high=1e9),
        "score_weight": Number(low=0, high=1e9, optional=True),
        "holdout": Number(above=0, high=0.9),
        "random_state": Number(low=0, high=2**31, whole=True, optional=True),
        "n_jobs": Threads(),
    }

    labels_: Array
    subset_: Any
    estimator_: Any
    decoding_: Decoding
    outlier_norms_: Array
    budgets_: dict[int, float]
    _outliers: Outliers | None

    def __init__(
        self,
        estimator: Any = None,
        n_labels: int | None = None,
        outliers: str | float = "auto",
        outlier_estimator: Any = None,
        *,
        decoder: str = "ridge",
        decoder_alpha: float | None = None,
        criterion: str = "predictable cut",
        affinity: str = "auto",
        affinity_alpha: float = 10.0,
        penalty: float = 0.1,
        score_weight: float | None = None,
        subset: Any = None,
        holdout: float = 0.2,
        random_state: int | None = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_labels = n_labels
        self.outliers = outliers
        self.outlier_estimator = outlier_estimator
        self.decoder = decoder
        self.decoder_alpha = decoder_alpha
        self.criterion = criterion
        self.affinity = affinity
        self.affinity_alpha = affinity_alpha
        self.penalty = penalty
        self.score_weight = score_weight
        self.subset = subset
        self.holdout = holdout
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, Y: Any) -> Self:
        """Choose the subset, learn it, find the decoder, learn the outliers.

        Parameters
        ----------
        X : sparse matrix or array of shape (n_rows, n_features)
        Y : sparse or dense 0/1 matrix of shape (n_rows, n_labels)
        """
        self._check_parameters()
        X, Y = check_training(X, Y, type(self).__name__)
        seed = secrets.randbits(30) if self.random_state is None else int(self.random_state)
        self.subset_, self.labels_ = self._choose(X, Y, seed)
        self.budgets_ = {}
        budget = self._budget(X, Y, seed)
        model, self.outlier_norms_ = self._learn(X, Y, budget)
        self._take(model)
        return self

    def _choose(self, X: Any, Y: Any, seed: int) -> tuple[Any, Array]:
        """The subset, by the criterion or as given."""
        n_labels = Y.shape[1]
        if self.subset is not None:
            given = getattr(self.subset, "labels", self.subset)
            return (self.subset if given is not self.subset else None), _checked_subset(given, n_labels)
        count = min(_COUNT, n_labels) if self.n_labels is None else self.n_labels
        if count > n_labels:
            raise InvalidInput(
                f"LabelSubsetClassifier: n_labels is {count}, but Y has {n_labels} labels; choose at most so "
                f"many, or train the estimator alone"
            )
        criterion = self.criterion.replace("-", " ")
        affinity = scores = None
        if "cut" in criterion:
            method = self.affinity
            if method == "auto":
                method = "self-representation" if n_labels <= _FEW_LABELS else "conditional"
            affinity = label_affinity(Y, method, alpha=self.affinity_alpha, n_jobs=self.n_jobs)
        if criterion in ("predictable cut", "score"):
            scores = label_predictability(X, Y, random_state=seed, n_jobs=self.n_jobs)
        found = select_labels(
            Y,
            count,
            criterion=criterion,
            affinity=affinity,
            penalty=self.penalty,
            score_weight=self.score_weight,
            scores=scores,
            random_state=seed,
        )
        return found, np.asarray(found.labels, dtype=np.int64)

    def _decode(self, Y: Any) -> tuple[Decoding, Array]:
        """The decoder, and how much of each label it leaves over."""
        if self.decoder == "ridge":
            return ridge_decoding(Y, self.labels_, 1.0 if self.decoder_alpha is None else self.decoder_alpha)
        found = sparse_decoder(
            Y, self.labels_, alpha=10.0 if self.decoder_alpha is None else self.decoder_alpha, n_jobs=self.n_jobs
        )
        norms = np.array(found.outlier_norms, dtype=np.float64)
        norms[self.labels_] = 0
        return sparse_decoding(found.coefficients, self.labels_, Y.indices.dtype), norms

    def _learn(self, X: Any, Y: Any, budget: int) -> tuple[SubsetModel, Array]:
        """Everything for a subset that is chosen, with at most `budget` outliers; also the norms of what is left."""
        with progress.stage("subset"):
            estimator = self._learner(self.estimator, X, sparse.csr_array(Y[:, self.labels_]))
            estimator.fit(X, sparse.csr_array(Y[:, self.labels_]))
        decoding, norms = self._decode(Y)
        apart = np.sort(worst(norms)[:budget])
        outliers = None
        if len(apart):
            with progress.stage("outliers"):
                learner = self._learner(self.outlier_estimator, X, sparse.csr_array(Y[:, apart]))
                outliers = Outliers.learn(learner, X, Y, apart, self.labels_, decoding)
        return SubsetModel(estimator, decoding, outliers, self.n_jobs), norms

    def _learner(self, given: Any, X: Any, Y: Any) -> Any:
        if given is not None:
            if not isinstance(given, tuple(LEARNERS.values())):
                raise InvalidInput(
                    f"LabelSubsetClassifier: the estimator is a {type(given).__name__}; expected one of "
                    f"{', '.join(LEARNERS)}, or None"
                )
            return clone(given)
        return choose_learner(X, Y, LearnerOptions("ridge", fit_intercept=True, n_jobs=self.n_jobs)).estimator

    def _budget(self, X: Any, Y: Any, seed: int) -> int:
        """How many outliers to learn at most."""
        others = Y.shape[1] - len(self.labels_)
        if self.outliers == "all":
            return others
        if self.outliers != "auto":
            share = isinstance(self.outliers, float | np.floating)
            return round(self.outliers * others) if share else int(self.outliers)
        labelled = np.flatnonzero(np.diff(Y.indptr))
        if not others or len(labelled) < FEWEST_ROWS:
            return others
        held = np.zeros(Y.shape[0], dtype=bool)
        count = max(1, round(self.holdout * len(labelled)))
        held[np.random.default_rng(seed).choice(labelled, count, replace=False)] = True
        with progress.stage("choosing outliers"):
            model, norms = self._learn(X[~held], Y[~held], others)
        self.budgets_ = try_budgets(model, norms, X[held], Y[held], others)
        chosen = smallest_enough(self.budgets_)
        shown = ", ".join(f"{budget}: {100 * quality:.2f}" for budget, quality in self.budgets_.items())
        _log.info("nDCG@%d on rows held out by number of outliers: %s; taking %d", PLACES, shown, chosen)
        return chosen

    def _take(self, model: SubsetModel) -> None:
        self.estimator_, self.decoding_, self._outliers = model.estimator, model.decoding, model.outliers
        self.n_features_in_, self.n_labels_ = int(model.estimator.n_features_in_), model.decoding.n_labels

    @property
    def outlier_labels_(self) -> Array:
        check_is_fitted(self)
        return np.zeros(0, dtype=np.int64) if self._outliers is None else self._outliers.labels

    @property
    def outlier_estimator_(self) -> Any:
        check_is_fitted(self)
        return None if self._outliers is None else self._outliers.estimator

    def _model(self) -> SubsetModel:
        return SubsetModel(self.estimator_, self.decoding_, self._outliers, self.n_jobs)

    def _topk(self, X: Any, k: int, mask: Array | None) -> tuple[Array, Array]:
        return self._model().best(X, k, mask)

    def _scores(self, X: Any) -> Array:
        return self._model().all_scores(X)

    def _predict(self, X: Any) -> Any:
        """Labels with a score of at least one half, and of the outliers those that their estimator gives."""
        return self._model().given(X)

    def _explain(self, row: Any, label: int) -> Explanation:
        """Where trees learned the subset, only for the subset and the outliers: a decoded score is then not linear."""
        return self._model().explain(row, label)

    def summary(self) -> str:
        check_is_fitted(self)
        return f"{len(self.labels_):,} labels for all, {len(self.outlier_labels_):,} apart"

    def to_state(self) -> State:
        check_is_fitted(self)
        return model_state(
            "LabelSubsetClassifier", saved_params(self, without=self._not_saved), self.labels_, self._model()
        )

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Build the fitted estimator again, or raise `ModelFormatError`."""
        model = cls._from_params(state)
        model.labels_, found = model_from(state, model.n_jobs)
        model._take(found)
        model.estimator, model.outlier_estimator = model.estimator_, model.outlier_estimator_
        return model


def _checked_subset(given: Any, n_labels: int) -> Array:
    labels = np.asarray(given)
    if labels.ndim != 1 or not labels.size or labels.dtype.kind not in "iu":
        raise InvalidInput(f"subset has shape {labels.shape} and dtype {labels.dtype}; expected a list of label ids")
    if labels.min() < 0 or labels.max() >= n_labels or len(np.unique(labels)) < len(labels):
        raise InvalidInput(f"subset must hold each label once, with ids in 0..{n_labels - 1}, as Y has {n_labels}")
    return labels.astype(np.int64)
