"""Propensities, the probabilities that true labels were recorded: the empirical model of Jain et al. (KDD 2016).

Rare labels are missing more often, so propensity-scored metrics weight a hit by the inverse propensity of its label.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from longtail.arrays import Array
from longtail.errors import InvalidInput

DEFAULT_CONSTANTS = (0.55, 1.5)

PROPENSITY_CONSTANTS = {
    "Amazon-3M": (0.6, 2.6),
    "Amazon-670K": (0.6, 2.6),
    "AmazonCat-13K": DEFAULT_CONSTANTS,
    "Bibtex": DEFAULT_CONSTANTS,
    "Delicious": DEFAULT_CONSTANTS,
    "Delicious-200K": DEFAULT_CONSTANTS,
    "EURLex-4K": DEFAULT_CONSTANTS,
    "EURLEX57K": DEFAULT_CONSTANTS,
    "Mediamill": DEFAULT_CONSTANTS,
    "Wiki10-31K": DEFAULT_CONSTANTS,
    "WikiLSHTC-325K": (0.5, 0.4),
    "Wikipedia-500K": (0.5, 0.4),
    "WikipediaLarge-500K": (0.5, 0.4),
}
"""The constants (a, b) that published tables use, by data set."""


def _plain(name: str) -> str:
    return "".join(character for character in name.casefold() if character.isalnum())


_BY_PLAIN_NAME = {_plain(name): constants for name, constants in PROPENSITY_CONSTANTS.items()}


def propensity_constants(name: str) -> tuple[float, float]:
    """Look up the propensity constants (a, b) of a data set.

    Parameters
    ----------
    name : str
        Name of the data set, ignoring case and punctuation. Unknown data sets have (0.55, 1.5).

    Examples
    --------
    >>> propensity_constants("amazon_670k"), propensity_constants("my products")
    ((0.6, 2.6), (0.55, 1.5))
    """
    return _BY_PLAIN_NAME.get(_plain(name), DEFAULT_CONSTANTS)


def inverse_propensity(label_counts: Any, n_rows: int, a: float = 0.55, b: float = 1.5) -> Array:
    """Compute the weight of a hit on each label: 1 + C (count + b)^-a with C = (ln n_rows - 1) (b + 1)^a.

    Parameters
    ----------
    label_counts : array-like of shape (n_labels,)
        Number of training rows of each label.
    n_rows : int
        Number of training rows. With fewer than 3, C would be negative; it is then 0, and every weight is 1.
    a, b : float
        Constants of the data set; see `propensity_constants`.

    Returns
    -------
    array of shape (n_labels,)
        Weights of at least 1; rarer labels have larger weights.

    Examples
    --------
    >>> inverse_propensity([0, 10, 1000], n_rows=5000).round(3)
    array([10.956,  4.247,  1.278])
    """
    counts = np.asarray(label_counts)
    if counts.ndim != 1 or counts.dtype.kind not in "iuf":
        raise InvalidInput(
            f"label_counts has {counts.ndim} dimensions and dtype {counts.dtype}; expected one number per label"
        )
    if isinstance(n_rows, bool) or not isinstance(n_rows, int | np.integer) or n_rows < 1:
        raise InvalidInput(f"n_rows is {n_rows!r}; expected the number of training rows, at least 1")
    if counts.size and not (counts.min() >= 0 and counts.max() <= n_rows):
        raise InvalidInput(
            f"label_counts go from {counts.min()} to {counts.max()}; expected 0 to n_rows = {n_rows}; "
            f"both must come from the same training data"
        )
    if not (0 < a < np.inf and 0 < b < np.inf):
        raise InvalidInput(f"the propensity constants are a={a!r}, b={b!r}; expected positive numbers")
    c = max(float(np.log(n_rows)) - 1, 0.0) * (b + 1) ** a
    weights: Array = 1 + c * (counts.astype(np.float64) + b) ** -a
    return weights


def propensity(label_counts: Any, n_rows: int, a: float = 0.55, b: float = 1.5) -> Array:
    """Compute the probability that a true label was recorded: 1 / `inverse_propensity`, with the same parameters.

    Examples
    --------
    >>> propensity([0, 10, 1000], n_rows=5000).round(3)
    array([0.091, 0.235, 0.782])
    """
    chances: Array = 1 / inverse_propensity(label_counts, n_rows, a, b)
    return chances


def as_inverse_propensity(values: Any, n_labels: int) -> Array:
    """Check weights from a user: one positive finite number per label."""
    weights = np.asarray(values)
    if weights.shape != (n_labels,) or weights.dtype.kind not in "iuf":
        raise InvalidInput(
            f"inverse_propensity has shape {weights.shape} and dtype {weights.dtype}; expected one number for each of "
            f"the {n_labels} labels"
        )
    weights = weights.astype(np.float64, copy=False)
    if not (np.isfinite(weights).all() and (weights > 0).all()):
        raise InvalidInput("inverse_propensity must be positive and finite for every label")
    return weights
