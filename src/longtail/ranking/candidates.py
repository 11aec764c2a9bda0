"""Candidates: the sources are fitted and asked; the labels that they find for a row are described by all of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from longtail.arrays import Array
from longtail.errors import ModelFormatError
from longtail.estimator import Estimator, Revision, fit_with
from longtail.ranking.dense import Sentences, unit_rows
from longtail.ranking.pairs import Pairs
from longtail.ranking.sources import Found, Joined, Learner, Names, Neighbours, Source, Statistics
from longtail.store import State
from longtail.text import join_columns
from longtail.trees import LabelTree

# The sources beside the learners, in the order of the ranker's columns.
OTHERS: dict[str, Any] = {
    "neighbours": Neighbours,
    "statistics": Statistics,
    "names": Names,
    "sentences": Sentences,
    "joined": Joined,
}
_JOINED = "a label tree on words and vectors"


@dataclass(frozen=True)
class Layout:
    """How many features each part has: the first ones are `learned`, all but the last ones `sparse`.

    The `joined` ones are those that are learned and, as rows of length 1, the dense ones.
    """

    learned: int
    sparse: int
    dense: int

    @classmethod
    def of(cls, n_features: int, learned: int | None, dense: int | None) -> Layout:
        n_sparse = n_features - (dense or 0)
        return cls(n_sparse if learned is None else min(learned, n_sparse), n_sparse, dense or 0)

    @property
    def joined(self) -> int:
        return self.learned + self.dense

    def views(self, X: Any) -> Views:
        return Views(self, X)


class Views:
    """The parts of rows of features that sources see, see `Source.sees`; each is made when it is needed first."""

    def __init__(self, layout: Layout, X: Any) -> None:
        self._layout, self._X = layout, X

    @cached_property
    def learned(self) -> Any:
        return _leading(self._X, self._layout.learned)

    @cached_property
    def sparse(self) -> Any:
        return _leading(self._X, self._layout.sparse)

    @cached_property
    def dense(self) -> Any:
        return self._X[:, self._layout.sparse :].toarray()

    @cached_property
    def joined(self) -> Any:
        return join_columns([self.learned, sparse.csr_array(unit_rows(self.dense))])


def _leading(X: Any, n_features: int) -> Any:
    return X if n_features == X.shape[1] else sparse.csr_array(X[:, :n_features])


def take_part(others: Collection[str], layout: Layout, with_texts: bool) -> list[str]:
    """Those of the sources beside the learners that have something to look at, in the order of `OTHERS`."""
    possible = {"names": with_texts, "sentences": layout.dense > 0, "joined": layout.dense > 0}
    return [name for name in OTHERS if name in others and possible.get(name, True)]


def key_of(source: Source) -> str:
    """Tells a source from the others of a model: the name of a learner, else its kind."""
    return f"learner {source.name}" if isinstance(source, Learner) and source.kind == Learner.kind else source.kind


def default_learners(random_state: int | None, n_jobs: int | None) -> list[tuple[str, Estimator]]:
    """Two kinds of label trees that make different mistakes."""
    own: dict[str, Any] = {"random_state": random_state, "n_jobs": n_jobs}
    return [
        ("label tree", LabelTree(negatives="beam", C=0.3, prune=0.05, leaf_size=200, branching=128, **own)),
        ("forest", LabelTree(n_trees=3, C=0.5, **own)),
    ]


def joined_learner(random_state: int | None, n_jobs: int | None) -> Estimator:
    """The learner that sees words and dense vectors together."""
    [(_, tree), _] = default_learners(random_state, n_jobs)
    return tree


@dataclass(frozen=True)
class Recipe:
    """How to fit the sources.

    Parameters
    ----------
    learners : list of (name, Estimator)
        Not fitted.
    others : collection of str
        The sources beside the learners: keys of `OTHERS`.
    layout : Layout
    max_df : float
        See `Neighbours.fit`.
    random_state, n_jobs : int or None
    """

    learners: list[tuple[str, Estimator]]
    others: Collection[str]
    layout: Layout
    max_df: float
    random_state: int | None
    n_jobs: int | None

    def fit(
        self,
        X: Any,
        Y: Any,
        Z: list[Any],
        known: Iterable[Source] = (),
        weights: Array | None = None,
        share: float = 1.0,
    ) -> tuple[Source, ...]:
        """Fit all sources but those of the same key that are `known`, which are used again.

        Only learners weigh the rows. The ranker learned with sources of the `share` of these rows.
        """
        views = self.layout.views(X)
        Z_views = [self.layout.views(each) for each in Z]
        again = {key_of(source): source for source in known}
        fits: dict[str, Callable[[], Source]] = {
            "neighbours": lambda: Neighbours.fit(views.learned, Y, self.max_df),
            "statistics": lambda: Statistics.fit(views.learned, Y, self.n_jobs, share),
            "names": lambda: Names.fit([each.sparse for each in Z_views]),
            "sentences": lambda: Sentences.fit(views.dense, Y, Z_views[0].dense if Z else None),
            "joined": lambda: Joined(
                joined_learner(self.random_state, self.n_jobs).fit(views.joined, Y, sample_weight=weights), _JOINED
            ),
        }
        learners = [
            again.get(f"learner {name}") or Learner(fit_with(clone(estimator), views.learned, Y, weights), name)
            for name, estimator in self.learners
        ]
        others = take_part(self.others, self.layout, bool(Z))
        return *learners, *(again.get(OTHERS[name].kind) or fits[name]() for name in others)


def updated_sources(
    sources: tuple[Source, ...], layout: Layout, revision: Revision, n_jobs: int | None
) -> tuple[Source, ...]:
    """The fitted sources after a change of their rows and labels."""
    readings = revision.label_features or ()
    texts = [layout.views(each) for each in readings]

    def update(source: Source) -> Source:
        seen = revision.seen(lambda X: getattr(layout.views(X), source.sees))
        return source.updated(seen, [getattr(each, source.sees) for each in texts], n_jobs)

    return tuple(update(source) for source in sources)


def load_sources(state: State, layout: Layout, others: Collection[str], n_labels: int) -> tuple[Source, ...]:
    """The fitted sources of a saved model with these parameters, or `ModelFormatError`."""
    kinds: dict[str, Any] = {kind.kind: kind for kind in (Learner, *OTHERS.values())}
    sources: list[Source] = []
    for number in range(state.size("n_sources", least=1, most=32)):
        part = state.part(f"source{number}", *kinds)
        kind = kinds[part.kind]
        sources.append(kind.from_state(part, getattr(layout, kind.sees), n_labels))
    found = [source.kind for source in sources if source.kind != Learner.kind]
    expected = [OTHERS[name].kind for name in take_part(others, layout, Names.kind in found)]
    if sources[0].kind != Learner.kind or found != expected:
        raise ModelFormatError(f"{state.kind}: after a learner, the sources are {found}; expected {expected}")
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
    known: Mapping[str, Found] | None = None,
    hidden: Array | None = None,
) -> tuple[Found, ...]:
    """What each source finds; `known` is what some found, by their keys, and `hidden` labels are not for learners."""
    found = []
    for source in sources:
        # The other sources were fitted without the hidden labels.
        allowed = ~hidden if hidden is not None and hidden.any() and isinstance(source, Learner) else mask
        before = (known or {}).get(key_of(source))
        found.append(before or source.find(getattr(views, source.sees), allowed, n_jobs))
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
