"""`TwoStage`: several cheap sources propose labels for each row, and boosted trees rank the proposals.

The ranker learns from held-out rows, which the sources did not see. It therefore knows how far each source can be
trusted. Afterwards all sources learn from all rows.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from longtail import progress
from longtail.arrays import Array
from longtail.choice import folds, quietly
from longtail.errors import InvalidInput, ModelFormatError
from longtail.estimator import Estimator, Evidence, Explanation, check_training, column_counts
from longtail.memory import MemoryPlan
from longtail.metrics import ndcg_at_k
from longtail.parallel import resolve_jobs, split
from longtail.parameters import Constraint, Number, Threads
from longtail.ranking.boosting import BoostedTrees
from longtail.ranking.dense import Sentences
from longtail.ranking.pairs import Pairs
from longtail.ranking.sources import Found, Learner, Names, Neighbours, Source, Statistics, index_limit
from longtail.store import State, saved_params
from longtail.trees import LabelTree, fit_sigmoid, is_true
from longtail.validation import as_features, own

_log = logging.getLogger(__name__)

_ROWS_AT_ONCE = 4096
_PAIRS_PER_LEAF = 200  # with few pairs, a leaf may hold one of this many
BOTH = "two stages"  # the key of both stages together in ``gains_``
_HIDDEN = 0.04  # share of labels that are hidden from all sources but their texts, if there are labels without rows
_MISSES = 1 / 3  # share of the wrong candidates that the ranker learns from
_K = 5  # places that nDCG judges
# Larger trees and steps overfit a few thousand rows.
_RANKER: dict[str, Any] = {"rounds": 80, "leaves": 15, "learning_rate": 0.08, "min_pairs": 200, "l2": 10.0}


@dataclass(frozen=True)
class Candidates:
    """The candidate pairs of some rows, and the numbers that the ranker looks at."""

    pairs: Pairs
    features: Array
    found: tuple[Found, ...]


class _Views(NamedTuple):
    """The parts of rows of features that sources see, see `Source.sees`."""

    learned: Any
    sparse: Any
    dense: Any


class _Rehearsed(NamedTuple):
    """Sources that did not see some held-out rows, and what they found for them."""

    sources: tuple[Source, ...]
    found: tuple[Found, ...]


class TwoStage(Estimator):
    """Candidate labels from several sources, ranked by boosted trees.

    The sources are learners (by default two kinds of label trees), the labels of the most similar training rows, and
    labels whose texts resemble the row. Rows can also be compared by dense vectors, see `dense`. A score is the
    probability that the label is right, calibrated on held-out rows.

    Parameters
    ----------
    estimators : list of (name, Estimator) or None
        The learners among the sources. The first also fills the places beyond the candidates.
    learned : int or None
        Number of leading features that the learners and the search for similar rows use; the others serve only to
        compare rows with label texts. None uses all but the dense ones.
    dense : int or None
        Number of features at the end of each row that are a dense vector of the row, such as a sentence vector. They
        serve only to find rows and label texts with similar vectors, by their cosine. None and 0 mean that there are
        none.
    rounds, leaves : int
        Number of boosted trees, and the maximum number of leaves of each.
    random_state : int or None
        Random seed for held-out rows.
    n_jobs : int or None
        Number of threads; None uses every core. The model does not depend on it.

    Attributes
    ----------
    sources_ : tuple of Source
    ranker_ : BoostedTrees
    calibration_ : pair of float
        Slope and offset of the sigmoid that turns a raw score of the ranker into a probability.
    gains_ : dict of str to float
        nDCG@5 on held-out rows of each learner alone and of both stages together; empty in a loaded model.

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
        "rounds": Number(low=1, high=1000, whole=True),
        "leaves": Number(low=2, high=32, whole=True),
        "random_state": Number(low=0, high=2**31, whole=True, optional=True),
        "n_jobs": Threads(),
    }

    sources_: tuple[Source, ...]
    ranker_: BoostedTrees
    calibration_: tuple[float, float]
    gains_: dict[str, float]
    _rehearsed: BoostedTrees | None
    _hidden: Array
    _parts: list[_Rehearsed]

    def __init__(
        self,
        estimators: list[tuple[str, Estimator]] | None = None,
        *,
        learned: int | None = None,
        dense: int | None = None,
        rounds: int = 80,
        leaves: int = 15,
        random_state: int | None = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.estimators = estimators
        self.learned = learned
        self.dense = dense
        self.rounds = rounds
        self.leaves = leaves
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, Y: Any, label_features: Any = None, fitted: list[Estimator] | None = None) -> Self:
        """Train the ranker on held-out rows, then all sources on all rows.

        Parameters
        ----------
        X : sparse matrix or array of shape (n_rows, n_features)
        Y : sparse or dense 0/1 matrix of shape (n_rows, n_labels)
        label_features : sparse matrix of shape (n_labels, n_features), list of such matrices, or None
            The texts of labels in the features of the rows. Further matrices are other readings of the same texts,
            such as their whole words only. The dense vectors of label texts are at the end of the first matrix.
        fitted : list of Estimator or None
            The learners, fitted already to the rows that `folds` does not hold out first; this saves time.
        """
        self.rehearse(X, Y, label_features, fitted)
        return self.finish(X, Y, label_features)

    def rehearse(
        self,
        X: Any,
        Y: Any,
        label_features: Any = None,
        fitted: list[Estimator] | None = None,
        *,
        like: TwoStage | None = None,
    ) -> Self:
        """Train the ranker on held-out rows and set ``gains_``, which tells whether two stages pay.

        The model can predict only after `finish`.

        Parameters
        ----------
        X, Y, label_features, fitted
            As for `fit`.
        like : TwoStage or None
            The same model without dense vectors, after its rehearsal. Its sources are used again.
        """
        self._check_parameters()
        resolve_jobs(self.n_jobs)
        X, Y = check_training(X, Y, type(self).__name__)
        Z = self._checked_label_features(label_features, X.shape[1], Y.shape[1])
        self._check_dense(X.shape[1])
        names = [name for name, _ in self._learners()]
        if not names or len({*names, BOTH}) <= len(names):
            raise InvalidInput(f"estimators has the names {names}; expected one or more, all different, none {BOTH!r}")
        self.__dict__.pop("ranker_", None)
        plan = self._memory_plan(X, Y).check()
        _log.info("%s needs at most this memory: %s", plan.work, plan.describe())
        seed = secrets.randbits(30) if self.random_state is None else int(self.random_state)
        hidden = self._hidden = _hidden_labels(Y, Z, seed) if like is None else like._hidden
        max_df = index_limit(self._learned(X))
        parts = []
        self._parts = []
        for number, (held, rest) in enumerate(folds(X.shape[0], seed)):
            with quietly(), progress.stage(f"held-out rows, part {number + 1}"):
                learners = fitted if fitted is not None and number == 0 else None
                known = _Rehearsed((), ()) if like is None else like._parts[number]
                sources = self._fit_sources(X[rest], _without(Y[rest], hidden), Z, learners, known.sources, max_df)
                views = self._views(X[held])
                found = self._find(sources, views, None, known.found, hidden)
                self._parts.append(_Rehearsed(sources, found))
                parts.append((self._described(sources, views, found), Y[held]))
        self._rehearsed = self._learn_ranker(parts, seed) if parts else None
        if not parts:
            self.gains_, self.calibration_ = {}, (1.0, 0.0)
        return self

    def finish(self, X: Any, Y: Any, label_features: Any = None) -> Self:
        """Train all sources on all rows, after `rehearse` with the same arguments."""
        X, Y = check_training(X, Y, type(self).__name__)
        Z = self._checked_label_features(label_features, X.shape[1], Y.shape[1])
        self._check_dense(X.shape[1])
        self.n_features_in_, self.n_labels_ = X.shape[1], Y.shape[1]
        if "_rehearsed" not in vars(self):
            raise InvalidInput("finish needs rehearse first")
        ranker = self.__dict__.pop("_rehearsed")
        self.__dict__.pop("_parts", None)
        with quietly(), progress.stage("all rows"):
            self.sources_ = self._fit_sources(X, Y, Z, None, max_df=index_limit(self._learned(X)))
        if ranker is None:  # too few rows to hold any out
            ranker = BoostedTrees.fit(np.zeros((0, len(self._columns())), np.float32), np.zeros(0, dtype=bool))
        self.ranker_ = ranker
        return self

    def _checked_label_features(self, label_features: Any, n_features: int, n_labels: int) -> list[Any]:
        if label_features is None:
            return []
        readings = label_features if isinstance(label_features, list | tuple) else [label_features]
        found = [as_features(each, n_features=n_features, owner=type(self).__name__) for each in readings]
        for each in found:
            if each.shape[0] != n_labels:
                raise InvalidInput(f"label_features has {each.shape[0]} rows for {n_labels} labels")
        return found

    def _learners(self) -> list[tuple[str, Estimator]]:
        if self.estimators is not None:
            return list(self.estimators)
        wide: dict[str, Any] = {"leaf_size": 200, "branching": 128}
        seed: dict[str, Any] = {"random_state": self.random_state, "n_jobs": self.n_jobs}
        return [
            ("label tree", LabelTree(negatives="beam", C=0.3, prune=0.05, **wide, **seed)),
            ("forest", LabelTree(n_trees=3, C=0.5, **seed)),
        ]

    def _check_dense(self, n_features: int) -> None:
        if (self.dense or 0) >= n_features:
            raise InvalidInput(f"dense is {self.dense}, but the rows have {n_features} features; others must be left")

    def _fit_sources(
        self,
        X: Any,
        Y: Any,
        Z: list[Any],
        fitted: list[Estimator] | None,
        known: tuple[Source, ...] = (),
        max_df: float = 1.0,
    ) -> tuple[Source, ...]:
        """Fit all sources but the `known` ones, which come first."""
        views = self._views(X)
        sources = list(known)
        if not known:
            named = self._learners()
            models = fitted or [clone(estimator).fit(views.learned, Y) for _, estimator in named]
            sources += [Learner(model, name) for (name, _), model in zip(named, models, strict=True)]
            sources += [Neighbours.fit(views.learned, Y, max_df), Statistics.fit(views.learned, Y, self.n_jobs)]
            sources += [Names.fit([self._views(each).sparse for each in Z])] if Z else []
        if self.dense:
            sources.append(Sentences.fit(views.dense, Y, self._views(Z[0]).dense if Z else None))
        return tuple(sources)

    def _views(self, X: Any) -> _Views:
        n_sparse = X.shape[1] - (self.dense or 0)
        leading = X if n_sparse == X.shape[1] else sparse.csr_array(X[:, :n_sparse])
        return _Views(self._learned(X), leading, X[:, n_sparse:].toarray() if self.dense else None)

    def _learned(self, X: Any) -> Any:
        """The features that learners see."""
        n_learned = self._n_learned(X.shape[1])
        return X if n_learned == X.shape[1] else sparse.csr_array(X[:, :n_learned])

    def _n_learned(self, n_features: int) -> int:
        n_sparse = n_features - (self.dense or 0)
        return n_sparse if self.learned is None else min(self.learned, n_sparse)

    def _candidates(self, sources: tuple[Source, ...], X: Any, mask: Array | None) -> Candidates:
        """The candidates of rows; a mask limits which labels compete, but changes nothing that is said about them."""
        views = self._views(X)
        found = self._find(sources, views, None)
        if mask is None:
            return self._described(sources, views, found)
        allowed = [replace(each, labels=np.where(mask[each.labels], each.labels, -1)) for each in found]
        more = [each.labels for each in self._find(sources, views, mask)]
        return self._described(sources, views, tuple(allowed), found[0], more)

    def _find(
        self,
        sources: tuple[Source, ...],
        views: _Views,
        mask: Array | None,
        known: tuple[Found, ...] = (),
        hidden: Array | None = None,
    ) -> tuple[Found, ...]:
        """What each source finds; `known` is what the first ones found, and `hidden` labels are not for learners."""
        found = list(known)
        for source in sources[len(known) :]:
            # The other sources were fitted without the hidden labels.
            allowed = ~hidden if hidden is not None and isinstance(source, Learner) else mask
            found.append(source.find(getattr(views, source.sees), allowed, self.n_jobs))
        return tuple(found)

    def _described(
        self,
        sources: tuple[Source, ...],
        views: _Views,
        found: tuple[Found, ...],
        first: Found | None = None,
        more: Sequence[Array] = (),
    ) -> Candidates:
        """The pairs of the labels found, and of `more` labels, with what all sources say about them."""
        first = found[0] if first is None else first
        pairs = Pairs.join([*(each.labels for each in found), *more], self.n_jobs)
        columns = [
            column
            for source, each in zip(sources, found, strict=True)
            for column in source.describe(getattr(views, source.sees), each, first, pairs, self.n_jobs)
        ]
        return Candidates(pairs, np.column_stack(columns).astype(np.float32, copy=False), found)

    def _learn_ranker(self, parts: list[tuple[Candidates, Any]], seed: int) -> BoostedTrees:
        """Learn from the candidates of held-out rows and their true labels; sets the calibration and the gains."""
        features = np.concatenate([found.features for found, _ in parts])
        hits = [is_true(found.pairs.rows, found.pairs.labels, truth) for found, truth in parts]
        right = np.concatenate(hits)
        odd = np.concatenate([found.pairs.rows % 2 == 1 for found, _ in parts])
        min_pairs = int(np.clip(len(right) // _PAIRS_PER_LEAF, 5, _RANKER["min_pairs"]))
        settings = {**_RANKER, "rounds": self.rounds, "leaves": self.leaves, "min_pairs": min_pairs, "seed": seed}
        # A share of the misses suffices; the calibration makes up for the others.
        kept = right | (np.random.default_rng(seed).random(len(right)) < _MISSES)
        raw = np.empty(len(right))
        with progress.task("learning to rank", total=3) as advance:
            for held in (odd, ~odd):
                learned = kept & ~held
                half = BoostedTrees.fit(features[learned], right[learned], **settings)
                raw[held] = half.raw(features[held], self.n_jobs)
                advance(1)
            ranker = BoostedTrees.fit(features[kept], right[kept], **settings)
            advance(1)
        ends = np.cumsum([len(each) for each in hits])
        self.gains_ = self._gains(parts, np.split(raw, ends[:-1]))
        self.calibration_ = fit_sigmoid(raw, right)
        return ranker

    def _columns(self) -> list[str]:
        """What the ranker knows about a pair, in words."""
        return [name for source in self.sources_ for name in source.columns]

    def _gains(self, parts: list[tuple[Candidates, Any]], raw: list[Array]) -> dict[str, float]:
        """nDCG@5 on held-out rows; rankers are judged on rows that they did not learn from."""
        truth = sparse.vstack([labels for _, labels in parts], format="csr")
        gains = {
            name: ndcg_at_k(truth, np.vstack([found.found[number].labels[:, :_K] for found, _ in parts]), _K)
            for number, (name, _) in enumerate(self._learners())
        }
        ranked = [found.pairs.best(scores, _K)[0] for (found, _), scores in zip(parts, raw, strict=True)]
        return {**gains, BOTH: ndcg_at_k(truth, np.vstack(ranked), _K)}

    def _topk(self, X: Any, k: int, mask: Array | None) -> tuple[Array, Array]:
        labels = np.full((X.shape[0], k), -1, dtype=np.int64)
        scores = np.full((X.shape[0], k), -np.inf, dtype=np.float32)
        for rows in split(X.shape[0], _ROWS_AT_ONCE):
            found = self._candidates(self.sources_, X[rows], mask)
            chances = self._chances(found)
            labels[rows], scores[rows] = found.pairs.best(chances, k)
            if (np.diff(found.pairs.starts) < min(k, self.n_labels_ if mask is None else int(mask.sum()))).any():
                self._fill(X[rows], found.pairs, chances, mask, labels[rows], scores[rows])
        return labels, scores

    def _chances(self, found: Candidates) -> Array:
        if not self.ranker_.n_trees:  # too few rows to learn from: the first learner decides
            return found.features[:, 0] ** 4
        slope, offset = self.calibration_
        raw = self.ranker_.raw(found.features, self.n_jobs)
        return np.asarray(expit(slope * raw + offset), dtype=np.float32)

    def _fill(self, X: Any, pairs: Pairs, chances: Array, mask: Array | None, labels: Array, scores: Array) -> None:
        """Fill the places beyond the candidates with further labels of the first learner, in its order."""
        short = np.flatnonzero(labels[:, -1] < 0)
        lowest = np.full(len(labels), expit(self.calibration_[1] + self.calibration_[0] * self.ranker_.baseline))
        np.minimum.at(lowest, pairs.rows, chances)
        first = self._first()
        places = min(self.n_labels_, labels.shape[1] + int(np.diff(pairs.starts).max(initial=0)))
        more, _ = first.predict_topk(self._learned(X[short]), places, allow=mask)
        for row, found in zip(short.tolist(), more, strict=True):
            known = pairs.labels[pairs.starts[row] : pairs.starts[row + 1]]
            new = np.flatnonzero((found >= 0) & ~np.isin(found, known))
            begin = int(np.argmax(labels[row] < 0))
            new = new[: labels.shape[1] - begin]
            places_of_row = slice(begin, begin + len(new))
            labels[row, places_of_row] = found[new]
            scores[row, places_of_row] = lowest[row] / (2 + np.arange(len(new)))

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
            found = self._candidates(self.sources_, X[rows], None)
            given = self._chances(found) >= 0.5
            ends = np.concatenate([[0], np.cumsum(given)])[found.pairs.starts]
            ones = np.ones(int(given.sum()), dtype=np.int8)
            shape = (len(ends) - 1, self.n_labels_)
            parts.append(sparse.csr_array((ones, found.pairs.labels[given], ends), shape=shape))
        return sparse.csr_array(sparse.vstack(parts, format="csr"))

    def _explain(self, row: Any, label: int) -> Explanation:
        """How far each number moved the log-odds, and the words behind the first learner or the label's text."""
        words = self._words(row, label)
        found = self._candidates(self.sources_, row, None)
        [places] = np.nonzero(found.pairs.labels == label)
        if not len(places) or not self.ranker_.n_trees:
            return replace(words, score=float(self._scores(row)[0, label]))
        pair = found.features[places[0]]
        slope, offset = self.calibration_
        moved = slope * self.ranker_.contributions(pair)
        evidence = [Evidence("an average candidate", None, float(moved[-1] + offset))]
        evidence += [
            Evidence(name, float(value), float(moves))
            for name, value, moves in zip(self._columns(), pair.tolist(), moved[:-1].tolist(), strict=True)
        ]
        return replace(words, score=float(self._chances(found)[places[0]]), evidence=tuple(evidence))

    def _words(self, row: Any, label: int) -> Explanation:
        """The words behind the first learner's score; for a label without training rows, those of its text."""
        names = next((source for source in self.sources_ if isinstance(source, Names)), None)
        statistics = next(source for source in self.sources_ if isinstance(source, Statistics))
        if names is None or statistics.counts[label]:
            return self._first().explain(self._learned(row), label)
        features, contributions = names.overlap(row, label)
        return Explanation(label, 0.0, float(contributions.sum()), features, contributions, 0.0)

    @property
    def explains(self) -> bool:
        return self.__sklearn_is_fitted__() and self._first().explains

    @property
    def scores_are_probabilities(self) -> bool:
        return True

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
        vectors = 4 * (self.dense or 0) * (2 * X.shape[0] + 4 * Y.shape[1])
        X = self._learned(X)
        plans = [estimator._memory_plan(X, Y).total for _, estimator in self._learners()]
        rows = max((len(held) for held, _ in folds(X.shape[0], 0)), default=0)
        parts = {
            "learners": sum(plans),
            "index of the training rows": 12 * X.nnz + 4 * Y.nnz,
            "centroids and co-occurrences": 8 * min(X.nnz * 4, 200 * Y.shape[1]) + 16 * Y.nnz,
            "dense vectors": vectors,
            "candidates": 100 * 4 * 30 * rows,
        }
        return MemoryPlan(type(self).__name__, parts, "Use one stage (--fast), or fewer features.")

    def to_state(self) -> State:
        check_is_fitted(self)
        facts = {
            "n_features": self.n_features_in_,
            "n_labels": self.n_labels_,
            "n_sources": len(self.sources_),
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
        n_sparse = model.n_features_in_ - (model.dense or 0)
        if n_sparse < (0 if not model.dense else 1):
            raise ModelFormatError(f"{state.kind}: {model.dense} dense features of {model.n_features_in_}")
        learned = model._n_learned(model.n_features_in_)
        widths = {"learned": learned, "sparse": n_sparse, "dense": model.dense or 0}
        kinds = {kind.kind: kind for kind in (Learner, Neighbours, Statistics, Names, Sentences)}
        sources = []
        for number in range(state.size("n_sources", least=1, most=32)):
            part = state.part(f"source{number}", *kinds)
            kind = kinds[part.kind]
            if kind is Sentences and not model.dense:
                raise ModelFormatError(f"{state.kind}: there are no dense features for the part 'source{number}'")
            sources.append(kind.from_state(part, widths[kind.sees], model.n_labels_))
        if not isinstance(sources[0], Learner) or not any(isinstance(each, Statistics) for each in sources):
            raise ModelFormatError(f"{state.kind}: the first source must be a learner, and one must be Statistics")
        ranker = BoostedTrees.from_state(state.part("ranker", "BoostedTrees"))
        if ranker.n_features != sum(len(source.columns) for source in sources):
            raise ModelFormatError(f"{state.kind}: the ranker has other columns than the sources")
        model.sources_, model.gains_, model.calibration_, model.ranker_ = tuple(sources), {}, (slope, offset), ranker
        return model


def _hidden_labels(Y: Any, Z: list[Any], seed: int) -> Array:
    """Labels that only their texts can find while the ranker learns, so that it learns to trust texts of new labels.

    None are hidden unless there are labels with a text and without rows.
    """
    hidden = np.zeros(Y.shape[1], dtype=bool)
    has_rows = column_counts(Y) > 0
    if Z and (~has_rows & (np.diff(Z[0].indptr) > 0)).any():
        known = np.flatnonzero(has_rows)
        hidden[np.random.default_rng(seed).permutation(known)[: max(1, int(_HIDDEN * len(known)))]] = True
    return hidden


def _without(Y: Any, hidden: Array) -> Any:
    """The label matrix without the entries of some labels."""
    if not hidden.any():
        return Y
    kept = ~hidden[Y.indices]
    ends = np.concatenate([[0], np.cumsum(kept)])[Y.indptr].astype(Y.indptr.dtype)
    return own(sparse.csr_array((Y.data[kept], Y.indices[kept], ends), shape=Y.shape))
