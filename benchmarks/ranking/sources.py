"""What each source of candidates contributes: two stages with some of the sources switched off.

The learners are trained once. Every line of the table has its own ranker, which learns from the sources of that line.
Nothing is chosen by these figures: they are measured on the test rows, at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from benchmarks.ranking.default import DefaultRun
from benchmarks.samples import Split
from longtail.estimator import Estimator
from longtail.ranking import TwoStage
from longtail.ranking.sources import Learner
from longtail.tagger.matching import label_readings, texts_of_labels
from longtail.text import JoinedFeatures, TextFeatures, inputs_of
from longtail_papers.common import Cell, Column, Table

SHOWN = ("P@1", "P@3", "P@5", "nDCG@5", "PSP@1")
_K = 5


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


def lines(learners: Sequence[str], others: tuple[str, ...]) -> Iterator[tuple[str, Sequence[str], tuple[str, ...]]]:
    """The title, the learners and the other sources of each line.

    >>> [title for title, *_ in lines(["tree", "forest"], ("neighbours", "statistics"))][:3]
    ['learners only', 'learners + neighbours', 'learners + statistics']
    """
    yield "learners only", learners, ()
    for name in others:
        yield f"learners + {name}", learners, (name,)
    for name in others:
        yield f"all without {name}", learners, tuple(other for other in others if other != name)
    for learner in learners if len(learners) > 1 else ():
        yield f"all, {learner} only", [learner], others
    yield "all", learners, others


class Ablation:
    """Models with some of the sources; what they share is fitted once."""

    def __init__(self, rows: Rows, trained: TwoStage) -> None:
        self.rows, self.trained = rows, trained
        self.learners = [(each.name, each.estimator) for each in trained.sources_ if each.kind == Learner.kind]
        self._rehearsed = self._model(self.learners, trained.sources).rehearse(rows.X, rows.Y, rows.readings)

    def model(self, learners: Sequence[str], others: tuple[str, ...]) -> TwoStage:
        """A fitted model with only these learners and other sources."""
        rows = self.rows
        model = self._model([each for each in self.learners if each[0] in learners], others)
        model.rehearse(rows.X, rows.Y, rows.readings, like=self._rehearsed)
        return model.finish(rows.X, rows.Y, rows.readings, like=self.trained)

    def _model(self, learners: list[tuple[str, Estimator]], others: tuple[str, ...]) -> TwoStage:
        return TwoStage(**{**self.trained.get_params(deep=False), "estimators": learners, "sources": others})


def ablate(name: str, split: Split, run: DefaultRun, threads: int) -> Iterator[tuple[str, dict[str, float]]]:
    """The metrics of each learner alone, and of two stages with different sources."""
    rows = rows_of(run, split)
    trained = run.tagger.estimator_
    if not isinstance(trained, TwoStage):
        trained = TwoStage(n_jobs=threads).fit(rows.X, rows.Y, rows.readings)
    ablation = Ablation(rows, trained)
    for title, learner in ablation.learners:
        top = learner.predict_topk(rows.X_test[:, : learner.n_features_in_], _K)[0]
        yield f"{title} alone", run.judge(name, split, top)
    others = tuple(each.kind.lower() for each in trained.sources_ if each.kind != Learner.kind)
    for title, kept, some in lines([learner for learner, _ in ablation.learners], others):
        top = ablation.model(kept, some).predict_topk(rows.X_test, _K)[0]
        yield title, run.judge(name, split, top)


def sources_table(title: str, found: Sequence[tuple[str, dict[str, float]]]) -> Table:
    """The metrics in percent, line by line."""
    columns = (Column("sources"), *(Column(name, ".2f") for name in SHOWN))
    rows: list[tuple[Cell, ...]] = [(line, *(figures[name] for name in SHOWN)) for line, figures in found]
    return Table(title, columns, rows)
