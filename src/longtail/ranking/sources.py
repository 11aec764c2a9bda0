"""Sources: where candidate labels come from, and what each source can say about a pair of row and label.

A source finds labels for rows (`find`) and describes pairs, also those that other sources found (`describe`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.errors import ModelFormatError
from longtail.estimator import Estimator, Revision, column_counts
from longtail.labels import label_vectors
from longtail.ranking.index import SparseIndex
from longtail.ranking.pairs import Pairs, SparseRows
from longtail.ranking.votes import NEAREST, NEIGHBOURS, RowLabels
from longtail.store import State, part_state, put_learner_together

FREQUENT = 0.05  # words in more rows than this do not tell rows apart and take most of the time
_TERMS = 200  # entries of a label's centroid
_READINGS = "the label's text", "the words of the label's text", "the beginnings of these words"
_TOGETHER = 5  # best labels of a row that the others should go with
_MOST_CO_OCCURRENCES = 10**8


@dataclass(frozen=True)
class Found:
    """What a source found for each row.

    Parameters
    ----------
    labels : int64 array of shape (n_rows, n)
        Best first; -1 where there are fewer.
    scores : float32 array of the same shape
    neighbours, similarities : arrays of shape (n_rows, m) or None
        Training rows, for sources that ask them.
    """

    labels: Array
    scores: Array
    neighbours: Array | None = None
    similarities: Array | None = None

    def ranks(self, pairs: Pairs) -> Array:
        """The place of each pair, counted from 1; twice the number of places for labels that were not found."""
        places = np.arange(1, self.labels.shape[1] + 1, dtype=np.float32)
        return pairs.column(self.labels, np.broadcast_to(places, self.labels.shape), 2 * len(places))


class Source(ABC):
    """A source of candidate labels."""

    kind: ClassVar[str]
    sees: ClassVar[str] = "learned"  # which part of the features, see `longtail.ranking.candidates.Views`

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """What `describe` says about a pair, in words."""

    @abstractmethod
    def find(self, X: Any, mask: Array | None, n_jobs: int | None) -> Found:
        """Candidate labels of checked rows, only those in `mask`."""

    @abstractmethod
    def describe(self, X: Any, found: Found, first: Found, pairs: Pairs, n_jobs: int | None) -> list[Array]:
        """A float32 column for each of `columns`; `first` is what the first source found."""

    @property
    def reads_label_texts(self) -> bool:
        """Whether the source compares rows with the texts of labels."""
        return False

    @abstractmethod
    def updated(self, revision: Revision, texts: list[Any], n_jobs: int | None) -> Source:
        """The source after a change of rows and labels, all as the source sees them.

        `texts` are the readings of the texts of new labels, with a row for each; none if nobody knows them.
        """

    @abstractmethod
    def to_state(self) -> State: ...


@dataclass(frozen=True)
class Learner(Source):
    """The best labels of a fitted learner."""

    kind = "Learner"

    estimator: Estimator
    name: str
    n_candidates: int = 30

    @property
    def columns(self) -> tuple[str, ...]:
        return f"score in {self.name}", f"rank in {self.name}", f"best score in {self.name}"

    def find(self, X: Any, mask: Array | None, n_jobs: int | None) -> Found:
        return Found(*self.estimator.predict_topk(X, self.n_candidates, allow=mask))

    def describe(self, X: Any, found: Found, first: Found, pairs: Pairs, n_jobs: int | None) -> list[Array]:
        scores = np.maximum(found.scores, 0)
        return [pairs.column(found.labels, scores, 0), found.ranks(pairs), pairs.of_rows(scores[:, 0])]

    def updated(self, revision: Revision, texts: list[Any], n_jobs: int | None) -> Source:
        return replace(self, estimator=self.estimator.updated(revision))

    def to_state(self) -> State:
        facts = {"name": self.name, "n_candidates": self.n_candidates}
        return State(self.kind, facts=facts, parts={"estimator": part_state(self.estimator)})

    @classmethod
    def from_state(cls, state: State, n_features: int, n_labels: int) -> Learner:
        estimator = put_learner_together(state.part("estimator"))
        if estimator.n_features_in_ != n_features or estimator.n_labels_ != n_labels:
            raise ModelFormatError(f"{state.kind}: the estimator has other features or labels than the model")
        return cls(estimator, state.fact("name", str), state.size("n_candidates", least=1, most=10_000))


@dataclass(frozen=True)
class Joined(Learner):
    """The best labels of a learner that sees words and dense vectors together."""

    kind = "Joined"
    sees = "joined"


@dataclass(frozen=True)
class Neighbours(Source):
    """The labels of the most similar training rows, weighted by the square of their similarity.

    Parameters
    ----------
    index : SparseIndex
        Of the training rows.
    row_labels : RowLabels
        Of the training rows.
    """

    kind = "Neighbours"
    columns = ("votes of the 30 nearest rows", "votes of the 10 nearest rows", "similarity of the nearest row")

    index: SparseIndex
    row_labels: RowLabels
    n_candidates: int = 20

    @classmethod
    def fit(cls, X: Any, Y: Any, max_df: float = 1.0) -> Neighbours:
        """Index the training rows; features in more than the share `max_df` of them are left out."""
        return cls(SparseIndex.build(X, max_df=max_df), RowLabels.of(Y))

    def find(self, X: Any, mask: Array | None, n_jobs: int | None) -> Found:
        neighbours, similarities = self.index.topk(X, NEIGHBOURS, n_jobs=n_jobs)
        similarities = np.maximum(similarities, 0)
        labels, votes = self.row_labels.most_voted(neighbours, similarities, self.n_candidates, mask, n_jobs)
        return Found(labels, votes, neighbours, similarities)

    def describe(self, X: Any, found: Found, first: Found, pairs: Pairs, n_jobs: int | None) -> list[Array]:
        assert found.neighbours is not None
        assert found.similarities is not None
        columns = [
            self.row_labels.votes(pairs, found.neighbours, found.similarities, count, n_jobs)
            for count in (NEIGHBOURS, NEAREST)
        ]
        return [*columns, pairs.of_rows(found.similarities[:, 0])]

    def updated(self, revision: Revision, texts: list[Any], n_jobs: int | None) -> Source:
        # The index does not say how it was limited, but which of the features that occur it has.
        frequent = (np.diff(self.index.starts) == 0) & (
            np.bincount(revision.X_before.indices, minlength=self.index.n_features) > 0
        )
        return self.fit(revision.X, revision.Y, FREQUENT if frequent.any() else 1.0)

    def to_state(self) -> State:
        return State(self.kind, arrays=self.row_labels.to_arrays(), parts={"index": self.index.to_state()})

    @classmethod
    def from_state(cls, state: State, n_features: int, n_labels: int) -> Neighbours:
        index = SparseIndex.from_state(state.part("index", "SparseIndex"))
        row_labels = RowLabels.from_state(state, index.n_items, n_labels)
        if index.n_features != n_features:
            raise ModelFormatError(f"{state.kind}: the index has other features than the model")
        return cls(index, row_labels)


def index_limit(X: Any) -> float:
    """The share of rows from which a feature is too frequent to index; 1 if the other features say too little."""
    frequent = np.bincount(X.indices, minlength=X.shape[1]) > FREQUENT * X.shape[0]
    rare_weight = np.square(X.data[~frequent[X.indices]], dtype=np.float64).sum()
    return FREQUENT if rare_weight >= 0.5 * np.square(X.data, dtype=np.float64).sum() else 1.0


@dataclass(frozen=True)
class Names(Source):
    """Labels whose texts (names, alternative names, descriptions) resemble the text of the row.

    Parameters
    ----------
    readings : tuple of SparseRows
        The features of each label's text, of unit length; further readings keep only some of the features, such as
        whole words.
    index : SparseIndex
        Of the first reading, which finds the candidates.
    """

    kind = "Names"
    sees = "sparse"

    readings: tuple[SparseRows, ...]
    index: SparseIndex
    n_candidates: int = 15
    _totals: tuple[Array, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_totals", tuple(_totals(reading) for reading in self.readings))

    @property
    def columns(self) -> tuple[str, ...]:
        names = ["length of the label's text", "rank by similarity with the label's text"]
        for number in range(len(self.readings)):
            told = _READINGS[number] if number < len(_READINGS) else f"reading {number + 1} of the label's text"
            names += [f"similarity with {told}", f"occurring share of {told}"]
        return tuple(names)

    @classmethod
    def fit(cls, label_features: list[Any]) -> Names:
        """Index the features of the label texts: CSR matrices with a row for each label."""
        return cls(tuple(map(SparseRows.of, label_features)), SparseIndex.build(label_features[0]))

    def find(self, X: Any, mask: Array | None, n_jobs: int | None) -> Found:
        return Found(*self.index.topk(X, self.n_candidates, mask, n_jobs))

    def describe(self, X: Any, found: Found, first: Found, pairs: Pairs, n_jobs: int | None) -> list[Array]:
        Q = SparseRows.of(X)
        present = SparseRows(Q.indptr, Q.indices, np.ones_like(Q.data), Q.n_columns)
        starts = self.readings[0].indptr
        columns = [(starts[pairs.labels + 1] - starts[pairs.labels]).astype(np.float32), found.ranks(pairs)]
        for reading, totals in zip(self.readings, self._totals, strict=True):
            shares = pairs.dots(present, reading, n_jobs) / totals[pairs.labels]
            columns += [pairs.dots(Q, reading, n_jobs), shares]
        return columns

    @property
    def reads_label_texts(self) -> bool:
        return True

    def updated(self, revision: Revision, texts: list[Any], n_jobs: int | None) -> Source:
        readings = [
            reading.regrouped(revision.labels, texts[number] if texts else None)
            for number, reading in enumerate(self.readings)
        ]
        return self.fit(readings)

    def overlap(self, row: Any, label: int) -> tuple[Array, Array]:
        """The features that a row shares with a label's text, and what each adds to their similarity, largest first."""
        text = self.readings[0]
        entries = slice(*text.indptr[label : label + 2].tolist())
        shared, own, theirs = np.intersect1d(row.indices, text.indices[entries], return_indices=True)
        products = row.data[own].astype(np.float64) * text.data[entries][theirs]
        order = np.argsort(-products, kind="stable")
        return shared[order].astype(np.int64), products[order]

    def to_state(self) -> State:
        parts = {f"reading{number}": reading.to_state() for number, reading in enumerate(self.readings)}
        facts = {"n_readings": len(self.readings)}
        return State(self.kind, facts=facts, parts={**parts, "index": self.index.to_state()})

    @classmethod
    def from_state(cls, state: State, n_features: int, n_labels: int) -> Names:
        readings = tuple(
            SparseRows.from_state(state.part(f"reading{number}", "SparseRows"), n_labels, n_features)
            for number in range(state.size("n_readings", least=1, most=8))
        )
        index = SparseIndex.from_state(state.part("index", "SparseIndex"))
        if index.n_features != n_features or index.n_items != n_labels:
            raise ModelFormatError(f"{state.kind}: the index has other features or labels than the model")
        return cls(readings, index)


def _totals(vectors: SparseRows) -> Array:
    """The sum of the entries of each row, never 0."""
    rows = np.repeat(np.arange(vectors.n_rows), vectors.lengths())
    totals = np.bincount(rows, weights=vectors.data, minlength=vectors.n_rows)
    return np.maximum(totals, 1e-12).astype(np.float32)


@dataclass(frozen=True)
class Statistics(Source):
    """What the training rows tell about a label: its rows' centroid, its frequency, and the labels it comes with.

    It finds no candidates.

    Parameters
    ----------
    centroids : SparseRows
        The mean of the rows of each label, of unit length.
    spreads : float32 array of n_labels
        The length of the mean of the label's unit rows: 1 if they are all alike.
    counts : int64 array of n_labels
    together : SparseRows
        Row l, column m: the share of the rows with label m that also have label l; empty if there would be too many.
    share : float
        Rows that the ranker learned with, as a share of these rows. It saw that share of each label's rows, so it is
        told the same share of these; without that, every label would look more frequent than it is.
    """

    kind = "Statistics"
    columns = (
        "similarity with the label's rows",
        "similarity of the label's rows with each other",
        "number of the label's rows",
        "how often the label comes with the best labels",
    )

    centroids: SparseRows
    spreads: Array
    counts: Array
    together: SparseRows
    share: float = 1.0

    @classmethod
    def fit(cls, X: Any, Y: Any, n_jobs: int | None, share: float = 1.0) -> Statistics:
        """Count and average the training rows."""
        counts = column_counts(Y)
        centroids = label_vectors(X, Y, top=_TERMS, n_jobs=n_jobs)
        # The mean product of the rows with the unit centroid is the length of their mean.
        products = np.zeros(Y.shape[1])
        members = Pairs(Y.indptr.astype(np.int64), Y.indices.astype(np.int32))
        np.add.at(products, Y.indices, members.dots(SparseRows.of(X), SparseRows.of(centroids), n_jobs))
        spreads = (products / np.maximum(counts, 1)).astype(np.float32)
        return cls(SparseRows.of(centroids), spreads, counts.astype(np.int64), _together(Y, counts), share)

    def find(self, X: Any, mask: Array | None, n_jobs: int | None) -> Found:
        return Found(np.zeros((X.shape[0], 0), dtype=np.int64), np.zeros((X.shape[0], 0), dtype=np.float32))

    def describe(self, X: Any, found: Found, first: Found, pairs: Pairs, n_jobs: int | None) -> list[Array]:
        counts = np.maximum(self.share * self.counts, np.minimum(self.counts, 1)).astype(np.float32)
        return [
            pairs.dots(SparseRows.of(X), self.centroids, n_jobs),
            self.spreads[pairs.labels],
            counts[pairs.labels],
            pairs.dots(self._best_labels(first), self.together, n_jobs),
        ]

    def _best_labels(self, first: Found) -> SparseRows:
        """The best labels of each row, with weights that add up to 1."""
        labels, scores = first.labels[:, :_TOGETHER], np.maximum(first.scores[:, :_TOGETHER], 0)
        weights = np.where(labels >= 0, scores, 0) + np.float32(1e-12)
        weights /= weights.sum(axis=1, keepdims=True)
        there = labels >= 0
        starts = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
        return SparseRows(
            starts.astype(np.int64), labels[there].astype(np.int32), weights[there].astype(np.float32), len(self.counts)
        )

    def updated(self, revision: Revision, texts: list[Any], n_jobs: int | None) -> Source:
        share = self.share * revision.X_before.shape[0] / revision.X.shape[0]
        return self.fit(revision.X, revision.Y, n_jobs, share)

    def to_state(self) -> State:
        arrays = {"spreads": self.spreads, "counts": self.counts}
        return State(
            self.kind,
            facts={"share": self.share},
            arrays=arrays,
            parts={"centroids": self.centroids.to_state(), "together": self.together.to_state()},
        )

    @classmethod
    def from_state(cls, state: State, n_features: int, n_labels: int) -> Statistics:
        spreads = state.array("spreads", np.float32, (n_labels,))
        counts = state.array("counts", np.int64, (n_labels,))
        if not np.isfinite(spreads).all() or (counts < 0).any():
            raise ModelFormatError(f"{state.kind}: spreads must be finite, and counts must not be negative")
        share = float(state.fact("share", (int, float))) if "share" in state.facts else 1.0
        if not 0 < share < np.inf:  # written such that NaN fails
            raise ModelFormatError(f"{state.kind}: the fact 'share' is {share}; expected a number above 0")
        return cls(
            SparseRows.from_state(state.part("centroids", "SparseRows"), n_labels, n_features),
            spreads,
            counts,
            SparseRows.from_state(state.part("together", "SparseRows"), n_labels, n_labels),
            share,
        )


def count_together(Y: Any) -> int:
    """The number of pairs of labels of the same row, or 0 if there are too many to count how often each occurs."""
    pairs = int(np.square(np.diff(Y.indptr).astype(np.int64)).sum())
    return pairs if pairs <= _MOST_CO_OCCURRENCES else 0


def _together(Y: Any, counts: Array) -> SparseRows:
    """How often labels come together, without the label itself."""
    n_labels = Y.shape[1]
    if not count_together(Y):
        return SparseRows(np.zeros(n_labels + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32), n_labels)
    found = sparse.csr_array(Y.T @ Y)
    found.data /= np.maximum(counts, 1).astype(np.float32)[found.indices]
    found.data[np.repeat(np.arange(n_labels, dtype=np.int32), np.diff(found.indptr)) == found.indices] = 0
    found.eliminate_zeros()
    found.sort_indices()
    return SparseRows.of(found)
