"""What a tagger returns: labels with scores, and explanations of scores by name."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from longtail.estimator import Evidence
from longtail.text import readable_feature


class Tag(NamedTuple):
    """A label and its score."""

    label: str
    score: float


@dataclass(frozen=True)
class LabelCount:
    """A label and its number of training rows."""

    label: str
    count: int


class Reason(NamedTuple):
    """A word, or a feature, and what it adds to the margin of a label."""

    feature: str
    contribution: float

    @property
    def readable(self) -> str:
        """The feature as people read it: a subword has dots instead of the marks of its name.

        >>> Reason("<kult", 0.5).readable
        'kult…'
        """
        return readable_feature(self.feature)


class PathStep(NamedTuple):
    """A step down a label tree: one classifier, whose reasons and intercept add up to its margin.

    Parameters
    ----------
    tree : int
        Number of the tree, counted from 1.
    name : str
        Where the step leads: a class of a taxonomy, ``node 3`` of a learned tree or, in the last step, the label.
    n_labels : int
        Number of labels below that place.
    frequent : tuple of str
        The most frequent of these labels.
    probability : float
        The probability that the margin stands for; their product along the path is the score in this tree.
    margin : float
    reasons : tuple of Reason
    intercept : float
    """

    tree: int
    name: str
    n_labels: int
    frequent: tuple[str, ...]
    probability: float
    margin: float
    reasons: tuple[Reason, ...]
    intercept: float


class TagExplanation(NamedTuple):
    """Why a label has its score: the reasons and the intercept add up to the margin.

    Parameters
    ----------
    label : str
    score : float
    margin : float
        For ridge the score; for one-vs-rest the margin of the label's classifier; for label trees the sum of the
        margins along the path, averaged over the trees.
    reasons : tuple of Reason
        Largest contribution first.
    intercept : float
    steps : tuple of PathStep
        The path in each label tree; empty for ridge.
    evidence : tuple of Evidence
        For two stages: what the ranker looked at, and how far each number moved the log-odds of the score. They add up
        to the log-odds. Margin, reasons and steps then explain the first learner or, for a label without training
        rows, its resemblance to the label's text.
    n_rows : int or None
        Number of training rows of the label; None if it is not known.
    """

    label: str
    score: float
    margin: float
    reasons: tuple[Reason, ...]
    intercept: float
    steps: tuple[PathStep, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    n_rows: int | None = None

    def to_dict(self, most: int | None = None) -> dict[str, Any]:
        """The explanation as plain values for JSON, the same in the shell and over HTTP.

        Each list of reasons has at most `most` items. Features are named as people read them.

        >>> TagExplanation("fruit", 0.5, 0.5, (Reason("pears", 0.5),), 0.0).to_dict()["reasons"]
        [{'feature': 'pears', 'contribution': 0.5}]
        """
        steps = [{**_plain(step, most), "frequent": list(step.frequent)} for step in self.steps]
        return {**_plain(self, most), "steps": steps, "evidence": [asdict(each) for each in self.evidence]}


def _plain(part: PathStep | TagExplanation, most: int | None) -> dict[str, Any]:
    return {**part._asdict(), "reasons": [_plain_reason(reason) for reason in part.reasons[:most]]}


def _plain_reason(reason: Reason) -> dict[str, Any]:
    return {"feature": reason.readable, "contribution": reason.contribution}
