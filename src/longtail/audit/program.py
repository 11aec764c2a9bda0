"""The linear program of a label set: the largest r with s_i (u_i . z) >= r for every unit row, in the box |z| <= 1.

It is always feasible (z = 0, r = 0). Its value is the radius. Non-negative weights of sum 1 mix the signed rows into
one. By strong duality, the value is also the smallest sum of absolute values of such a mixture. The dual solution has
its weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linprog

from longtail.arrays import Array
from longtail.errors import Unavailable
from longtail.parallel import check_stop

# Rows added at a time: fewer rows mean more rounds, more rows mean larger programs.
_BATCH = 100
_TOLERANCE = 1e-10
# The box is widened until the radius is about 1, because the solver's tolerance is absolute; it fails in wider boxes.
_WIDEST = 1e5


@dataclass(frozen=True, eq=False)
class Solution:
    """A point of the box, the binding rows with their weights, and bounds on the radius.

    The point has the radius `lower`; the weights prove that no radius is larger than `upper`.
    """

    point: Array
    support: Array
    weights: Array
    lower: float
    upper: float


def require_highspy() -> Any:
    """The package highspy, whose linear programs can grow; raises `Unavailable` if it is not installed."""
    try:
        import highspy
    except ImportError:
        raise Unavailable(
            "exact radii need the package highspy, which is not installed; "
            "install it with: python -m pip install 'longtail[audit]'"
        ) from None
    return highspy


def new_program(low: Array, high: Array) -> Any:
    """A linear program to minimize, with variables between bounds and no rows yet; needs highspy."""
    highspy = require_highspy()
    program = highspy.Highs()
    for option, value in (
        ("output_flag", False),
        ("threads", 1),
        ("presolve", "off"),
        ("primal_feasibility_tolerance", _TOLERANCE),
        ("dual_feasibility_tolerance", _TOLERANCE),
        ("small_matrix_value", 1e-12),  # the least it takes: smaller entries are dropped
    ):
        program.setOptionValue(option, value)
    infinity = highspy.kHighsInf
    program.addVars(len(low), np.clip(low, -infinity, infinity), np.clip(high, -infinity, infinity))
    return program


def are_close(lower: float, upper: float) -> bool:
    """Whether two bounds on a radius are equal up to rounding, so that either is the radius."""
    return upper - lower <= 1e-6 * upper + 1e-14


def radius_of(rows: Array, signs: Array, point: Array) -> float:
    """The smallest margin of a point scaled to touch the box: negative if some row is on the wrong side."""
    largest = float(np.abs(point).max())
    return float((signs * (rows @ point)).min()) / largest if largest > 0 else 0.0


def solve_by_rows(rows: Array, signs: Array, start: Array, point: Array) -> Solution | None:
    """Solve the program on a few rows, add the most violated rows, and continue from the last solution.

    Parameters
    ----------
    rows, signs : arrays of shape (n_rows, width) and (n_rows,)
    start : array of int
        Rows to start with.
    point : array of shape (width,)
        The best point known; the rows nearest to it are added to the start.

    Returns
    -------
    Solution or None
        None if the solver returns nothing that can be checked.
    """
    highspy = require_highspy()
    n_rows, width = rows.shape
    known = radius_of(rows, signs, point)
    box = float(np.clip(1 / known, 1, _WIDEST)) if known > 0 else 1.0
    program = new_program(np.append(np.full(width, -box), 0.0), np.append(np.full(width, box), np.inf))
    program.changeColCost(width, -1.0)
    taken = np.zeros(n_rows, dtype=bool)
    fresh = np.union1d(start, smallest(signs * (rows @ point), 2 * width))
    order: list[Array] = []
    best = None
    while True:
        check_stop()
        taken[fresh] = True
        order.append(fresh)
        _add_rows(program, rows[fresh] * signs[fresh, None], highspy.kHighsInf)
        program.run()
        found = program.getSolution()
        values, duals = np.array(found.col_value), np.array(found.row_dual)
        used = np.concatenate(order)
        if len(values) != width + 1 or len(duals) != len(used) or not np.isfinite(values).all():
            return best
        best = _solution(rows, signs, values[:-1], used, np.abs(duals), box)
        margins = signs * (rows @ values[:-1])
        behind = margins - values[-1]
        behind[taken] = np.inf
        fresh = smallest(behind, _BATCH)
        fresh = fresh[behind[fresh] < -_TOLERANCE]
        if are_close(best.lower, best.upper) or len(fresh) == 0 or best.upper <= 1e-15:
            return best


def solve_whole(rows: Array, signs: Array) -> Solution | None:
    """Solve with every row at once, with SciPy; None if the solver returns nothing that can be checked."""
    n_rows, width = rows.shape
    found = linprog(
        np.append(np.zeros(width), -1.0),
        A_ub=np.concatenate([-signs[:, None] * rows, np.ones((n_rows, 1))], axis=1),
        b_ub=np.zeros(n_rows),
        bounds=[(-1, 1)] * width + [(0, None)],
        method="highs",
        options={"primal_feasibility_tolerance": _TOLERANCE, "dual_feasibility_tolerance": _TOLERANCE},
    )
    if found.x is None:
        return None
    return _solution(rows, signs, found.x[:-1], np.arange(n_rows), np.maximum(-found.ineqlin.marginals, 0), 1.0)


def _solution(rows: Array, signs: Array, point: Array, used: Array, duals: Array, box: float) -> Solution:
    binding = np.flatnonzero(duals > 0)
    support, weights = used[binding], duals[binding] / (duals[binding].sum() or 1.0)
    upper = _left(rows, signs, support, weights)
    # The solver's weights are right to its tolerance. At a vertex they solve a square system, which gives them to
    # rounding: the rows cancel in the coordinates off the sides of the box, and one row more than these is binding.
    away = np.flatnonzero(np.abs(point) < box * (1 - 1e-9))
    if len(support) > len(away):
        heaviest = np.sort(np.argsort(-weights, kind="stable")[: len(away) + 1])
        signed = signs[support[heaviest], None] * rows[np.ix_(support[heaviest], away)]
        system = np.vstack([signed.T, np.ones(len(heaviest))])
        sharper = np.linalg.lstsq(system, np.append(np.zeros(len(away)), 1.0), rcond=None)[0]
        sharper = np.maximum(sharper, 0.0)
        least = _left(rows, signs, support[heaviest], sharper / (sharper.sum() or 1.0))
        if least < upper:
            support, weights, upper = support[heaviest], sharper / sharper.sum(), least
    return Solution(point, support, weights, radius_of(rows, signs, point), upper)


def _left(rows: Array, signs: Array, support: Array, weights: Array) -> float:
    """What the weighted rows leave uncancelled; infinity if all weights are 0."""
    if not weights.any():
        return float("inf")
    return float(np.abs((weights * signs[support]) @ rows[support]).sum())


def smallest(values: Array, count: int) -> Array:
    """The places of the `count` smallest values, in ascending order of places."""
    if count >= len(values):
        return np.arange(len(values))
    return np.sort(np.argpartition(values, count)[:count])


def _add_rows(program: Any, signed: Array, infinity: float) -> None:
    count, width = signed.shape
    values = np.concatenate([signed, np.full((count, 1), -1.0)], axis=1).ravel()
    starts = np.arange(count, dtype=np.int32) * (width + 1)
    indices = np.tile(np.arange(width + 1, dtype=np.int32), count)
    program.addRows(count, np.zeros(count), np.full(count, infinity), len(values), starts, indices, values)
