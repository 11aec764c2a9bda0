"""How many tags: F1 of the tags that ``k="auto"`` gives, against the best that any cut-off and any k would give.

``python -m benchmarks.howmany`` trains the default on each data set. The best cut-off and k are found on the test rows,
for comparison only. The calibration error is that of the first five scores, and of the tags as given, in bins of equal
size.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from longtail import Tagger
from longtail.arrays import Array
from longtail.choice import LearnerOptions
from longtail.data import load_data_set
from longtail.metrics import GivenScores, Judgement, reliability

DATA = ("delicious", "eurlex57k", "yso-sv", "python-api")
_PLACES = 100
_FIRST = 5
_BINS = 10


class Outcome(NamedTuple):
    """The F1 of the tags as given, the best F1, and the calibration errors of the first scores and of the tags."""

    f1: float
    best: float
    k: int
    cutoff: float
    given: GivenScores
    first_error: float
    given_error: float

    @property
    def share(self) -> float:
        return self.f1 / self.best if self.best else 1.0


def best_f1(scores: Array, hits: Array, n_true: int) -> tuple[float, int, float]:
    """The best F1 of all pairs over every number of places and every cut-off, with the two.

    >>> best_f1(np.array([[0.9, 0.8], [0.7, 0.1]]), np.array([[True, True], [True, False]]), 3)
    (1.0, 2, 0.7)
    """
    places = np.broadcast_to(np.arange(scores.shape[1]), scores.shape).ravel()
    order = np.argsort(-scores, axis=None, kind="stable")
    values, right, places = scores.ravel()[order], hits.ravel()[order], places[order]
    there = np.isfinite(values)
    values, right, places = values[there], right[there], places[there]
    found = (0.0, 0, 0.0)
    for k in range(1, scores.shape[1] + 1):
        inside = places < k
        f1 = 2 * np.cumsum(right & inside) / (np.cumsum(inside) + n_true)
        ends = np.append(values[1:] < values[:-1], True)
        place = int(np.argmax(np.where(ends, f1, 0)))
        if f1[place] > found[0]:
            found = (float(f1[place]), k, float(values[place]))
    return found


def measure(name: str, threads: int | None = None, aim: str = "f1") -> Outcome:
    """Train on the training part of a data set, and judge the tags of its test part."""
    tagger = Tagger(estimator=LearnerOptions(n_jobs=threads), aim=aim)
    tagger.fit_corpus(load_data_set(name))
    aligned = tagger.align(load_data_set(name, "test"))
    ranking = tagger.rank_rows(aligned.features, _PLACES)
    judgement = Judgement.of(aligned.labels, ranking.labels)
    given = GivenScores.of(judgement, ranking.given)
    best = best_f1(ranking.scores, judgement.hits, int(judgement.truth.nnz))
    there = (ranking.labels >= 0) & (np.arange(ranking.labels.shape[1]) < _FIRST)
    errors = (reliability(ranking.scores[some], judgement.hits[some], _BINS).error for some in (there, ranking.given))
    return Outcome(given.f1, *best, given, *errors)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=list(DATA), help="names of data sets")
    parser.add_argument("--threads", type=int, help="threads to train with")
    parser.add_argument("--aim", default="f1", help="f1, count, precision=SHARE or recall=SHARE")
    options = parser.parse_args(arguments)
    print(
        f"{'data':<12}{'F1':>7}{'best':>7}{'share':>7}{'k':>5}{'P':>7}{'R':>7}{'tags':>7}{'ECE@5':>8}{'ECE':>8}{'s':>7}"
    )
    for name in options.data:
        begun = time.perf_counter()
        found = measure(name, options.threads, options.aim)
        figures = (100 * found.f1, 100 * found.best, 100 * found.share)
        given = (100 * found.given.precision, 100 * found.given.recall, found.given.per_row)
        print(
            f"{name:<12}"
            + "".join(f"{value:7.2f}" for value in figures)
            + f"{found.k:5d}"
            + "".join(f"{value:7.2f}" for value in given)
            + f"{found.first_error:8.4f}{found.given_error:8.4f}{time.perf_counter() - begun:7.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
