"""`Explanation`: which features of a row gave a label its score."""

from __future__ import annotations

from dataclasses import dataclass

from longtail.arrays import Array


@dataclass(frozen=True)
class Step:
    """One classifier on the path to a label: ``contributions.sum() + intercept == margin``.

    Parameters
    ----------
    tree : int
        Which of the trees, counted from 1.
    node : int
        The node whose child the classifier is for.
    probability : float
        What the margin comes to: the factor in the score.
    margin : float
    features, contributions : arrays
        Features of the row with a part in the margin and what each adds, the largest first.
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
class Explanation:
    """Why a label has its score: ``contributions.sum() + intercept == margin``.

    Parameters
    ----------
    label : int
    score : float
    margin : float
        The linear part of the score: for ridge the score itself, for one-vs-rest the margin of the label's classifier,
        for a label tree the sum of the margins along the path, the mean over trees.
    features : array of int
        Features of the row with a part in the margin, the largest contribution first.
    contributions : array of float
        What each adds.
    intercept : float
    steps : tuple of Step
        For a tree, the classifiers on the path.
    """

    label: int
    score: float
    margin: float
    features: Array
    contributions: Array
    intercept: float
    steps: tuple[Step, ...] = ()
