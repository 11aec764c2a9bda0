"""The race: learners are trained on growing samples and judged on held-out rows; losers drop out early.

What enters, how many rows each round has and who stays are decided by the shape of the data, the seed and the measured
nDCG, never by the clock. The same data and seed therefore choose the same learner on every machine.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
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

_log = logging.getLogger(__name__)

_SHARE = 1 / 8
_MOST_HELD_OUT = 8000  # more hardly change the choice, nor what a second stage learns from them
_ENOUGH_HELD_OUT = 1500  # with fewer, a second stage holds out several parts of the rows in turn
_MOST_FOLDS = 4
_SAMPLES = (1 / 8, 1 / 3)  # shares of the rows of the first rounds
_FEWEST_ROWS = 2000  # of a sample
_STAY = (4, 2)  # learners left after each of the first rounds
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


@dataclass(frozen=True)
class Entrant:
    """A learner in the race.

    Parameters
    ----------
    name : str
    estimator : Estimator
        Not fitted.
    features : str
        Which of the feature matrices it learns from.
    family : str
        Learners of different families make different mistakes, so they complement each other in a second stage.
    seconds : float
        Estimated processor seconds of training on all rows.
    """

    name: str
    estimator: Estimator
    features: str
    family: str
    seconds: float


@dataclass(frozen=True)
class Standing:
    """How an entrant did in a round: nDCG@5 on the held-out rows after training on a number of rows."""

    name: str
    features: str
    n_rows: int
    ndcg: float


@dataclass(frozen=True)
class Race:
    """The result of a race.

    Parameters
    ----------
    finalists : tuple of (Entrant, Estimator)
        Best first, each with a model that was fitted to all rows that are not held out.
    standings : tuple of Standing
        All rounds, in the order they were run.
    left_out : tuple of Entrant
        Learners that would have taken too long.
    """

    finalists: tuple[tuple[Entrant, Estimator], ...]
    standings: tuple[Standing, ...]
    left_out: tuple[Entrant, ...]

    def to_text(self) -> str:
        """The table of the last round of each learner, best first."""
        last = {(each.name, each.features): each for each in self.standings}
        rows = sorted(last.values(), key=lambda each: (-each.n_rows, -each.ndcg))
        width = max(len(each.name) for each in rows)
        lines = [f"  {each.name:<{width}}  {100 * each.ndcg:6.2f}  {each.n_rows:>9,}  {each.features}" for each in rows]
        return "\n".join([f"  {'learner':<{width}}  nDCG@5  {'rows':>9}  features", *lines])


def entrants(X: Any, Y: Any, features: str, seed: int, n_jobs: int | None) -> list[Entrant]:
    """The learners that are worth trying on these features, cheapest first."""
    own: dict[str, Any] = {"random_state": seed, "n_jobs": n_jobs}
    mid: dict[str, Any] = {"leaf_size": 200, "branching": 128}
    wide: dict[str, Any] = {"leaf_size": 400, "branching": 256}
    found: list[tuple[str, Estimator, str]] = [
        ("label tree", LabelTree(C=0.5, **own), "forest"),
        ("3 label trees", LabelTree(n_trees=3, C=0.5, **own), "forest"),
        ("3 wide label trees", LabelTree(n_trees=3, C=0.5, **wide, **own), "forest"),
        ("beam tree, C=0.3", LabelTree(negatives="beam", C=0.3, prune=0.05, **mid, **own), "hard negatives"),
        ("beam tree, C=1", LabelTree(negatives="beam", **mid, **own), "hard negatives"),
        ("one-vs-rest", OneVsRest(**own), "hard negatives"),
    ]
    if Y.shape[1] <= _FEW_LABELS:
        found.append(("ridge", RidgeCV(**own), "ridge"))
    entered = [Entrant(name, model, features, family, seconds_of(model, X, Y)) for name, model, family in found]
    fitting = [each for each in entered if each.estimator.memory_plan(X, Y).total <= available_memory() / 2]
    return sorted(fitting or entered[:1], key=lambda each: each.seconds)


def affordable(entered: Sequence[Entrant], seconds: float) -> tuple[list[Entrant], float]:
    """The learners that can take part within a number of processor seconds, and what the race then takes at most.

    The two most expensive count twice in full: they may reach the last round, and the winners are trained again on all
    rows. The cheapest always stays.
    """
    left = sorted(entered, key=lambda each: each.seconds)
    while True:
        costs = [each.seconds for each in left]
        total = sum(costs) * sum(_SAMPLES[: 1 if len(left) <= _STAY[0] else 2]) + 2 * sum(costs[-2:])
        if total <= seconds or len(left) == 1:
            return left, total
        left.pop()


def run(
    matrices: Mapping[str, Any], Y: Any, entered: Sequence[Entrant], held: Array, rest: Array, seed: int
) -> tuple[tuple[tuple[Entrant, Estimator], ...], tuple[Standing, ...]]:
    """Run the race; return the finalists with their models, best first, and the standings.

    Parameters
    ----------
    matrices : mapping of str to csr_array
        The feature matrices of all rows, by name.
    Y : csr_array
    entered : sequence of Entrant
    held, rest : int arrays
        The rows to judge on and to train on.
    seed : int
        Random seed for the samples.
    """
    order = rest[np.random.default_rng(seed).permutation(len(rest))]
    sizes = [min(len(rest), max(_FEWEST_ROWS, int(share * len(rest)))) for share in _SAMPLES] + [len(rest)]
    standings: list[Standing] = []
    left = list(entered)
    fitted: dict[str, Estimator] = {}
    for number, size in enumerate(sizes):
        last = number == len(sizes) - 1
        if not last and (size == sizes[-1] or len(left) <= _STAY[number]):
            continue  # nobody would drop out
        rows = np.sort(order[:size])
        scores = {}
        with progress.task(f"race on {size:,} rows", total=len(left)) as advance:
            for entrant in left:
                X = matrices[entrant.features]
                model = clone(entrant.estimator).fit(X[rows], Y[rows])
                labels, _ = model.predict_topk(X[held], _K)
                scores[entrant.name] = ndcg_at_k(Y[held], labels, _K)
                standings.append(Standing(entrant.name, entrant.features, size, scores[entrant.name]))
                if last:
                    fitted[entrant.name] = model
                advance(1, entrant.name)
        left.sort(key=lambda each: -scores[each.name])
        if not last:
            left = _staying(left, _STAY[number])
    return tuple((entrant, fitted[entrant.name]) for entrant in left), tuple(standings)


def _staying(ranked: list[Entrant], places: int) -> list[Entrant]:
    """The best few, with at least two families among them if there are any."""
    staying = ranked[:places]
    others = [each for each in ranked if each.family != staying[0].family]
    if others and all(each.family == staying[0].family for each in staying):
        staying[-1] = others[0]
    return staying
