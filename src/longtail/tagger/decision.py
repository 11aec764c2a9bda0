"""`Decision`: how many labels to give a row, learned from rankings of held-out rows.

Scores become probabilities, and labels are given from a threshold on. A sigmoid or a table turns one into the other,
whichever fits held-out rows better; both rise with the score, so rankings do not change.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import logit

from longtail.arrays import Array
from longtail.choice import PLACES, HeldOut
from longtail.errors import ModelFormatError
from longtail.estimator import Evidence, Explanation
from longtail.metrics import reliability
from longtail.store import State
from longtail.tagger.aims import Aim, Rule
from longtail.trees import METHODS, Calibration, calibrations_from_state, calibrations_to_arrays

_log = logging.getLogger(__name__)

_FOLDS = 2
_JUDGED = 5  # places whose probabilities are judged
_ALIKE = 2  # neighbouring rows share a fold, as a second stage has ranked the even rows with what the odd ones taught
_LEAST = float(np.finfo(np.float32).tiny)
_CALIBRATED = "how often such scores were right on held-out rows"
_ROOM = 2  # a new row may get this many times the labels that any held-out row got
_FEWEST_PLACES = 10


class Expected(NamedTuple):
    """What to expect of the labels given to new rows, measured on held-out rows that the decision did not learn from.

    Parameters
    ----------
    n_rows : int
    precision, recall, f1 : float
        Of all pairs of row and label together.
    labels_per_row : float
    error : float
        Expected calibration error of the first five labels of each row.
    """

    n_rows: int
    precision: float
    recall: float
    f1: float
    labels_per_row: float
    error: float


@dataclass(frozen=True)
class Decision:
    """Which labels to give a row, and the probabilities of all scores.

    Parameters
    ----------
    aim : Aim
    rule : Rule
    places : int
        Places of a ranking that are looked at; more labels are never given.
    calibration : Calibration
        Turns scores, or their log-odds, into probabilities.
    of_odds : bool
        Whether the scores lie between 0 and 1, so that their log-odds are calibrated.
    expected : Expected

    Examples
    --------
    >>> rows = np.repeat(np.arange(50), 2)
    >>> held = HeldOut(rows, np.tile(np.float32([0.9, 0.2]), 50), np.tile([True, False], 50), n_true=60, n_rows=50)
    >>> found = Decision.learn(held, Aim("f1"), are_probabilities=True)
    >>> found.rule.given(found.probabilities(np.float32([0.9, 0.2])), np.array([True, False])).tolist()
    [True, False]
    """

    aim: Aim
    rule: Rule
    places: int
    calibration: Calibration
    of_odds: bool
    expected: Expected

    @classmethod
    def learn(cls, held: HeldOut, aim: Aim, are_probabilities: bool, only_best: bool = False) -> Self:
        """Learn the probabilities of scores and the rule from held-out rows.

        Parameters
        ----------
        held : HeldOut
        aim : Aim
        are_probabilities : bool
            Whether scores lie between 0 and 1.
        only_best : bool
            Whether rows get their best label only, so that there is no rule to learn.
        """
        scores = _scale(held.scores, are_probabilities)
        fold = held.rows // _ALIKE % _FOLDS
        method, unseen = _best_method(fold, scores, held.hits)
        calibration = Calibration.fit(method, scores, held.hits)
        chances = calibration.probability(scores)
        only = Rule(0.0, only_best=True) if only_best else None
        rule = only or aim.rule(chances, held.hits, held.is_first, held.n_true)
        given = rule.given(chances, held.is_first)
        if missing := aim.missing(int(held.hits[given].sum()), int(given.sum()), held.n_true):
            _log.warning(missing)
        most = int(np.bincount(held.rows[given], minlength=1).max())
        places = min(PLACES, max(_FEWEST_PLACES, _ROOM * most))
        return cls(aim, rule, places, calibration, are_probabilities, _expect(held, aim, fold, unseen, only))

    def probabilities(self, scores: Array) -> Array:
        """The probability that each label is right; it rises with the score. Places without a label stay -inf."""
        empty = np.isneginf(scores)
        found = self.calibration.probability(_scale(np.where(empty, np.float32(0), scores), self.of_odds))
        if self.of_odds:
            found = np.where(scores > 0, found, np.float32(0))  # a score of 0 is not a proposal
        return np.where(empty, scores, found)

    def explained(self, found: Explanation) -> Explanation:
        """An explanation with the probability as its score; evidence still adds up to its log-odds."""
        raw = np.array([found.score], dtype=np.float32)
        score = float(self.probabilities(raw)[0])
        if not found.evidence:
            return replace(found, score=score)
        inside = np.clip([score, found.score], _LEAST, 1 - 2.0**-24)
        moved = float(np.subtract(*logit(inside)))
        return replace(found, score=score, evidence=(*found.evidence, Evidence(_CALIBRATED, None, moved)))

    def to_state(self) -> State:
        """The state that is saved with a model."""
        facts = {
            "aim": str(self.aim),
            "threshold": self.rule.threshold,
            "always_one": self.rule.always_one,
            "only_best": self.rule.only_best,
            "places": self.places,
            "of_odds": self.of_odds,
            **self.expected._asdict(),
        }
        return State("Decision", facts=facts, arrays=calibrations_to_arrays((self.calibration,)))

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Build it again, or raise `ModelFormatError`."""
        aim = Aim.read(state.fact("aim", str))
        if aim is None:
            raise ModelFormatError(f"Decision: the aim is {state.facts['aim']!r}")
        only_best = "only_best" in state.facts and state.fact("only_best", bool)
        rule = Rule(_number(state, "threshold", 1.0), state.fact("always_one", bool), only_best)
        found = calibrations_from_state(state, 1)
        if not found:
            raise ModelFormatError("Decision: it has no calibration")
        shares = {name: _number(state, name, 1.0) for name in ("precision", "recall", "f1", "error")}
        expected = Expected(
            n_rows=state.size("n_rows"), labels_per_row=_number(state, "labels_per_row", PLACES), **shares
        )
        places = state.size("places", least=1, most=PLACES)
        return cls(aim, rule, places, found[0], state.fact("of_odds", bool), expected)

    def to_dict(self) -> dict[str, Any]:
        """The aim, the threshold if there is one, and what to expect, for the card of a model."""
        threshold = {} if self.threshold is None else {"threshold": self.threshold}
        return {"aim": str(self.aim), **threshold, **self.expected._asdict()}

    @property
    def threshold(self) -> float | None:
        """The probability from which labels are given; None if rows get their best label only."""
        return None if self.rule.only_best else self.rule.threshold

    def describe(self) -> str:
        """The same in a sentence."""
        found = self.expected
        one = ", and always the best one" if self.rule.always_one else ""
        given = f"tags from probability {self.rule.threshold:.3f} on{one}"
        if self.rule.only_best:
            given = "one tag for each row"
        return (
            f"{given} (aim {self.aim}); on {found.n_rows:,} held-out rows {found.labels_per_row:.1f} per row, "
            f"precision {100 * found.precision:.1f}, recall {100 * found.recall:.1f}, F1 {100 * found.f1:.1f}; "
            f"calibration error {found.error:.3f}"
        )


def _number(state: State, name: str, most: float) -> float:
    found = float(state.fact(name, (int, float)))
    if not 0 <= found <= most:  # written such that NaN fails
        raise ModelFormatError(f"Decision: the fact {name!r} is {found}; expected 0 to {most:g}")
    return found


def _scale(scores: Array, are_probabilities: bool) -> Array:
    """What is calibrated: scores as they are, or the log-odds of probabilities, bounded."""
    if not are_probabilities:
        return np.asarray(scores)
    return np.asarray(logit(np.clip(scores.astype(np.float64), _LEAST, 1 - 2.0**-24)), dtype=np.float32)


def _best_method(fold: Array, scores: Array, hits: Array) -> tuple[str, Array]:
    """A sigmoid or a table, whichever makes the truth of the other rows more likely, with its probabilities there."""
    tried = []
    for method in METHODS:
        found = np.empty(len(scores), dtype=np.float32)
        for mine in (fold == number for number in range(_FOLDS)):
            found[mine] = Calibration.fit(method, scores[~mine], hits[~mine]).probability(scores[mine])
        safe = np.clip(found.astype(np.float64), 1e-6, 1 - 1e-6)
        tried.append((-float(np.log(np.where(hits, safe, 1 - safe)).sum()), method, found))
    _, method, found = min(tried, key=lambda each: each[0])
    return method, found


def _expect(held: HeldOut, aim: Aim, fold: Array, chances: Array, only: Rule | None) -> Expected:
    """Rules of some rows, or the `only` rule, judged on the others."""
    first = held.is_first
    given = np.zeros(len(fold), dtype=bool)
    for mine in (fold == number for number in range(_FOLDS)):
        share = np.count_nonzero(~mine) / max(1, len(mine))
        rule = only or aim.rule(chances[~mine], held.hits[~mine], first[~mine], round(share * held.n_true))
        given[mine] = rule.given(chances[mine], first[mine])
    n_given, right = int(given.sum()), int(held.hits[given].sum())
    starts = np.maximum.accumulate(np.where(first, np.arange(len(first)), 0))
    top = np.arange(len(first)) - starts < _JUDGED
    return Expected(
        n_rows=held.n_rows,
        precision=right / max(1, n_given),
        recall=right / max(1, held.n_true),
        f1=2 * right / max(1, n_given + held.n_true),
        labels_per_row=n_given / max(1, held.n_rows),
        error=reliability(chances[top], held.hits[top]).error,
    )
