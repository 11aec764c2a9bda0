"""The point nearest to 0 in the convex hull of signed rows: it is a witness, or it is 0 and its weights certify.

Wolfe's active-set method (1976) in the form of non-negative least squares (Lawson and Hanson, 1974), on a working set
of rows that grows by those most violated. It settles most label sets long before a simplex method would.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr_delete, solve_triangular

from longtail.audit.layer import Array

# Rows added to the working set at a time.
_BATCH = 400
# The hull meets 0 where the nearest point is shorter than this, rows having length 1.
_ZERO = 1e-15
# Steps without progress before the search gives up: it has met the limits of float64.
_PATIENCE = 50


@dataclass(frozen=True, eq=False)
class Nearest:
    """The nearest point found, the rows it is a mixture of, their weights, and how long it is."""

    point: Array
    support: Array
    weights: Array
    length: float


class _Mixture:
    """Weights of a few columns (row, 1) that best reach (0, 1), by a QR factorisation kept up to date.

    What is left of (0, 1) is the gap: its last entry is positive, and minus the others is the nearest point of the
    affine hull up to scale.
    """

    def __init__(self, width: int) -> None:
        self.target = np.zeros(width + 1)
        self.target[-1] = 1
        self.gap = self.target.copy()
        self.Q = np.zeros((width + 1, 0))
        self.R = np.zeros((0, 0))
        self.support: list[int] = []
        self.weights = np.zeros(0)

    def add(self, index: int, row: Array) -> bool:
        """Take a row in; False where it depends on those already there."""
        column = np.append(row, 1.0)
        inside = self.Q.T @ column
        rest = column - self.Q @ inside
        again = self.Q.T @ rest
        rest -= self.Q @ again
        length = float(np.linalg.norm(rest))
        if length < 1e-13:
            return False
        size = len(self.support)
        R = np.zeros((size + 1, size + 1))
        R[:size, :size] = self.R
        R[:size, size] = inside + again
        R[size, size] = length
        self.R = R
        self.Q = np.column_stack([self.Q, rest / length])
        self.support.append(index)
        self.weights = np.append(self.weights, 0.0)
        return True

    def drop(self, place: int) -> int:
        size = len(self.support) - 1
        Q, R = qr_delete(self.Q, self.R, place, which="col", check_finite=False)
        self.Q, self.R = np.asfortranarray(Q[:, :size]), R[:size, :size]
        self.weights = np.delete(self.weights, place)
        return self.support.pop(place)

    def settle(self) -> list[int]:
        """Move to the best weights that are all positive; the rows that had to go."""
        gone = []
        while self.support:
            best = solve_triangular(self.R, self.Q[-1], check_finite=False)
            negative = np.flatnonzero(best <= 0)
            if len(negative) == 0:
                self.weights = best
                break
            falls = self.weights[negative] - best[negative]
            steps = self.weights[negative] / np.where(falls > 0, falls, 1.0)
            first = int(np.argmin(steps))
            self.weights = self.weights + steps[first] * (best - self.weights)
            gone.append(self.drop(int(negative[first])))
        self.gap = self.target - self.Q @ self.Q[-1]
        self.gap -= self.Q @ (self.Q.T @ self.gap)
        return gone


def nearest_point(rows: Array, signs: Array, start: Array | None = None, max_steps: int | None = None) -> Nearest:
    """Search the hull of ``signs[i] * rows[i]`` until its nearest point is 0 or has all rows on its side.

    Parameters
    ----------
    rows : array of shape (n_rows, width)
        Of length 1.
    signs : array of shape (n_rows,)
    start : array of shape (width,) or None
        A guess at a witness: the rows it violates most are the first to be looked at.
    max_steps : int or None
        Rows taken into the mixture before giving up.
    """
    n_rows, width = rows.shape
    if max_steps is None:
        max_steps = 40 * (width + 10)
    mixture = _Mixture(width)
    chosen = np.zeros(n_rows, dtype=bool)
    margins = signs * (rows @ (signs @ rows if start is None else start))
    steps, idle = 0, 0
    shortest = np.inf
    noise = (width + 8) * float(np.finfo(np.float64).eps)
    while True:
        before = steps
        batch = min(_BATCH, n_rows)
        worst = np.argpartition(margins, batch - 1)[:batch]
        pool = np.union1d(worst, np.array(mixture.support, dtype=np.intp))
        pool_rows = rows[pool] * signs[pool, None]
        skipped = chosen[pool]
        while True:
            length = float(np.linalg.norm(mixture.gap))
            pull = pool_rows @ -mixture.gap[:-1]
            pull[skipped] = np.inf
            place = int(np.argmin(pull))
            # At the optimum every pull is at least the last entry of the gap; half of it is enough for a witness.
            if length <= _ZERO or pull[place] >= 0.5 * mixture.gap[-1] or steps == max_steps or idle >= _PATIENCE:
                break
            steps += 1
            skipped[place] = True
            index = int(pool[place])
            if not mixture.add(index, pool_rows[place]):
                idle += 1
                continue
            chosen[index] = True
            for gone in mixture.settle():
                chosen[gone] = False
                skipped[np.searchsorted(pool, gone)] = False
            reached = float(np.linalg.norm(mixture.gap))
            idle = 0 if reached < shortest * (1 - 1e-9) else idle + 1
            shortest = min(shortest, reached)
        point = -mixture.gap[:-1]
        length = float(np.linalg.norm(mixture.gap))
        margins = signs * (rows @ point)
        stuck = steps in (before, max_steps) or idle >= _PATIENCE
        if stuck or length <= _ZERO or margins.min() > noise * length:
            support = np.array(mixture.support, dtype=np.intp)
            return Nearest(point, support, mixture.weights, length)
