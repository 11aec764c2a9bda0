"""The race: learners are trained on growing samples and judged on held-out rows; losers drop out early.

What enters, how many rows each round has and who stays are decided by the shape of the data, the seed and the measured
nDCG, never by the clock. The same data, seed and limit therefore choose the same learner on every machine with enough
memory.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from longtail import progress
from longtail.arrays import Array
from longtail.choice.cost import seconds_of
from longtail.estimator import Estimator
from longtail.memory import available_memory
from longtail.metrics import ndcg_at_k
from longtail.ridge import RidgeCV
from longtail.trees import LabelTree, OneVsRest

_SHARE = 1 / 8
_MOST_HELD_OUT = 8000  # more rows hardly change the choice or the second stage
_ENOUGH_HELD_OUT = 1500  # with fewer, a second stage holds out several parts of the rows in turn
_MOST_FOLDS = 4
# Share of the rows, fewest rows, and most learners of each round before the last.
_ROUNDS = ((1 / 32, 2000, 100), (1 / 8, 4000, 3))
_FINAL = 20.0  # estimated processor seconds that a final of the best two may take
_FEW_LABELS = 300  # more are too many for exact ridge
_K = 5


def folds(n_rows: int, seed: int) -> list[tuple[Array, Array]]:
    """Pairs of (held-out rows, other rows), ascending: one pair, or several if the rows are few.

    >>> [(len(held), len(rest)) for held, rest in folds(80_000, seed=0)]
    [(8000, 72000)]
    >>> [len(held) for held, _ in folds(100, seed=0)]
    [25, 25, 25, 25]
    """
    order = np.random.default_rng(seed).permutation(n_rows)
    size = max(1, min(_MOST_HELD_OUT, round(n_rows * _SHARE)))
    if size >= n_rows:
        return []
    count = int(np.clip(-(-_ENOUGH_HELD_OUT // size), 1, min(_MOST_FOLDS, n_rows // size)))
    if count == _MOST_FOLDS:
        size = n_rows // count
    parts = [np.sort(order[number * size : (number + 1) * size]) for number in range(count)]
    return [(held, np.setdiff1d(np.arange(n_rows), held, assume_unique=True)) for held in parts]


@contextmanager
def quietly() -> Iterator[None]:
    """Keep learners from telling their memory plans, which are news only when one of them is trained."""
    loggers = [logging.getLogger(f"longtail.{name}") for name in ("trees", "ridge")]
    before = [each.level for each in loggers]
    for each in loggers:
        each.setLevel(max(each.level, logging.WARNING))
    try:
        yield
    finally:
        for each, level in zip(loggers, before, strict=True):
            each.setLevel(level)


@dataclass(frozen=True, eq=False)
class Entrant:
    """A learner in the race.

    Parameters
    ----------
    name : str
    estimator : Estimator
        Not fitted.
    features : str
        What it learns from, in words.
    seconds : float
        Estimated processor seconds of training on all rows.
    """

    name: str
    estimator: Estimator
    features: str
    seconds: float


@dataclass(frozen=True)
class Standing:
    """How an entrant did in a round: nDCG@5 on the held-out rows after training on a number of rows.

    In the final, it is the mean over all parts that are held out in turn, `n_parts`.
    """

    name: str
    features: str
    n_rows: int
    ndcg: float
    n_parts: int = 1


@dataclass(frozen=True)
class Race:
    """The result of a race.

    Parameters
    ----------
    winner : Entrant
    fitted : Estimator
        The winner, fitted to all rows that are not held out.
    standings : tuple of Standing
        All rounds, in the order they were run.
    left_out : tuple of Entrant
        Learners that would have taken too long.
    """

    winner: Entrant
    fitted: Estimator
    standings: tuple[Standing, ...]
    left_out: tuple[Entrant, ...]


def entrants(X: Any, Y: Any, features: str, seed: int, n_jobs: int | None) -> list[Entrant]:
    """The learners that are worth trying on these features, cheapest first."""
    own: dict[str, Any] = {"random_state": seed, "n_jobs": n_jobs}
    beam: dict[str, Any] = {"negatives": "beam", "leaf_size": 200, "branching": 128, "prune": 0.05}
    wide: dict[str, Any] = {"leaf_size": 400, "branching": 256}
    found: dict[str, Estimator] = {
        "label tree": LabelTree(C=0.5, **own),
        "3 label trees": LabelTree(n_trees=3, C=0.5, **own),
        "3 wide label trees": LabelTree(n_trees=3, C=0.5, **wide, **own),
        "wide label tree, C=1": LabelTree(**wide, **own),
        "beam tree, C=0.3": LabelTree(C=0.3, **beam, **own),
        "beam tree, C=1": LabelTree(**beam, **own),
        "one-vs-rest": OneVsRest(**own),
    }
    if Y.shape[1] <= _FEW_LABELS:
        found["ridge"] = RidgeCV(**own)
    entered = [Entrant(name, model, features, seconds_of(model, X, Y)) for name, model in found.items()]
    fitting = [each for each in entered if each.estimator.memory_plan(X, Y).total <= available_memory() / 2]
    return sorted(fitting or entered[:1], key=lambda each: each.seconds)


def run_race(
    X: Any,
    Y: Any,
    entered: Sequence[Entrant],
    parts: Sequence[tuple[Array, Array]],
    seconds: float,
    seed: int,
    trainings: float = 2,
    weights: Array | None = None,
) -> Race:
    """Run the race within a number of estimated processor seconds, which include training the winner once more.

    Two rounds on samples rank the learners. If the data are small, the best two that are affordable are compared again
    in a final: on all parts, after training on all other rows of each. Samples of small data are too small to tell them
    apart.

    Parameters
    ----------
    X, Y : csr_array
        The features and labels of all rows.
    entered : sequence of Entrant
        Cheapest first; the cheapest takes part whatever it costs.
    parts : sequence of pairs of int arrays
        The rows to judge on and to train on, as from `folds`; the rounds use the first pair.
    seconds : float
    seed : int
        Random seed for the samples.
    trainings : float
        How often the winner will be trained on about all rows, in this race and after it.
    weights : float32 array or None
        How much each row counts in training; held-out rows count once.
    """
    rest = parts[0][1]
    track = _Track(X, Y, weights, parts, rest[np.random.default_rng(seed).permutation(len(rest))])
    each_time = trainings + sum(share for share, _, _ in _ROUNDS)
    ranked = [each for each in entered if each is entered[0] or each_time * each.seconds <= seconds]
    left_out = tuple(each for each in entered if each not in ranked)
    spent = 0.0
    for share, fewest, places in _ROUNDS:
        size = max(fewest, int(share * len(rest)))
        if 2 * size > len(rest):
            size = len(rest)  # little is saved, and what is learned from all rows is used again
        cost = sum(each.seconds for each in ranked[:places]) * size / len(rest)
        if len(ranked) == 1 or size == track.last_size or spent + cost > seconds / 2:
            continue
        ranked = [*track.round(ranked[:places], size), *ranked[places:]]
        spent += cost
    cheapest = min(ranked, key=lambda each: each.seconds)
    # Of those trained on all rows already, one training is in the seconds spent.
    left = {each: (trainings - (each in track.fitted)) * each.seconds for each in ranked}
    affordable = [each for each in ranked if left[each] <= seconds - spent] or [cheapest]
    winner, cost = affordable[0], len(parts) * sum(each.seconds for each in affordable[:2])
    if len(affordable) > 1 and cost <= min(_FINAL, seconds - spent - left[winner]):
        winner = max(affordable[:2], key=track.final)
    track.round([winner], len(rest))
    return Race(winner, track.fitted[winner], tuple(track.standings), left_out)


class _Track:
    """Trains learners on the first rows of an order, and judges them on the held-out rows."""

    def __init__(
        self, X: Any, Y: Any, weights: Array | None, parts: Sequence[tuple[Array, Array]], order: Array
    ) -> None:
        self._X, self._Y, self._weights, self._parts, self._order = X, Y, weights, parts, order
        self.standings: list[Standing] = []
        self.fitted: dict[Entrant, Estimator] = {}
        self.last_size = 0
        self._scores: dict[Entrant, float] = {}

    def round(self, entered: list[Entrant], size: int) -> list[Entrant]:
        """Train everybody on a number of rows; return them best first."""
        if size != self.last_size:
            self.fitted.clear()
        rows = np.sort(self._order[:size])
        with quietly(), progress.task(f"race on {size:,} rows", total=len(entered)) as advance:
            for entrant in entered:
                if entrant not in self.fitted:
                    self._train(entrant, rows)
                advance(1, entrant.name)
        if size < len(self._order):
            self.fitted.clear()  # these models are needed no more
        self.last_size = size
        return sorted(entered, key=lambda each: -self._scores[each])

    def final(self, entrant: Entrant) -> float:
        """Its mean nDCG over all parts, after training on the other rows of each."""
        self.round([entrant], len(self._order))
        with quietly():
            others = [self._judge(entrant, *part)[1] for part in self._parts[1:]]
        mean = float(np.mean([self._scores[entrant], *others]))
        if others:
            self._stand(entrant, len(self._order), mean, len(self._parts))
        return mean

    def _train(self, entrant: Entrant, rows: Array) -> None:
        self.fitted[entrant], self._scores[entrant] = self._judge(entrant, self._parts[0][0], rows)
        self._stand(entrant, len(rows), self._scores[entrant])

    def _judge(self, entrant: Entrant, held: Array, rows: Array) -> tuple[Estimator, float]:
        weights = None if self._weights is None else self._weights[rows]
        model = clone(entrant.estimator).fit(self._X[rows], self._Y[rows], sample_weight=weights)
        return model, ndcg_at_k(self._Y[held], model.predict_topk(self._X[held], _K)[0], _K)

    def _stand(self, entrant: Entrant, n_rows: int, ndcg: float, n_parts: int = 1) -> None:
        self.standings.append(Standing(entrant.name, entrant.features, n_rows, ndcg, n_parts))
