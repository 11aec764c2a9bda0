"""`LabelSubsetClassifier`: learns a few labels, decodes the others, and learns outliers separately."""

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
from longtail.choice import LearnerOptions, check_learner, choose_learner
from longtail.errors import InvalidInput
from longtail.estimator import Estimator, Explanation, OutputLayer, Rule, fit_with
from longtail.parameters import Choice, Constraint, Number, Threads
from longtail.ridge import label_predictability
from longtail.store import State, saved_params
from longtail.subset.affinity import check_subset, label_affinity, sparse_decoder
from longtail.subset.decoding import Decoding, ridge_decoding, sparse_decoding
from longtail.subset.model import PLACES, SubsetModel
from longtail.subset.outliers import Budget, Outliers, worst_explained
from longtail.subset.selection import NEED_SCORES, SPELLINGS, select_labels

_log = logging.getLogger(__name__)

AFFINITIES = ("auto", "self-representation", "conditional", "co-occurrence")
_COUNT = 100
_FEW_LABELS = 1000  # up to this many labels the self-representation takes no longer than training
_FEWEST_ROWS = 50  # rows with labels that `outliers="auto"` needs to compare budgets
_LOSS = 0.002  # nDCG that `outliers="auto"` gives up for fewer outliers


class LabelSubsetClassifier(Estimator):
    """Learns `n_labels` labels that represent all, and the outliers among the others.

    `estimator` learns a subset of labels that explain the others and can be predicted
    (`longtail.subset.select_labels`). A decoder Z, with Y ~ Ys Z, turns their scores into scores of all labels. The
    labels that it describes worst are outliers, and `outlier_estimator` learns them separately (Barezi et al., NAACL
    2019).

    Parameters
    ----------
    estimator : Estimator or None
        Learns the subset. None is ridge with an intercept and an alpha chosen by leave-one-out.
    n_labels : int or None
        Number of labels in the subset; None is 100, or all if there are fewer.
    outliers : {"auto", "all"}, int or float
        How many labels to learn separately, worst described first: a number, or a share of the labels outside the
        subset. "all" is the paper's choice. "auto" holds rows out, tries eight shares from none to all, and takes the
        smallest whose nDCG@5 is within 0.002 of the best; with fewer than 50 labelled rows it takes all. It learns
        every label once, so give a number if there are very many.
    outlier_estimator : Estimator or None
        Learns the outliers. None is ridge with an intercept and its own alpha. Ridge learns the residual of the
        decoder, which is added to the decoded scores. Other estimators learn the labels, and their scores replace the
        decoded ones.
    decoder : {"ridge", "l1"}
        Least squares with a penalty, or the paper's program, see `longtail.subset.sparse_decoder`.
    decoder_alpha : float or None
        The penalty of ridge (None: 1), or the weight of outliers in the paper's program (None: 10).
    criterion : str
        How to select the subset, see `longtail.subset.select_labels`.
    affinity : {"auto", "self-representation", "conditional", "co-occurrence"}
        How to measure how much labels explain each other. "auto" is self-representation for up to 1,000 labels, else
        conditional.
    affinity_alpha : float
        Weight of outliers in the self-representation.
    penalty : float
    score_weight : float or None
        Weights of redundancy and of predictability in the criterion; None balances predictability and affinity.
    subset : LabelSubset, array of label ids or None
        A subset selected before; `n_labels` and all other parameters of the selection are then ignored.
    holdout : float
        Share of the labelled rows that outliers="auto" holds out.
    random_state : int or None
        Seed of the selection and of the held-out rows.
    n_jobs : int or None
        Threads of prediction and of the default estimators; None uses every core.

    Attributes
    ----------
    labels_ : int64 array of shape (n_labels,)
        The subset, in order of selection.
    subset_ : LabelSubset or None
        The selection with its gains; None if the subset was given as ids.
    estimator_ : the fitted estimator of the subset
    decoding_ : Decoding
        The decoder.
    outlier_norms_ : float64 array of shape (n_labels,)
        ||E_j||, the norm of each label's residual.
    outlier_labels_ : int64 array
        Labels learned separately, ascending.
    outlier_estimator_ : their fitted estimator, or None
    budgets_ : dict of int to float
        nDCG@5 on held-out rows by number of outliers; empty unless outliers="auto".

    Notes
    -----
    If ridge with one alpha learns both the subset and all outliers, then Ys_hat Z + E_hat = R(Ys Z) + R(Y - Ys Z) =
    R(Y): the result is plain ridge for any subset, up to the precision of the solver. Outliers make a difference only
    if their estimator or penalty differs, or if not all are learned.

    A saved model does not keep ``subset_``, ``outlier_norms_`` and ``budgets_``.

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
    _outliers: Outliers

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

    def copy_for(self, rows: str, penalty: float = 1.0) -> Self:
        learners = {name: getattr(self, name) for name in ("estimator", "outlier_estimator")}
        copies = {name: each.copy_for(f"{rows}-{name}", penalty) for name, each in learners.items() if each is not None}
        return super().copy_for(rows, penalty).set_params(**copies)

    @property
    def takes_weights(self) -> bool:
        learners = [each for each in (self.estimator, self.outlier_estimator) if each is not None]
        return self.decoder == "ridge" and all(each.takes_weights for each in learners)

    def _fit(self, X: Any, Y: Any, weights: Array | None) -> None:
        """Select the subset, learn it, compute the decoder, and learn the outliers.

        The learners and the decoder weigh the rows. The selection of the subset counts every row once.
        """
        seed = secrets.randbits(30) if self.random_state is None else int(self.random_state)
        self.subset_, self.labels_ = self._select(X, Y, seed)
        self.budgets_ = {}
        budget = self._budget(X, Y, weights, seed)
        model, self.outlier_norms_ = self._learn(X, Y, weights, budget)
        self._take(model)

    def _select(self, X: Any, Y: Any, seed: int) -> tuple[Any, Array]:
        """The selection, None where it was given as ids, and its labels."""
        n_labels = Y.shape[1]
        if self.subset is not None:
            given = getattr(self.subset, "labels", self.subset)
            return (self.subset if given is not self.subset else None), check_subset(given, n_labels)
        count = min(_COUNT, n_labels) if self.n_labels is None else self.n_labels
        if count > n_labels:
            raise InvalidInput(
                f"LabelSubsetClassifier: n_labels is {count}, but there are only {n_labels} labels",
                code="too_many_labels",
            )
        criterion = self.criterion.replace("-", " ")
        affinity = scores = None
        if "cut" in criterion:
            method = self.affinity
            if method == "auto":
                method = "self-representation" if n_labels <= _FEW_LABELS else "conditional"
            affinity = label_affinity(Y, method, alpha=self.affinity_alpha, n_jobs=self.n_jobs)
        if criterion in NEED_SCORES:
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

    def _decode(self, Y: Any, weights: Array | None) -> tuple[Decoding, Array]:
        """The decoder, and the norms of the labels' residuals."""
        if self.decoder == "ridge":
            if weights is not None:  # a weighted sum of squares is that of rows times the roots of their weights
                Y = sparse.csr_array(sparse.diags_array(np.sqrt(weights)) @ Y)
            return ridge_decoding(Y, self.labels_, 1.0 if self.decoder_alpha is None else self.decoder_alpha)
        found = sparse_decoder(
            Y, self.labels_, alpha=10.0 if self.decoder_alpha is None else self.decoder_alpha, n_jobs=self.n_jobs
        )
        norms = np.array(found.outlier_norms, dtype=np.float64)
        norms[self.labels_] = 0
        return sparse_decoding(found.coefficients, self.labels_, Y.indices.dtype), norms

    def _learn(self, X: Any, Y: Any, weights: Array | None, budget: int) -> tuple[SubsetModel, Array]:
        """A model with at most `budget` outliers, and the norms of the labels' residuals."""
        with progress.stage("subset"):
            estimator = self._learner(self.estimator, X, sparse.csr_array(Y[:, self.labels_]))
            fit_with(estimator, X, sparse.csr_array(Y[:, self.labels_]), weights)
        decoding, norms = self._decode(Y, weights)
        apart = np.sort(worst_explained(norms)[:budget])
        outliers = Outliers.none()
        if len(apart):
            with progress.stage("outliers"):
                learner = self._learner(self.outlier_estimator, X, sparse.csr_array(Y[:, apart]))
                outliers = Outliers.learn(learner, X, Y, apart, self.labels_, decoding, weights)
        return SubsetModel(estimator, decoding, outliers, self.n_jobs), norms

    def _learner(self, given: Any, X: Any, Y: Any) -> Any:
        if given is not None:
            check_learner(given, type(self).__name__)
            if isinstance(given, LabelSubsetClassifier):
                raise InvalidInput("LabelSubsetClassifier: the estimator is a LabelSubsetClassifier itself")
            return clone(given)
        return choose_learner(X, Y, LearnerOptions("ridge", fit_intercept=True, n_jobs=self.n_jobs)).estimator

    def _budget(self, X: Any, Y: Any, weights: Array | None, seed: int) -> int:
        """The maximum number of outliers."""
        others = Y.shape[1] - len(self.labels_)
        if self.outliers == "all":
            return others
        if self.outliers != "auto":
            share = isinstance(self.outliers, float | np.floating)
            return round(self.outliers * others) if share else int(self.outliers)
        labelled = np.flatnonzero(np.diff(Y.indptr))
        if not others or len(labelled) < _FEWEST_ROWS:
            return others
        held = np.zeros(Y.shape[0], dtype=bool)
        count = max(1, round(self.holdout * len(labelled)))
        held[np.random.default_rng(seed).choice(labelled, count, replace=False)] = True
        with progress.stage("choosing outliers"):
            model, norms = self._learn(X[~held], Y[~held], None if weights is None else weights[~held], others)
        self.budgets_ = model.quality_by_budget(norms, X[held], Y[held])
        enough = max(self.budgets_.values()) - _LOSS
        chosen = min(budget for budget, quality in self.budgets_.items() if quality >= enough)
        shown = ", ".join(f"{budget}: {100 * quality:.2f}" for budget, quality in self.budgets_.items())
        _log.info("nDCG@%d on held-out rows by number of outliers: %s; taking %d", PLACES, shown, chosen)
        return chosen

    def _take(self, model: SubsetModel) -> None:
        self.estimator_, self.decoding_, self._outliers = model.estimator, model.decoding, model.outliers
        self.n_features_in_, self.n_labels_ = int(model.estimator.n_features_in_), model.decoding.n_labels

    @property
    def outlier_labels_(self) -> Array:
        check_is_fitted(self)
        return self._outliers.labels

    @property
    def outlier_estimator_(self) -> Any:
        check_is_fitted(self)
        return self._outliers.estimator

    def _model(self) -> SubsetModel:
        return SubsetModel(self.estimator_, self.decoding_, self._outliers, self.n_jobs)

    def _topk(self, X: Any, k: int, mask: Array | None) -> tuple[Array, Array]:
        return self._model().best(X, k, mask)

    def _scores(self, X: Any) -> Array:
        return self._model().all_scores(X)

    def _predict(self, X: Any) -> Any:
        return self._model().given(X)

    def _output_layer(self, rule: Rule) -> OutputLayer:
        return self._model().output_layer(rule)

    def _explain(self, row: Any, label: int) -> Explanation:
        return self._model().explain(row, label)

    @property
    def explains(self) -> bool:
        check_is_fitted(self)
        return bool(self.estimator_.explains)

    def summary(self) -> str:
        check_is_fitted(self)
        return f"{len(self.labels_):,} labels represent all, {len(self.outlier_labels_):,} outliers"

    def to_state(self) -> State:
        check_is_fitted(self)
        params = saved_params(self, without=self._not_saved)
        return self._model().to_state("LabelSubsetClassifier", params, self.labels_)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Build the fitted estimator again, or raise `ModelFormatError`."""
        model = cls._from_params(state)
        model.labels_, found = SubsetModel.from_state(state, model.n_jobs)
        model._take(found)
        model.estimator, model.outlier_estimator = model.estimator_, model.outlier_estimator_
        return model
