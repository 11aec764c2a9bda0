"""Calibration: turn a tree's scores into the probability that a label is right, learned on held-out rows.

Either Platt's sigmoid of the logarithm of the score, or a table found by isotonic regression. Both rise with the score,
so a tree ranks labels as before.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.special import expit

from longtail.arrays import Array
from longtail.errors import ModelFormatError
from longtail.store import State

METHODS = ("platt", "isotonic")

_MOST_STEPS = 100
_PRIOR = 1e-2


def _nothing() -> Array:
    return np.zeros(0, dtype=np.float32)


@dataclass(frozen=True)
class Calibration:
    """Probabilities of the log scores s of a tree: 1 / (1 + exp(-(slope s + offset))), or read from a table.

    Parameters
    ----------
    slope, offset : float
        Of the sigmoid; unused if there is a table.
    knots, values : float32 arrays
        Ascending log scores, and the probability at each; interpolated between them, constant beyond them. Empty for a
        sigmoid.
    """

    slope: float = 1.0
    offset: float = 0.0
    knots: Array = field(default_factory=_nothing)
    values: Array = field(default_factory=_nothing)

    @classmethod
    def fit(cls, method: str, log_scores: Array, hits: Array) -> Calibration:
        """Learn from the log scores of candidates and whether each was right.

        Examples
        --------
        >>> import numpy as np
        >>> scores = np.log(np.array([0.9, 0.8, 0.7, 0.2, 0.1, 0.05]))
        >>> found = Calibration.fit("isotonic", scores, np.array([1, 1, 0, 1, 0, 0], dtype=bool))
        >>> found.values.round(3).tolist()
        [0.125, 0.5, 1.0]
        """
        log_scores = np.asarray(log_scores, dtype=np.float32)
        hits = np.asarray(hits, dtype=bool)
        if method == "platt":
            return cls(*fit_sigmoid(log_scores, hits))
        return cls(1.0, 0.0, *fit_table(log_scores, hits))

    def probability(self, log_scores: Array) -> Array:
        """The probabilities of log scores, as the search computes them."""
        if len(self.knots):
            return np.asarray(np.interp(log_scores, self.knots, self.values), dtype=np.float32)
        return np.asarray(expit(self.slope * np.asarray(log_scores) + self.offset), dtype=np.float32)


def fit_sigmoid(log_scores: Array, hits: Array) -> tuple[float, float]:
    """Return the non-negative slope and the offset of the sigmoid that makes the hits most likely (Platt, 1999).

    As in Platt's paper, one additional hit and one additional miss smooth the targets. A weak prior pulls slope and
    offset towards 1 and 0, where the sigmoid of a small score is the score itself, so the answer is unique even for few
    candidates.

    Examples
    --------
    >>> import numpy as np
    >>> fit_sigmoid(np.zeros(0), np.zeros(0, dtype=bool))
    (1.0, 0.0)
    """
    n_hits = int(np.count_nonzero(hits))
    n_misses = len(hits) - n_hits
    targets = np.where(hits, (n_hits + 1) / (n_hits + 2), 1 / (n_misses + 2))
    scores = np.asarray(log_scores, dtype=np.float64)
    best = _newton(scores, targets, np.array([1.0, 0.0]), np.array([True, True]))
    if best[0] < 0:
        # The loss is convex: if its minimum has a negative slope, the constrained minimum has slope 0.
        best = _newton(scores, targets, np.array([0.0, 0.0]), np.array([False, True]))
    return float(np.float32(best[0])), float(np.float32(best[1]))


def _newton(scores: Array, targets: Array, start: Array, free: Array) -> Array:
    """Newton's method with step halving over the `free` parameters."""
    prior = np.array([1.0, 0.0])
    # Extremely small scores carry no more information than very small ones, and would dominate the sums.
    scores = np.maximum(scores, -100.0)

    def loss(parameters: Array) -> float:
        logits = parameters[0] * scores + parameters[1]
        likelihood = np.logaddexp(0, logits) - targets * logits
        return float(likelihood.sum() + _PRIOR / 2 * ((parameters - prior) ** 2).sum())

    parameters, value = start, loss(start)
    for _ in range(_MOST_STEPS):
        chances = expit(parameters[0] * scores + parameters[1])
        wrong, spread = chances - targets, chances * (1 - chances)
        gradient = np.array([wrong @ scores, wrong.sum()]) + _PRIOR * (parameters - prior)
        curvature = np.array(
            [
                [spread @ (scores * scores) + _PRIOR, spread @ scores],
                [spread @ scores, spread.sum() + _PRIOR],
            ]
        )
        step = np.zeros(2)
        step[free] = np.linalg.solve(curvature[np.ix_(free, free)], -gradient[free])
        decrease = -float(gradient @ step)
        if decrease <= 1e-10 * max(1.0, abs(value)):
            break
        size = 1.0
        while size > 1e-10 and loss(parameters + size * step) > value - 1e-4 * size * decrease:
            size /= 2
        parameters = parameters + size * step
        value = loss(parameters)
    return parameters


def fit_table(log_scores: Array, hits: Array) -> tuple[Array, Array]:
    """Return log scores and the probability at each, by isotonic regression.

    Isotonic regression gives steps. Each step becomes one point at the mean of its log scores, and values in between
    are interpolated (centred isotonic regression), so no two scores within the table become equal. The lowest
    probability is never 0: it is at least 1 / (number of candidates + 2).
    """
    from sklearn.isotonic import isotonic_regression

    if not len(log_scores):
        return np.zeros(1, np.float32), np.full(1, 0.5, np.float32)
    order = np.argsort(log_scores, kind="stable")
    scores, firsts, counts = np.unique(log_scores[order], return_index=True, return_counts=True)
    shares = np.add.reduceat(hits[order].astype(np.float64), firsts) / counts
    fitted = isotonic_regression(shares, sample_weight=counts)
    values, steps = np.unique(fitted, return_inverse=True)
    sizes = np.bincount(steps, weights=counts)
    knots = np.bincount(steps, weights=counts * scores.astype(np.float64)) / sizes
    values = np.clip(values, 1 / (len(log_scores) + 2), 1)
    return _rising(knots.astype(np.float32), values.astype(np.float32))


def _rising(knots: Array, values: Array) -> tuple[Array, Array]:
    """Drop knots that are equal in 32 bits."""
    rises = np.ones(len(knots), dtype=bool)
    rises[1:] = knots[1:] > knots[:-1]
    return knots[rises], values[rises]


def calibrations_to_arrays(calibrations: tuple[Calibration, ...]) -> dict[str, Array]:
    """Return the calibration of each tree as one array: slope and offset, or a row of knots and a row of values."""
    return {
        f"calibration{number}": np.stack([each.knots, each.values])
        if len(each.knots)
        else np.array([each.slope, each.offset], dtype=np.float32)
        for number, each in enumerate(calibrations)
    }


def calibrations_from_state(state: State, n_trees: int) -> tuple[Calibration, ...]:
    """Read the calibrations of a saved model, or raise `ModelFormatError`."""
    stored = [f"calibration{number}" in state.arrays for number in range(n_trees)]
    if not any(stored):
        return ()
    return tuple(_from_array(state, f"calibration{number}") for number in range(n_trees))


def _from_array(state: State, name: str) -> Calibration:
    found = state.arrays.get(name)
    if isinstance(found, np.ndarray) and found.ndim == 1:
        slope, offset = state.array(name, np.float32, (2,)).tolist()
        if not (np.isfinite([slope, offset]).all() and slope >= 0):
            raise ModelFormatError(
                f"{state.kind}: {name!r} is {slope} and {offset}; expected finite numbers with a slope of at least 0"
            )
        return Calibration(slope, offset)
    knots, values = np.ascontiguousarray(state.array(name, np.float32, (2, None)))
    if not len(knots) or not np.isfinite(knots).all() or (knots[1:] <= knots[:-1]).any():
        raise ModelFormatError(f"{state.kind}: the log scores of {name!r} must be finite and ascending")
    # Written such that NaN fails.
    if not ((values >= 0).all() and (values <= 1).all() and (values[1:] >= values[:-1]).all()):
        raise ModelFormatError(f"{state.kind}: the probabilities of {name!r} must rise and be between 0 and 1")
    return Calibration(1.0, 0.0, knots, values)
