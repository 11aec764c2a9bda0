"""`TwoStage`: several cheap sources propose labels for each row, and boosted trees rank the proposals.

The ranker learns from held-out rows, which the sources did not see. It therefore knows how far each source can be
trusted. Afterwards all sources learn from all rows.
"""

from __future__ import annotations

import logging
import secrets
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from longtail import progress
from longtail.arrays import Array
from longtail.choice import HeldOut, folds, quietly
from longtail.errors import InvalidInput, ModelFormatError
from longtail.estimator import Estimator, Explanation, Revision, check_training, read_training, read_weights
from longtail.memory import MemoryPlan
from longtail.parallel import resolve_jobs, split
from longtail.parameters import Choice, Constraint, Number, Sequence, Threads
from longtail.ranking.boosting import BoostedTrees
from longtail.ranking.candidates import (
    OTHERS,
    Candidates,
    Layout,
    Recipe,
    Views,
    candidates_of,
    default_learners,
    joined_learner,
    load_sources,
    updated_sources,
)
from longtail.ranking.rehearsal import BOTH, Rehearsal, rehearse, rehearse_with
from longtail.ranking.scoring import Scorer, fill_places, words_behind
from longtail.ranking.sources import Learner, Source, count_together, index_limit
from longtail.store import State, saved_params
from longtail.validation import as_features, own

_log = logging.getLogger(__name__)

_ROWS_AT_ONCE = 4096
_RANKED_ANEW = 1.5  # times the rows that the ranker knows, from which on an update learns to rank again
_FEWEST_NEW, _MOST_NEW = 1500, 8000  # new rows that it learns from
# Larger trees and steps overfit a few thousand rows.
_RANKER: dict[str, Any] = {"learning_rate": 0.1, "l2": 10.0}


class TwoStage(Estimator):
    """Candidate labels from several sources, ranked by boosted trees.

    The sources are learners (by default two kinds of label trees), the labels of the most similar training rows, and
    labels whose texts resemble the row. Rows can also be compared by dense vectors, see `dense`. A score is the
    probability that the label is right, calibrated on held-out rows.

    Parameters
    ----------
    estimators : list of (name, Estimator) or None
        Learners that propose labels; None uses two kinds of label trees. If there are fewer candidates than places,
        further labels of the first learner follow.
    learned : int or None
        Number of leading features that the learners, the similar rows and the statistics use; the others serve only
        to compare rows with label texts. None uses all but the dense ones.
    dense : int or None
        Width of the dense vector, such as a sentence vector, at the end of each row. It is compared with those of
        other rows and label texts, by their cosine. Ridge regression and the source "joined" learn from it. None and
        0 mean that there is none.
    sources : list of str
        The sources besides the learners: "neighbours" (similar training rows), "statistics" (facts about each label
        from the training rows; it proposes no labels), "names" (label texts), "sentences" (dense
        vectors) and "joined" (a label tree on the learned features and the dense vectors together).
    rounds, leaves : int
        Number of boosted trees in each of the two rankers that are averaged, and maximum number of leaves of a tree.
    random_state : int or None
        Random seed for held-out rows, the ranker and the default learners; None gives another model each time.
    n_jobs : int or None
        Number of threads; None uses every core. The model does not depend on it.

    Attributes
    ----------
    sources_ : tuple of Source
    ranker_ : BoostedTrees
    calibration_ : pair of float
        Slope and offset of the sigmoid that turns a raw score of the ranker into a probability.
    gains_ : dict of str to float
        nDCG@5 on held-out rows of each learner alone and of both stages together; empty in a loaded model, and
        if there were too few rows to hold any out.
    held_out_ : HeldOut or None
        The rankings of held-out rows by both stages together; None where ``gains_`` is empty.

    Examples
    --------
    >>> import numpy as np
    >>> from longtail.ranking import TwoStage
    >>> X = np.tile(np.eye(3), (200, 1))
    >>> Y = np.tile(np.eye(3), (200, 1))
    >>> TwoStage().fit(X, Y).predict_topk(np.eye(3), k=1)[0].ravel().tolist()
    [0, 1, 2]

    With vectors of your own at the end of each row:

    >>> vectors = np.tile([[1.0, 0.2], [0.1, 1.0], [-1.0, 0.5]], (200, 1))
    >>> model = TwoStage(dense=2).fit(np.hstack([X, vectors]), Y)
    >>> model.predict_topk([[1.0, 0.0, 0.0, 0.9, 0.3]], k=1)[0].tolist()
    [[0]]
    """

    _fitted_by = "ranker_"
    _not_saved = ("estimators",)
    _parameters: ClassVar[dict[str, Constraint]] = {
        "learned": Number(low=1, high=2**31, whole=True, optional=True),
        "dense": Number(low=0, high=2**16, whole=True, optional=True),
        "sources": Sequence(Choice(tuple(OTHERS)), empty=True),
        "rounds": Number(low=1, high=500, whole=True),
        "leaves": Number(low=2, high=32, whole=True),
        "random_state": Number(low=0, high=2**31, whole=True, optional=True),
        "n_jobs": Threads(),
    }

    sources_: tuple[Source, ...]
    ranker_: BoostedTrees
    calibration_: tuple[float, float]
    gains_: dict[str, float]
    held_out_: HeldOut | None
    rows_ranked_: int
    _rehearsal: Rehearsal  # until `finish`

    def __init__(
        self,
        estimators: list[tuple[str, Estimator]] | None = None,
        *,
        learned: int | None = None,
        dense: int | None = None,
        sources: tuple[str, ...] = tuple(OTHERS),
        rounds: int = 80,
        leaves: int = 15,
        random_state: int | None = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.estimators = estimators
        self.learned = learned
        self.dense = dense
        self.sources = sources
        self.rounds = rounds
        self.leaves = leaves
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(  # type: ignore[override]
        self,
        X: Any,
        Y: Any,
        label_features: Any = None,
        fitted: list[Estimator] | None = None,
        *,
        sample_weight: Any = None,
    ) -> Self:
        """Train the ranker on held-out rows, then all sources on all rows.

        Parameters
        ----------
        X : sparse matrix or array of shape (n_rows, n_features)
        Y : sparse or dense 0/1 matrix of shape (n_rows, n_labels), or one class for each row
        label_features : sparse matrix of shape (n_labels, n_features), list of such matrices, or None
            The texts of labels in the features of the rows. Further matrices are other readings of the same texts,
            such as their whole words only. The dense vectors of label texts are at the end of the first matrix.
        fitted : list of Estimator or None
            The learners, fitted already to the rows that `folds` does not hold out first; this saves time.
        sample_weight : array-like of shape (n_rows,) or None
            How much each row counts for the learners. The ranker, the similar rows and the statistics count every row
            once.
        """
        self._check_parameters()
        found = read_training(X, Y, sample_weight, type(self).__name__)
        self._check_targets(found)
        self._remember(None, None)
        self.rehearse(found.X, found.Y, label_features, fitted, sample_weight=found.weights)
        self.finish(found.X, found.Y, label_features, sample_weight=found.weights)
        return self._remember(X, found.classes)

    @property
    def takes_weights(self) -> bool:
        return True

    def rehearse(
        self,
        X: Any,
        Y: Any,
        label_features: Any = None,
        fitted: list[Estimator] | None = None,
        *,
        like: TwoStage | None = None,
        sample_weight: Any = None,
    ) -> Self:
        """Train the ranker on held-out rows and set ``gains_``, which tells whether two stages pay.

        The model can predict only after `finish`.

        Parameters
        ----------
        X, Y, label_features, fitted, sample_weight
            As for `fit`; weights are above 0.
        like : TwoStage or None
            A model that has rehearsed with the same rows and label texts, but other sources. The sources that both
            have, and what they found, are used again. A learner is the same if its name is.
        """
        self._check_parameters()
        resolve_jobs(self.n_jobs)
        X, Y, Z = self._checked(X, Y, label_features)
        names = [name for name, _ in self._learners()]
        if fitted is not None and self.random_state is None:
            raise InvalidInput("fitted learners saw the rows that a random_state leaves; random_state is None")
        if not names or len({*names, BOTH}) <= len(names):
            raise InvalidInput(f"estimators has the names {names}; expected one or more, all different, none {BOTH!r}")
        self.__dict__.pop("ranker_", None)
        plan = self._memory_plan(X, Y).check()
        _log.info("%s needs at most this memory: %s", plan.work, plan.describe())
        settings = self._ranker_settings()
        known = None if like is None else like._rehearsal
        weights = read_weights(sample_weight, X.shape[0])
        self._rehearsal = rehearse(self._recipe(X), X, Y, Z, settings, fitted, known, weights)
        self.gains_, self.calibration_ = self._rehearsal.gains, self._rehearsal.calibration
        self.held_out_ = self._rehearsal.held_out
        return self

    def _ranker_settings(self) -> dict[str, Any]:
        seed = secrets.randbits(30) if self.random_state is None else int(self.random_state)
        return {**_RANKER, "rounds": self.rounds, "leaves": self.leaves, "seed": seed}

    def finish(
        self,
        X: Any,
        Y: Any,
        label_features: Any = None,
        *,
        like: TwoStage | None = None,
        sample_weight: Any = None,
    ) -> Self:
        """Train all sources on all rows, after `rehearse` with the same arguments.

        Parameters
        ----------
        X, Y, label_features, sample_weight
            As for `rehearse`.
        like : TwoStage or None
            A model that is fitted to the same rows. The sources that both have are used again.
        """
        X, Y, Z = self._checked(X, Y, label_features)
        if "_rehearsal" not in vars(self):
            raise InvalidInput("finish needs rehearse first")
        self.n_features_in_, self.n_labels_ = X.shape[1], Y.shape[1]
        ranker = self.__dict__.pop("_rehearsal").ranker
        with quietly(), progress.stage("all rows"):
            known = () if like is None else like.sources_
            weights = read_weights(sample_weight, X.shape[0])
            self.sources_ = self._recipe(X).fit(X, Y, Z, known, weights, _rehearsed_share(X.shape[0]))
        if ranker is None:  # too few rows to hold any out
            ranker = BoostedTrees.fit(np.zeros((0, len(self._columns())), np.float32), np.zeros(0, dtype=bool))
        self.ranker_, self.rows_ranked_ = ranker, X.shape[0]
        return self

    def _updated(self, revision: Revision) -> Self:
        """Change the learners, and fit the other sources again, which is cheap.

        The ranker and its calibration stay until there are half as many rows again as they know. Then they learn from
        new rows, of which the old sources have seen none.
        """
        model = clone(self)
        rehearsed = self._rehearsed_with_new(revision)
        model.n_features_in_, model.n_labels_ = revision.X.shape[1], revision.Y.shape[1]
        with quietly(), progress.stage("changed rows"):
            model.sources_ = updated_sources(self.sources_, self._layout(self.n_features_in_), revision, self.n_jobs)
        model.gains_, model.calibration_, model.ranker_ = self.gains_, self.calibration_, self.ranker_
        model.rows_ranked_, model.held_out_ = self.rows_ranked_, None
        if rehearsed is not None and rehearsed.ranker is not None and rehearsed.ranker.n_trees:
            model.gains_, model.calibration_, model.ranker_ = rehearsed.gains, rehearsed.calibration, rehearsed.ranker
            model.rows_ranked_, model.held_out_ = revision.X.shape[0], rehearsed.held_out
        return model

    def _rehearsed_with_new(self, revision: Revision) -> Rehearsal | None:
        """What new rows teach the ranker if it is due; None if it is not, or too few rows are new.

        Rows whose labels are all new are left out: they would teach that everything the old sources find is wrong.
        """
        new = np.arange(len(revision.kept), revision.X.shape[0])
        if revision.X.shape[0] < _RANKED_ANEW * self.rows_ranked_ or len(new) < _FEWEST_NEW:
            return None
        truth = _in_old_labels(revision, new)
        teaching = np.flatnonzero((np.diff(truth.indptr) > 0) | (np.diff(revision.Y[new].indptr) == 0))
        if len(teaching) < _FEWEST_NEW or not truth.nnz:
            return None
        settings = self._ranker_settings()
        some = np.sort(np.random.default_rng(settings["seed"]).permutation(teaching)[:_MOST_NEW])
        with quietly(), progress.stage("new rows"):
            return rehearse_with(
                self.sources_, self._views(revision.X[new[some]]), own(truth[some]), settings, self.n_jobs
            )

    def _checked(self, X: Any, Y: Any, label_features: Any) -> tuple[Any, Any, list[Any]]:
        owner = type(self).__name__
        X, Y = check_training(X, Y, owner)
        readings = label_features if isinstance(label_features, list | tuple) else [label_features]
        Z = (
            []
            if label_features is None
            else [as_features(each, n_features=X.shape[1], owner=owner) for each in readings]
        )
        for each in Z:
            if each.shape[0] != Y.shape[1]:
                raise InvalidInput(f"label_features has {each.shape[0]} rows for {Y.shape[1]} labels")
        if (self.dense or 0) >= X.shape[1]:
            raise InvalidInput(f"dense is {self.dense}, but the rows have {X.shape[1]} features; others must be left")
        return X, Y, Z

    def _learners(self) -> list[tuple[str, Estimator]]:
        return default_learners(self.random_state, self.n_jobs) if self.estimators is None else list(self.estimators)

    def _recipe(self, X: Any) -> Recipe:
        layout = self._layout(X.shape[1])
        return Recipe(
            self._learners(), self.sources, layout, index_limit(layout.views(X).learned), self.random_state, self.n_jobs
        )

    def _layout(self, n_features: int) -> Layout:
        return Layout.of(n_features, self.learned, self.dense)

    def _views(self, X: Any) -> Views:
        return self._layout(X.shape[1]).views(X)

    def _learned(self, X: Any) -> Any:
        return self._views(X).learned

    def _candidates(self, X: Any, mask: Array | None = None) -> Candidates:
        return candidates_of(self.sources_, self._views(X), mask, self.n_jobs)

    def _columns(self) -> list[str]:
        """What the ranker knows about a pair, in words."""
        return [name for source in self.sources_ for name in source.columns]

    def _topk(self, X: Any, k: int, mask: Array | None) -> tuple[Array, Array]:
        labels = np.full((X.shape[0], k), -1, dtype=np.int64)
        scores = np.full((X.shape[0], k), -np.inf, dtype=np.float32)
        for rows in split(X.shape[0], _ROWS_AT_ONCE):
            found = self._candidates(X[rows], mask)
            chances = self._scorer().chances(found, self.n_jobs)
            labels[rows], scores[rows] = found.pairs.best(chances, k)
            sizes = np.diff(found.pairs.starts)
            if (sizes < min(k, self.n_labels_ if mask is None else int(mask.sum()))).any():
                # Further labels of the first learner follow the candidates.
                short = np.flatnonzero(labels[rows][:, -1] < 0)
                places = min(self.n_labels_, k + int(sizes.max(initial=0)))
                more, _ = self._first().predict_topk(self._learned(X[rows][short]), places, allow=mask)
                lowest = self._scorer().lowest(found.pairs, chances)
                fill_places(labels[rows], scores[rows], short, more, found.pairs, lowest)
        return labels, scores

    def _scorer(self) -> Scorer:
        return Scorer(self.ranker_, *self.calibration_)

    def _first(self) -> Estimator:
        source = self.sources_[0]
        assert isinstance(source, Learner)
        return source.estimator

    def _scores(self, X: Any) -> Array:
        """The scores of the labels that a ranking of all labels gives; 0 for labels that no source finds."""
        labels, scores = self._topk(X, max(1, self.n_labels_), None)
        full = np.zeros((X.shape[0], self.n_labels_), dtype=np.float32)
        rows, places = np.nonzero(labels >= 0)
        full[rows, labels[rows, places]] = scores[rows, places]
        return full

    def _predict(self, X: Any) -> Any:
        """Candidates that are more likely right than wrong."""
        parts = [sparse.csr_array((0, self.n_labels_), dtype=np.int8)]
        for rows in split(X.shape[0], _ROWS_AT_ONCE):
            found = self._candidates(X[rows])
            parts.append(found.pairs.matrix(self._scorer().chances(found, self.n_jobs) >= 0.5, self.n_labels_))
        return sparse.csr_array(sparse.vstack(parts, format="csr"))

    def _explain(self, row: Any, label: int) -> Explanation:
        """How far each number moved the log-odds, and the words behind the first learner or the label's text."""
        words = words_behind(self.sources_, self._views(row), label)
        found = self._candidates(row)
        [places] = np.nonzero(found.pairs.labels == label)
        if not len(places) or not self.ranker_.n_trees:
            return replace(words, score=float(self._scores(row)[0, label]))
        evidence = self._scorer().evidence(found.features[places[0]], self._columns())
        chances = self._scorer().chances(found, self.n_jobs)
        return replace(words, score=float(chances[places[0]]), evidence=evidence)

    @property
    def explains(self) -> bool:
        return self.__sklearn_is_fitted__() and self._first().explains

    @property
    def scores_are_probabilities(self) -> bool:
        return True

    @property
    def takes_revisions(self) -> bool:
        if not self.__sklearn_is_fitted__():
            return all(estimator.takes_revisions for _, estimator in self._learners())
        return all(source.estimator.takes_revisions for source in self.sources_ if isinstance(source, Learner))

    @property
    def reads_label_texts(self) -> bool:
        return self.__sklearn_is_fitted__() and any(source.reads_label_texts for source in self.sources_)

    @property
    def hierarchies_(self) -> Any:
        return self._first().hierarchies_

    def summary(self) -> str:
        check_is_fitted(self)
        inner = "; ".join(
            f"{source.name}: {source.estimator.summary()}" for source in self.sources_ if isinstance(source, Learner)
        )
        return f"two stages, {len(self.sources_)} sources ({inner})"

    def _memory_plan(self, X: Any, Y: Any) -> MemoryPlan:
        vectors = 4 * (self.dense or 0) * (4 * X.shape[0] + 5 * Y.shape[1])
        joined = 0
        if self.dense and "joined" in self.sources:
            # The rows that it learns from, and a copy without those that are held out.
            joined = 16 * X.nnz + joined_learner(self.random_state, self.n_jobs)._memory_plan(X, Y).total
        X = self._learned(X)
        plans = [estimator._memory_plan(X, Y).total for _, estimator in self._learners()]
        rows = max((len(held) for held, _ in folds(X.shape[0], 0)), default=0)
        parts = {
            "learners": sum(plans),
            "index of the training rows": 12 * X.nnz + 4 * Y.nnz,
            "centroids": 8 * min(X.nnz * 4, 200 * Y.shape[1]),
            "co-occurrences": 36 * count_together(Y),
            "dense vectors": vectors,
            "learner on words and vectors": joined,
            "candidates": 100 * 4 * 30 * rows,
        }
        return MemoryPlan(type(self).__name__, parts, "Use one stage (--fast), or fewer features.")

    def to_state(self) -> State:
        check_is_fitted(self)
        facts = {
            "n_features": self.n_features_in_,
            "n_labels": self.n_labels_,
            "n_sources": len(self.sources_),
            "rows_ranked": self.rows_ranked_,
            "slope": float(self.calibration_[0]),
            "offset": float(self.calibration_[1]),
        }
        parts = {f"source{number}": source.to_state() for number, source in enumerate(self.sources_)}
        params = saved_params(self, without=self._not_saved)
        return State(type(self).__name__, params, facts, parts={**parts, "ranker": self.ranker_.to_state()})

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Build the fitted estimator again, or raise `ModelFormatError`."""
        model = cls._from_params(state)
        model.n_features_in_, model.n_labels_ = state.size("n_features"), state.size("n_labels")
        slope, offset = (float(state.fact(name, (int, float))) for name in ("slope", "offset"))
        if not (np.isfinite([slope, offset]).all() and slope >= 0):
            raise ModelFormatError(f"{state.kind}: slope and offset must be finite, and the slope at least 0")
        layout = model._layout(model.n_features_in_)
        if layout.sparse < (1 if layout.dense else 0):
            raise ModelFormatError(f"{state.kind}: {model.dense} dense features of {model.n_features_in_}")
        sources = load_sources(state, layout, model.sources, model.n_labels_)
        ranker = BoostedTrees.from_state(state.part("ranker", "BoostedTrees"))
        if ranker.n_features != sum(len(source.columns) for source in sources):
            raise ModelFormatError(f"{state.kind}: the ranker has other columns than the sources")
        model.sources_, model.gains_, model.calibration_, model.ranker_ = sources, {}, (slope, offset), ranker
        model.rows_ranked_, model.held_out_ = state.size("rows_ranked"), None
        return model


def _in_old_labels(revision: Revision, rows: Array) -> Any:
    """The labels of some present rows, by their old numbers; labels that are new are left out."""
    truth = sparse.coo_array(revision.Y[rows])
    numbers = revision.labels[truth.col]
    known = numbers >= 0
    shape = (len(rows), revision.Y_before.shape[1])
    return own(sparse.csr_array((truth.data[known], (truth.row[known], numbers[known])), shape=shape))


def _rehearsed_share(n_rows: int) -> float:
    """The share of the rows that the sources of the rehearsal learned from."""
    parts = folds(n_rows, seed=0)  # the sizes do not depend on the seed
    return len(parts[0][1]) / n_rows if parts else 1.0
