"""How much room a layer of sines and cosines leaves its label sets, in closed form, and whether floats resolve it.

A set of k labels has an input in exact arithmetic, but with many labels its smallest score is far below its largest.
If rounding errors are larger than that, the guarantee of the layer is of no use. Slack columns then help.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from longtail.arrays import Array
from longtail.audit.dft import dft_matrix
from longtail.errors import InvalidInput
from longtail.estimator import check_memory
from longtail.validation import check_whole

_SAMPLES = 32
# Enough for all label sets of real data that were measured, see docs/audit.md.
SLACK = 16


class Inputs(NamedTuple):
    """An input for each label set, and how far each is on the right side of all planes.

    Attributes
    ----------
    x : float64 array of shape (n_sets, 2 * k + 1)
    lowest : float64 array of shape (n_sets,)
        The smallest distance from the plane of a label.
    """

    x: Array
    lowest: Array

    @property
    def radii(self) -> Array:
        """Lower bounds on the radii of the sets for inputs between -1 and 1."""
        return np.asarray(self.lowest / np.abs(self.x).max(axis=1))

    @property
    def margins(self) -> Array:
        """The smallest distance from a plane, as a share of the length of the input: the room for rounding errors."""
        return np.asarray(self.lowest / np.sqrt(np.square(self.x).sum(axis=1)))


def closed_form_inputs(labels: Any, n: int, k: int) -> Inputs:
    """Inputs that get sets of labels from ``dft_matrix(n, k)``, without the matrix; see `dft_witness`.

    The scores are a product of sines. Between two neighbouring zeros the logarithm of its size is concave, so it is
    smallest at the labels beside the zeros. An input takes time of the order of k squared, whatever n is.

    Parameters
    ----------
    labels : int array of shape (n_sets, size)
        The labels of each set, in increasing order; size is at least 1 and at most k.
    n, k : int
        As for `dft_matrix`.

    Examples
    --------
    >>> found = closed_form_inputs([[1, 5], [2, 3]], n=9, k=2)
    >>> scores = dft_matrix(9, 2) @ found.x.T
    >>> [np.flatnonzero(column > 0).tolist() for column in scores.T]
    [[1, 5], [2, 3]]
    """
    _check_sizes(n, k)
    active = np.asarray(labels)
    if active.ndim != 2 or not 1 <= active.shape[1] <= k or active.dtype.kind not in "iu":
        raise InvalidInput(
            f"labels has shape {active.shape} and dtype {active.dtype}; expected rows of 1 to {k} labels"
        )
    active = active.astype(np.int64)
    if np.any((active < 0) | (active >= n)) or np.any(np.diff(active, axis=1) <= 0):
        raise InvalidInput(f"labels must have label ids from 0 to {n - 1} in increasing order, each once")
    check_memory({"sines": 8 * 30 * k**2, "columns": 8 * 8 * k**2})
    small = dft_matrix(2 * k + 1, k)
    places = np.arange(2 * k + 1) * (n / (2 * k + 1))
    x = np.empty((len(active), 2 * k + 1))
    lowest = np.empty(len(active))
    for row, chosen in enumerate(active):
        zeros = _zeros(chosen, n)
        beside = np.concatenate([zeros - 0.5, zeros + 0.5])
        sizes, signs = _product(np.concatenate([places, beside]), zeros, n)
        top = sizes[: len(places)].max()
        values = signs[: len(places)] * np.exp(sizes[: len(places)] - top)
        _, sign = _product(chosen[:1].astype(np.float64), zeros, n)
        # The matrix of 2k + 1 points has the same columns, up to their scale.
        x[row] = sign[0] * np.sqrt(n / (2 * k + 1)) * (small.T @ values)
        lowest[row] = np.exp(sizes[len(places) :].min() - top) * np.sqrt(n / (2 * k + 1))
    return Inputs(x, lowest)


def _zeros(chosen: Array, n: int) -> Array:
    """The points halfway between neighbours of which one is active, in units of the distance of two labels."""
    starts = chosen[~np.isin((chosen - 1) % n, chosen)] - 0.5
    ends = chosen[~np.isin((chosen + 1) % n, chosen)] + 0.5
    return np.concatenate([starts, ends])


def _product(places: Array, zeros: Array, n: int) -> tuple[Array, Array]:
    """Logarithms and signs of the product of the sines of half the angles between places and zeros."""
    sines = np.sin((places[:, None] - zeros) * (np.pi / n))
    with np.errstate(divide="ignore"):
        return np.log(np.abs(sines)).sum(axis=1), np.prod(np.sign(sines), axis=1)


def random_members(n: int, k: int, samples: int, random_state: int = 0) -> Array:
    """Random sets of exactly `k` of `n` labels, one in each row, in increasing order.

    Examples
    --------
    >>> random_members(10, 3, 2).shape
    (2, 3)
    """
    rng = np.random.default_rng(random_state)
    if k * k < n:
        # Nearly all draws have different labels; the others are drawn again.
        drawn = np.sort(rng.integers(0, n, size=(samples, k)), axis=1)
        while len(again := np.flatnonzero((np.diff(drawn, axis=1) == 0).any(axis=1))):
            drawn[again] = np.sort(rng.integers(0, n, size=(len(again), k)), axis=1)
        return drawn
    return np.array([np.sort(rng.choice(n, size=k, replace=False)) for _ in range(samples)]).reshape(samples, k)


def dft_margins(n: int, k: int, samples: int = _SAMPLES, random_state: int = 0) -> Array:
    """The room for rounding errors that random sets of `k` labels have in ``dft_matrix(n, k)``.

    The smallest distance of an input from the plane of a label, as a share of the length of the input. The input is
    that of `dft_witness`, so these are lower bounds.

    Examples
    --------
    >>> small, large = (np.median(dft_margins(n, 5)) for n in (100, 10_000))
    >>> bool(small > 1000 * large)
    True
    """
    check_whole("samples", samples, 1)
    _check_sizes(n, k)
    return closed_form_inputs(random_members(n, k, samples, random_state), n, k).margins


def _check_sizes(n: int, k: int) -> None:
    check_whole("k", k, 1)
    if n <= 2 * k:
        raise InvalidInput(f"{n} labels for k = {k}; sines and cosines up to frequency k need more than 2k labels")


def slack_needed(n: int, k: int, dtype: Any = np.float32) -> int:
    """Slack columns that a layer of sines and cosines should have: none if floats resolve its label sets, else 16.

    A set counts as resolved if its margin is above the rounding errors of the scores: the relative spacing of the
    floats times the root of the number of columns. The sets are random sets of `k` labels. Sets of labels that lie side
    by side need more.

    Parameters
    ----------
    n, k : int
        As for `dft_matrix`.
    dtype : dtype
        Of the weights and inputs.

    Examples
    --------
    >>> slack_needed(20, 3), slack_needed(983, 25), slack_needed(983, 25, np.float64)
    (0, 16, 16)
    """
    if k < 1:
        return 0
    _check_sizes(n, k)
    resolution = float(np.finfo(dtype).eps) * np.sqrt(2 * k + 1)
    # One by one, because large sets take long, and the first of them is not resolved.
    margins = (closed_form_inputs(members[None], n, k).margins[0] for members in random_members(n, k, _SAMPLES))
    return 0 if all(margin > resolution for margin in margins) else SLACK
