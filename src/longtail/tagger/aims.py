"""`Aim`: what the tags of a row should be good for. `Rule`: which labels to give for that, chosen on held-out rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from longtail.arrays import Array
from longtail.errors import InvalidInput

_ALWAYS = 2.0  # above every probability
_DEFAULT = 0.5


@dataclass(frozen=True)
class Rule:
    """Give labels whose probability is at least the threshold.

    If `always_one`, also give the best label of every row; if `only_best`, give that label and no other.
    """

    threshold: float
    always_one: bool = False
    only_best: bool = False

    def given(self, chances: Array, is_first: Array) -> Array:
        """Which labels to give, by their probability and whether they are the best of their row."""
        if self.only_best:
            return is_first
        found = chances >= self.threshold
        return found | is_first if self.always_one else found


@dataclass(frozen=True)
class Aim:
    """What the rule of a decision is good for.

    Parameters
    ----------
    measure : {"f1", "precision", "recall", "count"}
        "f1": the best F1 of all pairs of row and label together. "precision" and "recall": at least this share of
        the labels given are right, or of the right labels are given. "count": as many labels as rows have on average.
    share : float or None
        For "precision" and "recall".
    """

    measure: str
    share: float | None = None

    @classmethod
    def read(cls, text: object) -> Self | None:
        """The aim that a text such as ``f1`` or ``precision=0.8`` names; None if it names none.

        Examples
        --------
        >>> Aim.read("precision=0.8"), Aim.read("fame")
        (Aim(measure='precision', share=0.8), None)
        """
        measure, equals, share = str(text).partition("=")
        if measure in ("f1", "count") and not equals:
            return cls(measure)
        try:
            return cls(measure, float(share)) if measure in ("precision", "recall") and 0 < float(share) <= 1 else None
        except ValueError:
            return None

    @classmethod
    def parse(cls, text: object) -> Self:
        """As `read`, but raise `InvalidInput` if the text names no aim."""
        found = cls.read(text)
        if found is None:
            raise InvalidInput(
                f"aim is {text!r}; expected f1, count, precision=SHARE or recall=SHARE with a share above 0 and at "
                "most 1, or none",
                code="bad_parameter",
                name="aim",
            )
        return found

    def __str__(self) -> str:
        return self.measure if self.share is None else f"{self.measure}={self.share:g}"

    def rule(self, chances: Array, hits: Array, is_first: Array, n_true: int) -> Rule:
        """The rule that reaches the aim on held-out rows.

        Parameters
        ----------
        chances : float array of n pairs
            The probability of each ranked label.
        hits, is_first : bool arrays of n pairs
            Whether the label is right, and whether it is the best of its row.
        n_true : int
            Number of right labels, ranked or not.
        """
        if not len(chances):
            return Rule(_DEFAULT)
        cuts = _Cuts.of(chances, hits)
        if self.measure != "f1":
            return Rule(cuts.threshold(self._place(cuts, n_true)))
        # A row without a likely label may still deserve its best one; which is better, held-out rows tell.
        forced = _Cuts.of(np.where(is_first, _ALWAYS, chances), hits)
        alone, always = (each.f1(n_true) for each in (cuts, forced))
        if always.max() <= alone.max():
            return Rule(cuts.threshold(int(np.argmax(alone))))
        return Rule(forced.threshold(int(np.argmax(always))), always_one=True)

    def missing(self, right: int, n_given: int, n_true: int) -> str:
        """What is said if labels given miss a precision or a recall; empty if they reach it."""
        if self.share is None:
            return ""
        reached = right / max(1, n_given if self.measure == "precision" else n_true)
        return "" if reached >= self.share else f"{self} is not reached on held-out rows, only {reached:.2f}"

    def _place(self, cuts: _Cuts, n_true: int) -> int:
        """The cut that reaches the aim; if none does, the one that comes nearest."""
        if self.measure == "count":
            return int(np.argmin(np.abs(cuts.counts - n_true)))
        share = self.share or 0.0
        reached = cuts.right / (cuts.counts if self.measure == "precision" else max(1, n_true))
        [good] = np.nonzero(reached >= share)
        if not len(good):
            return int(np.argmax(reached))
        return int(good[-1] if self.measure == "precision" else good[0])


@dataclass(frozen=True)
class _Cuts:
    """Every place where ranked labels can be cut in two, by descending probability.

    Parameters
    ----------
    lowest, below : float64 arrays
        The lowest probability above the cut, and the highest below it.
    counts, right : int64 arrays
        Number of labels above the cut, and of those that are right.
    """

    lowest: Array
    below: Array
    counts: Array
    right: Array

    @classmethod
    def of(cls, chances: Array, hits: Array) -> _Cuts:
        order = np.argsort(-chances, kind="stable")
        chances, right = chances[order].astype(np.float64), np.cumsum(hits[order])
        ends = np.append(np.flatnonzero(chances[1:] < chances[:-1]), len(chances) - 1)  # equal ones are given together
        return cls(chances[ends], np.append(chances[ends[1:]], 0.0), ends + 1, right[ends])

    def f1(self, n_true: int) -> Array:
        """The F1 of each cut."""
        return np.asarray(2 * self.right / (self.counts + n_true))

    def threshold(self, place: int) -> float:
        """Half-way between both sides of a cut."""
        lowest, below = min(1.0, self.lowest[place]), self.below[place]
        middle = float(np.float32((lowest + below) / 2))
        return middle if middle > below else float(lowest)
