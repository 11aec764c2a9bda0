"""Trains the default on a corpus, with what it said and the time it took."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
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

_ANNOUNCED = re.compile(r"at most about (\d+) s")
_FEATURES = re.compile(r"features: (.+) \(nDCG")
_LEFT_OUT = re.compile(r"left out, as they take longer: (.+)")
_LEARNER = re.compile(r"learner: (?:two stages over )?(.+?)(?: and .+)?, (?:as nDCG|the best on)")


@dataclass(frozen=True)
class DefaultRun:
    """A tagger that was trained with the defaults.

    Parameters
    ----------
    tagger : Tagger
    messages : list of str
        The log of the training.
    seconds, processor_seconds : float
        What the training took.
    """

    tagger: Tagger
    messages: list[str]
    seconds: float
    processor_seconds: float

    @property
    def announced(self) -> float | None:
        """The seconds that the training was expected to take at most; None if there was no race."""
        return next((float(found[1]) for each in self.messages if (found := _ANNOUNCED.search(each))), None)

    @property
    def raced_features(self) -> str | None:
        """The features that won; None if there was only one kind."""
        return next((found[1] for each in self.messages if (found := _FEATURES.match(each))), None)

    @property
    def left_out(self) -> list[str]:
        """Learners that would have taken too long for the race."""
        found = next((found[1] for each in self.messages if (found := _LEFT_OUT.search(each))), "")
        # Names such as "one-vs-rest, C=0.3" contain the separator.
        return re.split(r", (?!C=)", found) if found else []

    @property
    def learner(self) -> str:
        """The learner that won the race."""
        found = _LEARNER.match(" ".join(self.tagger.reasons_))
        return found[1] if found else type(self.tagger.estimator_).__name__

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
    with messages_of("longtail") as messages:
        started, worked = time.perf_counter(), processor_seconds()
        tagger.fit_corpus(corpus)
        return DefaultRun(tagger, messages, time.perf_counter() - started, processor_seconds() - worked)


@contextmanager
def messages_of(logger: str) -> Iterator[list[str]]:
    """Collect what is logged at level INFO."""
    messages: list[str] = []
    handler = logging.Handler(logging.INFO)
    handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    log = logging.getLogger(logger)
    before = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield messages
    finally:
        log.removeHandler(handler)
        log.setLevel(before)
