"""`compare`: learners side by side, trained on the same rows and features and judged on the same held-out rows."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from longtail import progress
from longtail.choice import LEARNERS, NETWORK, LearnerOptions, seconds_of
from longtail.data import Corpus
from longtail.errors import InvalidInput, LongtailError
from longtail.estimator import Estimator, fit_with
from longtail.memory import available_memory, format_bytes
from longtail.metrics import Report
from longtail.parallel import resolve_jobs
from longtail.printable import counted
from longtail.tagger.learners import learner_for
from longtail.tagger.preparation import FEWEST_ROWS, hold_out, with_labels_that_occur
from longtail.tagger.tagger import Tagger
from longtail.text import fit_features

_log = logging.getLogger(__name__)

DEFAULT = "default"
COMPARED = ("tree", "one-vs-rest", "ridge", DEFAULT)
_KNOWN = (*LEARNERS[1:], DEFAULT)
_PATIENCE = 600.0
_KS = (1, 3, 5)


@dataclass(frozen=True)
class Compared:
    """How a learner did on the held-out rows.

    Parameters
    ----------
    learner : str
        As it was asked for.
    report : Report or None
        The metrics on the held-out rows; None if it was left out.
    seconds : float
        Time of training, by the clock on the wall, with what it takes to learn how many labels to give; that of
        ``default`` includes its features and its race.
    seconds_to_predict : float
        Time to rank the labels of the held-out rows and to compute the metrics.
    size : int
        Bytes of the model.
    reasons : tuple of str
        Why this learner with these parameters.
    left_out : str
        Why it was not trained; empty if it was.
    """

    learner: str
    report: Report | None = None
    seconds: float = 0.0
    seconds_to_predict: float = 0.0
    size: int = 0
    reasons: tuple[str, ...] = ()
    left_out: str = ""

    def quality(self, metric: str = "nDCG@5") -> float:
        """A metric of the report, such as ``P@1``; -1 if the learner was left out."""
        return -1.0 if self.report is None else self.report[metric]


def compare(
    corpus: Corpus,
    learners: Sequence[str] = COMPARED,
    *,
    features: Any = None,
    holdout: float = 0.1,
    patience: float | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    propensity: tuple[float, float] = (0.55, 1.5),
) -> Iterator[Compared]:
    """Train learners on the same rows, and judge each on the same held-out rows; yields each as it is done.

    Parameters
    ----------
    corpus : Corpus
    learners : sequence of str
        Of ``tree``, ``one-vs-rest``, ``ridge``, ``network`` and ``default``, which is what `Tagger` trains by itself:
        it also decides on the features.
    features : TextFeatures, RowScaling, FeatureOptions or None
        As for `Tagger`.
    holdout : float
        Share of the rows to hold out.
    patience : float or None
        Seconds that a training may take, by an estimate; learners that take longer are left out. None is 600, and
        leaves it to ``default`` how long it takes.
    random_state : int
        Seed of the choice of held-out rows, and of the learners.
    n_jobs : int or None
    propensity : pair of float
        Constants of the propensity model.

    Examples
    --------
    >>> corpus = Corpus.from_lists(["red apples", "blue sky", "green apples"] * 9, [["fruit"], ["sky"], ["fruit"]] * 9)
    >>> [(each.learner, each.quality("P@1")) for each in compare(corpus, ["ridge", "tree"], holdout=0.3)]
    [('ridge', 1.0), ('tree', 1.0)]
    """
    learners = tuple(dict.fromkeys(learners))
    if unknown := [name for name in learners if name not in _KNOWN]:
        raise InvalidInput(
            f"there is no learner {unknown[0]!r}; choose from {', '.join(_KNOWN)}",
            code="unknown_learner",
            name=unknown[0],
            found=_KNOWN,
        )
    if not learners:
        raise InvalidInput("learners is empty; name at least one")
    rest, held_out = hold_out(corpus, holdout, random_state)
    told = f"{counted(rest.n_rows, 'row')}, judging on {held_out.n_rows:,} that are held out"
    _log.info("comparing %s: training on %s", counted(len(learners), "learner"), told)
    return _compared(learners, rest, held_out, _Setting(features, patience, random_state, n_jobs, propensity))


@dataclass(frozen=True)
class _Setting:
    features: Any
    patience: float | None
    random_state: int
    n_jobs: int | None
    propensity: tuple[float, float]

    def options(self, learner: str, races: bool = False) -> LearnerOptions:
        return LearnerOptions(
            learner=learner,
            patience=self.patience if races else None,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
        )


def _compared(learners: Sequence[str], rest: Corpus, held_out: Corpus, setting: _Setting) -> Iterator[Compared]:
    known = with_labels_that_occur(rest.weighted_rows())
    features, X = fit_features(setting.features, known) if set(learners) - {DEFAULT} else (None, None)
    with progress.task("comparing", total=len(learners)) as advance:
        for name in learners:
            advance(0, name)
            begun = time.perf_counter()
            try:
                with progress.stage(name):
                    default = name == DEFAULT
                    tagger = _default(rest, setting) if default else _one(name, known, features, X, setting)
                    trained = time.perf_counter()
                    a, b = setting.propensity
                    report = tagger.evaluate(held_out, ks=_KS, a=a, b=b)
            except LongtailError as error:
                yield Compared(name, left_out=str(error))
            else:
                ended = time.perf_counter()
                size, reasons = tagger.to_state().n_bytes(), tuple(tagger.reasons_)
                yield Compared(name, report, trained - begun, ended - trained, size, reasons)
            advance(1)


def _default(rest: Corpus, setting: _Setting) -> Tagger:
    return Tagger(setting.features, setting.options("auto", rest.n_rows >= FEWEST_ROWS)).fit_corpus(rest)


def _one(name: str, corpus: Corpus, features: Any, X: Any, setting: _Setting) -> Tagger:
    estimator, reasons = learner_for(setting.options(name), X, corpus)
    if name != NETWORK:
        _check_cost(estimator, X, corpus.labels, setting)
    tagger = Tagger.from_fitted(features, fit_with(estimator, X, corpus.labels, corpus.weights), corpus)
    tagger.reasons_ = reasons
    return tagger.learn_how_many(X, corpus)


def _check_cost(estimator: Estimator, X: Any, Y: Any, setting: _Setting) -> None:
    """Refuse a learner that would take too long or too much memory."""
    seconds = seconds_of(estimator, X, Y) / resolve_jobs(setting.n_jobs)
    most = _PATIENCE if setting.patience is None else setting.patience
    if seconds > most:
        raise InvalidInput(f"training would take about {_told(seconds)} s, more than {most:g} s", code="too_slow")
    needed, available = estimator.memory_plan(X, Y).total, available_memory()
    if needed > available:
        raise InvalidInput(
            f"training would take {format_bytes(needed)} of {format_bytes(available)} of memory",
            code="not_enough_memory",
        )


def _told(seconds: float) -> str:
    return f"{seconds:.2g}" if seconds < 10 else f"{seconds:,.0f}"
