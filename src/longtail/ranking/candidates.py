"""Candidates: the sources are fitted and asked; the labels that they find for a row are described by all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import clone

from longtail.arrays import Array
from longtail.errors import ModelFormatError
from longtail.estimator import Estimator
from longtail.ranking.dense import Sentences
from longtail.ranking.pairs import Pairs
from longtail.ranking.sources import Found, Learner, Names, Neighbours, Source, Statistics
from longtail.store import State


class Views(NamedTuple):
    """The parts of rows of features that sources see, see `Source.sees`."""

    learned: Any
    sparse: Any
    dense: Any


@dataclass(frozen=True)
class Layout:
    """How many features each part has: the first ones are `learned`, all but the last ones `sparse`."""

    learned: int
    sparse: int
    dense: int

    @classmethod
    def of(cls, n_features: int, learned: int | None, dense: int | None) -> Layout:
        n_sparse = n_features - (dense or 0)
        return cls(n_sparse if learned is None else min(learned, n_sparse), n_sparse, dense or 0)

    def views(self, X: Any) -> Views:
        return Views(
            self.learned_by(X), _leading(X, self.sparse), X[:, self.sparse :].toarray() if self.dense else None
        )

    def learned_by(self, X: Any) -> Any:
        """The features that learners see."""
        return _leading(X, self.learned)


def _leading(X: Any, n_features: int) -> Any:
    return X if n_features == X.shape[1] else sparse.csr_array(X[:, :n_features])


@dataclass(frozen=True)
class Recipe:
    """How to fit the sources.

    Parameters
    ----------
    learners : list of (name, Estimator)
        Not fitted.
    layout : Layout
    max_df : float
        See `Neighbours.fit`.
    n_jobs : int or None
    """

    learners: list[tuple[str, Estimator]]
    layout: Layout
    max_df: float
    n_jobs: int | None

    def fit(
        self, X: Any, Y: Any, Z: list[Any], fitted: list[Estimator] | None = None, known: tuple[Source, ...] = ()
    ) -> tuple[Source, ...]:
        """Fit all sources but the `known` ones, which come first, and the learners that are `fitted`."""
        views = self.layout.views(X)
        sources = list(known)
        if not known:
            models = fitted or [clone(estimator).fit(views.learned, Y) for _, estimator in self.learners]
            sources += [Learner(model, name) for (name, _), model in zip(self.learners, models, strict=True)]
            sources += [Neighbours.fit(views.learned, Y, self.max_df), Statistics.fit(views.learned, Y, self.n_jobs)]
            sources += [Names.fit([self.layout.views(each).sparse for each in Z])] if Z else []
        if self.layout.dense:
            sources.append(Sentences.fit(views.dense, Y, self.layout.views(Z[0]).dense if Z else None))
        return tuple(sources)


def load_sources(state: State, layout: Layout, n_labels: int) -> tuple[Source, ...]:
    """The fitted sources of a saved model, or `ModelFormatError`."""
    kinds = {kind.kind: kind for kind in (Learner, Neighbours, Statistics, Names, Sentences)}
    sources = []
    for number in range(state.size("n_sources", least=1, most=32)):
        part = state.part(f"source{number}", *kinds)
        kind = kinds[part.kind]
        if kind is Sentences and not layout.dense:
            raise ModelFormatError(f"{state.kind}: there are no dense features for the part 'source{number}'")
        sources.append(kind.from_state(part, getattr(layout, kind.sees), n_labels))
    return tuple(sources)


@dataclass(frozen=True)
class Candidates:
    """The candidate pairs of some rows, and the numbers that the ranker looks at."""

    pairs: Pairs
    features: Array
    found: tuple[Found, ...]


def candidates_of(sources: tuple[Source, ...], views: Views, mask: Array | None, n_jobs: int | None) -> Candidates:
    """The candidates of rows; a mask limits which labels compete, but changes nothing that is said about them."""
    found = find(sources, views, None, n_jobs)
    if mask is None:
        return describe(sources, views, found, n_jobs)
    allowed = [replace(each, labels=np.where(mask[each.labels], each.labels, -1)) for each in found]
    more = [each.labels for each in find(sources, views, mask, n_jobs)]
    return describe(sources, views, tuple(allowed), n_jobs, found[0], more)


def find(
    sources: tuple[Source, ...],
    views: Views,
    mask: Array | None,
    n_jobs: int | None,
    known: tuple[Found, ...] = (),
    hidden: Array | None = None,
) -> tuple[Found, ...]:
    """What each source finds; `known` is what the first ones found, and `hidden` labels are not for learners."""
    found = list(known)
    for source in sources[len(known) :]:
        # The other sources were fitted without the hidden labels.
        allowed = ~hidden if hidden is not None and isinstance(source, Learner) else mask
        found.append(source.find(getattr(views, source.sees), allowed, n_jobs))
    return tuple(found)


def describe(
    sources: tuple[Source, ...],
    views: Views,
    found: tuple[Found, ...],
    n_jobs: int | None,
    first: Found | None = None,
    more: Sequence[Array] = (),
) -> Candidates:
    """The pairs of the labels found, and of `more` labels, with what all sources say about them."""
    first = found[0] if first is None else first
    pairs = Pairs.join([*(each.labels for each in found), *more], n_jobs)
    columns = [
        column
        for source, each in zip(sources, found, strict=True)
        for column in source.describe(getattr(views, source.sees), each, first, pairs, n_jobs)
    ]
    return Candidates(pairs, np.column_stack(columns).astype(np.float32, copy=False), found)
