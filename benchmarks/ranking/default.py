"""Trains the default on a corpus, with the time it took."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.child import processor_seconds
from benchmarks.data import judge
from benchmarks.samples import Split
from longtail import Tagger
from longtail.arrays import Array
from longtail.choice import LearnerOptions
from longtail.data import Corpus
from longtail.tagger import RaceSummary


@dataclass(frozen=True)
class DefaultRun:
    """A tagger that was trained with the defaults.

    Parameters
    ----------
    tagger : Tagger
    seconds, processor_seconds : float
        What the training took.
    """

    tagger: Tagger
    seconds: float
    processor_seconds: float

    @property
    def race(self) -> RaceSummary | None:
        """The race; None if there was none."""
        return self.tagger.race_

    @property
    def learner(self) -> str:
        """The learner that won the race, or else the one that was chosen."""
        return type(self.tagger.estimator_).__name__ if self.race is None else self.race.winner

    def judge(self, name: str, split: Split, top: Array) -> dict[str, float]:
        """The metrics of labels, as the tagger numbers them, for the test rows."""
        return judge(name, split.test.labels, split.train.labels, columns_of(self.tagger, split.train)[top])


def columns_of(tagger: Tagger, corpus: Corpus) -> Array:
    """The column of each label of the tagger in the corpus; the last entry is for -1, no label."""
    places = {name: column for column, name in enumerate(corpus.label_names)}
    return np.array([places[name] for name in tagger.label_names_] + [-1])


def train_default(corpus: Corpus, threads: int, **options: Any) -> DefaultRun:
    """Train as ``longtail train`` does by default; `options` are those of `LearnerOptions`."""
    tagger = Tagger(estimator=LearnerOptions(n_jobs=threads, **options))
    started, worked = time.perf_counter(), processor_seconds()
    tagger.fit_corpus(corpus)
    return DefaultRun(tagger, time.perf_counter() - started, processor_seconds() - worked)
