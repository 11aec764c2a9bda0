"""The linear program of a label set: the largest r with s_i (u_i . z) >= r for every unit row, in the box |z| <= 1.

Always feasible (z = 0, r = 0). Its row duals are a certificate where r is 0, and r is the radius where it is not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from longtail.audit.layer import Array


@dataclass(frozen=True, eq=False)
class Solution:
    """A point, its radius as the solver gives it, and the weights of the rows that bind."""

    point: Array
    radius: float
    support: Array
    weights: Array


def solve_whole(rows: Array, signs: Array) -> Solution | None:
    """Solve with every row at once; None where the solver gives nothing to check."""
    n_rows, width = rows.shape
    signed = np.concatenate([-signs[:, None] * rows, np.ones((n_rows, 1))], axis=1)
    cost = np.zeros(width + 1)
    cost[-1] = -1
    found = linprog(
        cost,
        A_ub=signed,
        b_ub=np.zeros(n_rows),
        bounds=[(-1, 1)] * width + [(0, None)],
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if found.x is None:
        return None
    duals = np.maximum(-found.ineqlin.marginals, 0)
    support = np.flatnonzero(duals)
    return Solution(found.x[:-1], float(found.x[-1]), support, duals[support])
