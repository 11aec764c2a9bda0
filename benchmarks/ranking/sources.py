"""What each source of candidates contributes: two stages with some of the sources switched off.

The learners are trained once. Every line of the table has its own ranker, which learns from the sources of that line.
Nothing is chosen by these figures: they are measured on the test rows, at the end.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from benchmarks.ranking.default import DefaultRun
from benchmarks.samples import Split
from longtail.estimator import Estimator
from longtail.ranking import TwoStage
from longtail.ranking.candidates import Recipe
from longtail.ranking.sources import Learner, Names, Neighbours, Source, Statistics
from longtail.tagger.matching import label_readings, texts_of_labels
from longtail.text import JoinedFeatures, TextFeatures, inputs_of
from longtail_papers.common import Cell, Column, Table

SHOWN = ("P@1", "P@3", "P@5", "nDCG@5", "PSP@1")
OTHERS = {"neighbours": Neighbours, "statistics": Statistics, "names": Names}
_K = 5


class Switched(TwoStage):
    """Two stages of which only some sources are switched on; all lines share the sources, which are fitted once."""

    whole: TwoStage
    shared: dict[tuple[int, int], tuple[Source, ...]]
    kinds: tuple[type[Source], ...]

    def _recipe(self, X: Any) -> Recipe:
        names = {name for name, _ in self.estimators or ()}
        return _Shared(**vars(self.whole._recipe(X)), shared=self.shared, names=names, kinds=self.kinds)


@dataclass(frozen=True)
class _Shared(Recipe):
    shared: dict[tuple[int, int], tuple[Source, ...]]
    names: set[str]
    kinds: tuple[type[Source], ...]

    def fit(
        self, X: Any, Y: Any, Z: list[Any], fitted: list[Estimator] | None = None, known: tuple[Source, ...] = ()
    ) -> tuple[Source, ...]:
        key = key_of(Y)
        if key not in self.shared:
            self.shared[key] = super().fit(X, Y, Z)
        object.__setattr__(self, "learners", [each for each in self.learners if each[0] in self.names])
        return tuple(
            source
            for source in self.shared[key]
            if isinstance(source, self.kinds) or (isinstance(source, Learner) and source.name in self.names)
        )


def key_of(Y: Any) -> tuple[int, int]:
    """A key of the rows that sources are fitted to."""
    return Y.shape[0], zlib.crc32(Y.indices.tobytes())


class Rows(NamedTuple):
    """What the two stages of a trained default learn from."""

    X: Any
    Y: Any
    readings: list[Any] | None
    X_test: Any


def rows_of(run: DefaultRun, split: Split) -> Rows:
    """The features and labels of a trained default, with the label texts as it reads them."""
    features, corpus = run.tagger.features_, split.train.with_label_names(run.tagger.label_names_)
    readings = None
    if isinstance(features, TextFeatures | JoinedFeatures):
        words = features.parts[0] if isinstance(features, JoinedFeatures) else features
        texts = texts_of_labels(corpus, words)
        readings = None if texts is None else label_readings(features, texts)
    X, X_test = (features.transform(inputs_of(each, features)) for each in (corpus, split.test))
    return Rows(X, corpus.labels, readings, X_test)


def lines(learners: Sequence[str], with_names: bool) -> Iterator[tuple[str, Sequence[str], tuple[str, ...]]]:
    """The title, the learners and the other sources of each line.

    >>> [title for title, *_ in lines(["tree", "forest"], with_names=False)][:3]
    ['learners only', 'learners + neighbours', 'learners + statistics']
    """
    others = tuple(name for name in OTHERS if with_names or name != "names")
    yield "learners only", learners, ()
    for name in others:
        yield f"learners + {name}", learners, (name,)
    for name in others:
        yield f"all without {name}", learners, tuple(other for other in others if other != name)
    for learner in learners if len(learners) > 1 else ():
        yield f"all, {learner} only", [learner], others
    yield "all", learners, others


def ablate(name: str, split: Split, run: DefaultRun, threads: int) -> Iterator[tuple[str, dict[str, float]]]:
    """The metrics of each learner alone, and of two stages with different sources."""
    rows = rows_of(run, split)
    trained = run.tagger.estimator_
    if isinstance(trained, TwoStage):
        whole, shared = trained, {key_of(rows.Y): trained.sources_}
    else:
        whole, shared = TwoStage(n_jobs=threads), {}
    learners = dict(whole._learners())
    model = switched(whole, shared, list(learners), tuple(OTHERS))
    for source in model._recipe(rows.X).fit(rows.X, rows.Y, rows.readings or []):
        if isinstance(source, Learner):
            top = source.estimator.predict_topk(model._learned(rows.X_test), _K)[0]
            yield f"{source.name} alone", run.judge(name, split, top)
    for title, kept, others in lines(list(learners), rows.readings is not None):
        model = switched(whole, shared, kept, others).fit(rows.X, rows.Y, rows.readings)
        yield title, run.judge(name, split, model.predict_topk(rows.X_test, _K)[0])


def switched(
    whole: TwoStage, shared: dict[tuple[int, int], tuple[Source, ...]], kept: Sequence[str], others: Sequence[str]
) -> Switched:
    """A model with only these learners and other sources, which `ablate` shares between lines."""
    learners = [(name, estimator) for name, estimator in whole._learners() if name in kept]
    model = Switched(**{**whole.get_params(deep=False), "estimators": learners})
    model.whole, model.shared, model.kinds = whole, shared, tuple(OTHERS[name] for name in others)
    return model


def sources_table(title: str, found: Sequence[tuple[str, dict[str, float]]]) -> Table:
    """The metrics in percent, line by line."""
    columns = (Column("sources"), *(Column(name, ".2f") for name in SHOWN))
    rows: list[tuple[Cell, ...]] = [(line, *(figures[name] for name in SHOWN)) for line, figures in found]
    return Table(title, columns, rows)
