"""`Giving`: how many labels rows get, and what their scores become. It turns rankings into labels to give."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from longtail.arrays import Array
from longtail.choice import PLACES
from longtail.tagger.aims import Rule
from longtail.tagger.decision import Decision
from longtail.tagger.ranks import Ranking
from longtail.validation import check_k

AUTO = "auto"


class Giving(NamedTuple):
    """How to give labels.

    Parameters
    ----------
    places : int
        Places of a ranking to look at.
    decision : Decision or None
        What turns scores into probabilities.
    rule : Rule or None
        Which labels to give; None gives all, or what the learner gives.
    by_rule : bool
        Whether the learner itself decides.
    """

    places: int
    decision: Decision | None
    rule: Rule | None = None
    by_rule: bool = False

    @classmethod
    def of(cls, k: Any, threshold: float | None, decision: Decision | None, n_labels: int) -> Self:
        """The way to give `k` labels, or "auto": those that reach the threshold.

        Without a threshold, that is what the decision says or, if there is none, the learner.
        """
        most = max(1, n_labels)  # no row has more labels than there are
        if not (isinstance(k, str) and k == AUTO):
            return cls(min(check_k(k), most), decision, None if threshold is None else Rule(threshold))
        if threshold is not None:
            return cls(min(PLACES, most), decision, Rule(threshold))
        if decision is None:
            return cls(min(PLACES, most), None, by_rule=True)
        return cls(min(decision.places, most), decision, decision.rule)

    def apply(self, ranking: Ranking) -> Ranking:
        """The labels of a ranking with their final scores, and which of them are given."""
        labels, scores, given = ranking
        if self.decision is not None:
            scores = self.decision.probabilities(scores)
        if self.rule is not None:
            is_first = np.zeros(labels.shape, dtype=bool)
            is_first[:, :1] = True
            given = given & self.rule.given(scores, is_first)
        return Ranking(labels, scores, given & (np.arange(labels.shape[1]) < self.places))


def without_zeros(ranking: Ranking) -> Ranking:
    """A ranking that does not give labels whose score is exactly 0: nothing speaks for them."""
    return ranking._replace(given=ranking.given & (ranking.scores != 0))


def given_scores(found: Ranking) -> list[list[tuple[int, float]]]:
    """The ids and scores of the labels that each row is given, best first."""
    counts: Array = found.given.sum(axis=1)
    pairs = list(zip(found.labels[found.given].tolist(), found.scores[found.given].tolist(), strict=True))
    ends = np.cumsum(counts).tolist()
    return [pairs[end - count : end] for end, count in zip(ends, counts.tolist(), strict=True)]
