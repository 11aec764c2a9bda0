"""`Explanation`: what each feature of a row adds to the score of a label."""

from __future__ import annotations

from dataclasses import dataclass

from longtail.arrays import Array


@dataclass(frozen=True)
class Step:
    """One classifier on the path to a label: ``contributions.sum() + intercept == margin``.

    Parameters
    ----------
    tree : int
        The tree, counted from 1.
    node : int
        The node that the classifier belongs to.
    probability : float
        The probability that the margin becomes: a factor of the score.
    margin : float
    features, contributions : arrays
        Features of the row that contribute to the margin, and what each adds, the largest first.
    intercept : float
    """

    tree: int
    node: int
    probability: float
    margin: float
    features: Array
    contributions: Array
    intercept: float


@dataclass(frozen=True)
class Evidence:
    """One number that a second stage looked at, and how far it moved the log-odds of the label.

    Parameters
    ----------
    name : str
        What the number is, in words.
    value : float or None
        None for the average candidate, where the moves start.
    contribution : float
    """

    name: str
    value: float | None
    contribution: float


@dataclass(frozen=True)
class Explanation:
    """Why a label has its score: ``contributions.sum() + intercept == margin``.

    Parameters
    ----------
    label : int
    score : float
    margin : float
        The linear part of the score: for ridge the score itself, for one-vs-rest the margin of the label's classifier,
        for a label tree the sum of the margins along the path, averaged over trees.
    features : array of int
        Features of the row that contribute to the margin, the largest contribution first.
    contributions : array of float
        What each feature adds.
    intercept : float
    steps : tuple of Step
        For a tree, the classifiers on the path.
    evidence : tuple of Evidence
        For two stages: what the ranker looked at. The contributions add up to the log-odds of the score; everything
        above then explains the first learner among the sources. Empty for other learners.
    """

    label: int
    score: float
    margin: float
    features: Array
    contributions: Array
    intercept: float
    steps: tuple[Step, ...] = ()
    evidence: tuple[Evidence, ...] = ()
