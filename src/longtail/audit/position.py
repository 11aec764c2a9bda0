"""Is a layer in general position, so that the number of its label sets is known exactly? With proofs.

A layer of n labels over d inputs is in general position if no d of its rows of weights are linearly dependent
(definition 2 of Grivas et al., AAAI 2024). Cover's count of label sets is for such layers. All others give fewer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, islice
from typing import Any

import numpy as np
from scipy import linalg, sparse

from longtail.arrays import Array
from longtail.audit.counting import count_argmaxable
from longtail.audit.exact import eliminate, whole_numbers
from longtail.audit.modular import are_regular, remainders
from longtail.audit.proofs import solve_null
from longtail.audit.structure import MOST_MINORS
from longtail.errors import InvalidInput
from longtail.estimator import OutputLayer
from longtail.parallel import check_stop
from longtail.validation import check_whole

_WORK = 5e8  # multiplications of one check
_BLOCK = 2**22  # numbers eliminated at once
_MOST_EXACT = 64  # rows of a system that is still eliminated in exact arithmetic


@dataclass(frozen=True, eq=False)
class Position:
    """Whether the rows of a layer are in general position.

    Attributes
    ----------
    holds : bool or None
        True and False are proved, for the weights exactly as they are stored. None: nothing speaks against it, but not
        all choices of rows were checked.
    dependent : array of label ids
        Linearly dependent rows; empty unless `holds` is False. The id `n_labels` is the row of the bias.
    checked : int
        Choices of rows that were proved to be independent.
    choices : int
        All choices of as many rows as there are dimensions.
    n_labels, n_dimensions : int
        A bias counts as a dimension.
    has_bias : bool
    """

    holds: bool | None
    dependent: Array
    checked: int
    choices: int
    n_labels: int
    n_dimensions: int
    has_bias: bool

    @property
    def most_dependent(self) -> float:
        """An upper bound on the share of dependent choices, at 95 percent confidence; 0 if there are none."""
        if self.holds or self.checked == self.choices:
            return 0.0
        return 1.0 if self.holds is False or not self.checked else 1 - math.exp(math.log(0.05) / self.checked)

    @property
    def label_sets(self) -> int:
        """How many label sets some input gets if `holds` is True; there are fewer if it is False."""
        return count_argmaxable(self.n_labels, self.n_dimensions - self.has_bias, bias=self.has_bias)

    def to_text(self) -> str:
        """What was found, in a sentence or two."""
        size = min(self.n_dimensions, self.n_labels)
        if self.holds:
            return f"In general position: all {self.choices:,} choices of {size:,} rows are linearly independent."
        if self.holds is False:
            names = ", ".join("the bias" if row == self.n_labels else str(row) for row in self.dependent.tolist())
            return f"Not in general position: the rows of labels {names} are linearly dependent."
        return (
            f"Not known: {self.checked:,} random choices of {size:,} rows are linearly independent. At 95 % "
            f"confidence, at most {100 * self.most_dependent:.2g} % of all choices are dependent."
        )


def general_position(layer: Any, bias: Any = None, *, checks: int = 1000, random_state: int = 0) -> Position:
    """Check whether no rows of weights, as many as there are dimensions, are linearly dependent.

    Small layers, with up to 200,000 choices of rows, are decided: every choice is proved to be independent, or one is
    proved to be dependent. In larger layers, rows of zeros, unused inputs and parallel rows are found. Then random
    choices are checked. Their independence is proved too, but says nothing about the other choices.

    Parameters
    ----------
    layer : OutputLayer, or array-like of shape (n_labels, n_inputs)
    bias : array-like of shape (n_labels,), float or None
        With bare weights. The planes then need not pass through the origin: no more of them than there are dimensions
        may meet in a point.
    checks : int
        Maximum number of random choices.
    random_state : int

    Examples
    --------
    >>> found = general_position([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> found.holds, found.label_sets
    (True, 6)
    >>> general_position([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]]).to_text()
    'Not in general position: the rows of labels 0, 2 are linearly dependent.'
    """
    check_whole("checks", checks, 1)
    if not isinstance(layer, OutputLayer):
        layer = OutputLayer.of(layer, bias)
    elif bias is not None:
        raise InvalidInput("bias goes with bare weights; a layer has its own")
    if layer.rule != "predict":
        raise InvalidInput("general position is about labels above thresholds; give a layer with the rule 'predict'")
    rows = np.asarray(layer.weights.toarray() if sparse.issparse(layer.weights) else layer.weights)
    if layer.has_offsets:
        rows = np.vstack([np.hstack([rows, layer.offsets[:, None]]), np.eye(1, layer.n_inputs + 1, layer.n_inputs)])
    n, d = rows.shape
    size = min(n, d)
    choices = math.comb(n, size)
    facts = (choices, layer.n_labels, d, layer.has_offsets)
    special = _special(rows)
    if special is not None:
        return Position(False, special, 0, *facts)
    complete = choices <= MOST_MINORS and choices * size**3 <= _WORK
    most = choices if complete else int(max(1, min(checks, _WORK / size**3)))
    drawn = combinations(range(n), size) if complete else _random_choices(n, size, random_state)
    # Fewer rows than dimensions are independent if they are so in some coordinates.
    left = remainders(rows if n >= d else rows[:, linalg.qr(rows, mode="r", pivoting=True)[1][:n]])
    checked = 0
    for block in _blocks(drawn, most, max(1, _BLOCK // size**2)):
        check_stop()
        regular = are_regular(left[block])
        checked += int(np.count_nonzero(regular))
        for chosen in block[~regular] if size <= _MOST_EXACT else ():
            dependent = _dependent(rows[chosen])
            if len(dependent):
                return Position(False, chosen[dependent], checked, *facts)
            checked += 1
    return Position(True if checked == choices else None, np.zeros(0, dtype=np.int64), checked, *facts)


def _special(rows: Array) -> Array | None:
    """Rows that are dependent at sight: zeros, all rows if an input is unused, or two that are parallel."""
    n, d = rows.shape
    zeros = np.flatnonzero(~rows.any(axis=1))
    if len(zeros):
        return zeros[:1]
    if n >= d and not rows.any(axis=0).all():
        return np.arange(d)
    if d == 1:
        return None
    seen: dict[bytes, int] = {}
    for place, row in enumerate(rows):
        # Exactly parallel rows have the same quotients, which are rounded in the same way.
        with np.errstate(over="ignore", under="ignore"):
            key = (row / row[np.flatnonzero(row)[0]] + 0.0).tobytes()
        first = seen.setdefault(key, place)
        if first != place and len(_dependent(rows[[first, place]])):
            return np.array([first, place])
    return None


def _dependent(rows: Array) -> Array:
    """The places of some linearly dependent rows, in exact arithmetic; none if the rows are independent."""
    pivots, _ = eliminate([whole_numbers(column) for column in rows.T.tolist()])
    if len(pivots) == len(rows):
        return np.zeros(0, dtype=np.int64)
    last = next(place for place in range(len(rows)) if place not in pivots)
    exact = [[Fraction(value) for value in row] for row in rows[: last + 1].tolist()]
    weights = solve_null(exact, [Fraction(0)] * len(exact))
    assert weights is not None
    return np.flatnonzero([weight != 0 for weight in weights])


def _random_choices(n: int, size: int, random_state: int) -> Iterator[Any]:
    rng = np.random.default_rng(random_state)
    while True:
        yield rng.choice(n, size=size, replace=False, shuffle=False)


def _blocks(drawn: Iterator[Any], most: int, at_once: int) -> Iterator[Array]:
    for begin in range(0, most, at_once):
        yield np.array(list(islice(drawn, min(at_once, most - begin))))
