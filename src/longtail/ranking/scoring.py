"""From candidates to answers: the probability of each candidate, why it has it, and the places beyond candidates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from longtail.arrays import Array
from longtail.estimator import Evidence, Explanation
from longtail.ranking.boosting import BoostedTrees
from longtail.ranking.candidates import Candidates, Views
from longtail.ranking.pairs import Pairs
from longtail.ranking.sources import Learner, Names, Source, Statistics


@dataclass(frozen=True)
class Scorer:
    """The ranker, and the slope and offset of the sigmoid that turns its raw scores into probabilities."""

    ranker: BoostedTrees
    slope: float
    offset: float

    def chances(self, found: Candidates, n_jobs: int | None) -> Array:
        """The probability that each candidate is right."""
        if not self.ranker.n_trees:  # too few rows to learn from: the first learner decides
            return np.minimum(found.features[:, 0], 1)
        raw = self.ranker.raw(found.features, n_jobs)
        return np.asarray(expit(self.slope * raw + self.offset), dtype=np.float32)

    def lowest(self, pairs: Pairs, chances: Array) -> Array:
        """The lowest chance of the candidates of each row, at most that of an average candidate."""
        lowest = np.full(len(pairs.starts) - 1, expit(self.offset + self.slope * self.ranker.baseline))
        np.minimum.at(lowest, pairs.rows, chances)
        return lowest

    def evidence(self, pair: Array, columns: list[str]) -> tuple[Evidence, ...]:
        """How far each number about a pair moved the log-odds."""
        moved = self.slope * self.ranker.contributions(pair)
        numbers = zip(columns, pair.tolist(), moved[:-1].tolist(), strict=True)
        average = Evidence("an average candidate", None, float(moved[-1] + self.offset))
        return average, *(Evidence(name, float(value), float(moves)) for name, value, moves in numbers)


def words_behind(sources: tuple[Source, ...], views: Views, label: int) -> Explanation:
    """The words behind the first learner's score of a row; for a label without training rows, those of its text."""
    learner, *others = sources
    assert isinstance(learner, Learner)
    by_kind = {source.kind: source for source in others}
    names, statistics = by_kind.get(Names.kind), by_kind.get(Statistics.kind)
    # Only the statistics know which labels have rows.
    if not (isinstance(names, Names) and isinstance(statistics, Statistics)) or statistics.counts[label]:
        return learner.estimator.explain(views.learned, label)
    features, contributions = names.overlap(views.sparse, label)
    return Explanation(label, 0.0, float(contributions.sum()), features, contributions, 0.0)


def fill_places(labels: Array, scores: Array, rows: Array, more: Array, pairs: Pairs, lowest: Array) -> None:
    """Fill the places of some rows beyond their candidates with `more` labels, in their order, below the `lowest`."""
    for row, found in zip(rows.tolist(), more, strict=True):
        known = pairs.labels[pairs.starts[row] : pairs.starts[row + 1]]
        new = np.flatnonzero((found >= 0) & ~np.isin(found, known))
        begin = int(np.argmax(labels[row] < 0))
        new = new[: labels.shape[1] - begin]
        places = slice(begin, begin + len(new))
        labels[row, places] = found[new]
        scores[row, places] = lowest[row] / (2 + np.arange(len(new)))
