"""The point nearest to 0 in the convex hull of signed rows: a witness, or 0 with the weights of a certificate.

Wolfe's active-set method (1976) in the form of non-negative least squares (Lawson and Hanson, 1974), on a working set
of rows that grows by the most violated ones. It decides most label sets long before a simplex method would.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr_delete
from scipy.linalg.lapack import dtrtrs

from longtail.arrays import Array
from longtail.parallel import check_stop

# Rows added to the working set at a time.
_BATCH = 400
# The hull contains 0 if the nearest point is shorter than this; rows have length 1.
ZERO = 1e-15
# Rows of a mixture that have room at first.
_ROOM = 64
# Steps without progress before the search gives up: it has reached the limits of float64.
_PATIENCE = 50
# A column this close to the span of the others adds nothing in float64.
_DEPENDENT = 1e-13


@dataclass(frozen=True, eq=False)
class Nearest:
    """The nearest point found, the rows it is a mixture of, their weights, and its length."""

    point: Array
    support: Array
    weights: Array
    length: float


class _Mixture:
    """The weights of a few columns (row, 1) that come closest to (0, 1), by a QR factorisation kept up to date.

    The gap is what is left of (0, 1). Its last entry is positive, and minus its other entries is the nearest point of
    the affine hull, up to scale.
    """

    def __init__(self, width: int) -> None:
        # Beyond the rows in use, R is the identity, so that LAPACK can take the whole buffer. Most mixtures are of far
        # fewer rows than there are dimensions, so the buffers grow.
        room = min(_ROOM, width + 1)
        self._Q = np.zeros((width + 1, room), order="F")
        self._R = np.asfortranarray(np.eye(room))
        self.target = np.zeros(width + 1)
        self.target[-1] = 1
        self.gap = self.target.copy()
        self.support: list[int] = []
        self.weights = np.zeros(0)

    @property
    def length(self) -> float:
        """The length of the gap."""
        return math.sqrt(self.gap @ self.gap)

    def add(self, index: int, row: Array) -> bool:
        """Add a row; False if it depends on the others."""
        size = len(self.support)
        if size == len(self.target):
            return False
        if size == self._Q.shape[1]:
            self._grow(min(2 * size, len(self.target)))
        Q = self._Q[:, :size]
        column = np.empty(len(self.target))
        column[:-1] = row
        column[-1] = 1
        inside = column @ Q
        rest = column - Q @ inside
        again = rest @ Q
        rest -= Q @ again
        length = math.sqrt(rest @ rest)
        if length < _DEPENDENT:
            return False
        self._R[:size, size] = inside + again
        self._R[size, size] = length
        self._Q[:, size] = rest / length
        self.support.append(index)
        self.weights = np.append(self.weights, 0.0)
        return True

    def _grow(self, room: int) -> None:
        size = self._Q.shape[1]
        Q, R = self._Q, self._R
        self._Q = np.zeros((len(Q), room), order="F")
        self._R = np.asfortranarray(np.eye(room))
        self._Q[:, :size] = Q
        self._R[:size, :size] = R

    def drop(self, place: int) -> int:
        size = len(self.support)
        Q, R = qr_delete(self._Q[:, :size], self._R[:size, :size], place, which="col", check_finite=False)
        self._Q[:, : size - 1] = Q[:, : size - 1]
        self._R[: size - 1, : size - 1] = R[: size - 1, : size - 1]
        self._R[:, size - 1] = 0
        self._R[size - 1, size - 1] = 1
        self.weights = np.delete(self.weights, place)
        return self.support.pop(place)

    def settle(self) -> list[int]:
        """Move to the best weights that are all positive; return the rows that were dropped."""
        gone = []
        while self.support:
            size = len(self.support)
            goal = np.zeros(len(self._R))
            goal[:size] = self._Q[-1, :size]
            best = dtrtrs(self._R, goal)[0][:size]
            negative = np.flatnonzero(best <= 0)
            if len(negative) == 0:
                self.weights = best
                break
            falls = self.weights[negative] - best[negative]
            steps = self.weights[negative] / np.where(falls > 0, falls, 1.0)
            first = int(steps.argmin())
            self.weights = self.weights + steps[first] * (best - self.weights)
            gone.append(self.drop(int(negative[first])))
        Q = self._Q[:, : len(self.support)]
        self.gap = self.target - Q @ Q[-1]
        self.gap -= Q @ (self.gap @ Q)
        return gone


def nearest_point(rows: Array, signs: Array, start: Array | None = None, max_steps: int | None = None) -> Nearest:
    """Search the hull of ``signs[i] * rows[i]`` until its nearest point is 0 or is a witness.

    Parameters
    ----------
    rows : array of shape (n_rows, width)
        Of length 1.
    signs : array of shape (n_rows,)
    start : array of shape (width,) or None
        A guess at a witness; the search starts with the rows it violates most.
    max_steps : int or None
        Maximum number of rows added to the mixture.
    """
    n_rows, width = rows.shape
    if max_steps is None:
        max_steps = 40 * (width + 10)
    mixture = _Mixture(width)
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
        skipped = np.isin(pool, mixture.support)
        while True:
            check_stop()
            pull = pool_rows @ -mixture.gap[:-1]
            pull[skipped] = np.inf
            place = int(pull.argmin())
            # At the optimum, every pull is at least the last entry of the gap; half of that is enough for a witness.
            settled = mixture.length <= ZERO or pull[place] >= 0.5 * mixture.gap[-1]
            if settled or steps == max_steps or idle >= _PATIENCE:
                break
            steps += 1
            skipped[place] = True
            index = int(pool[place])
            if not mixture.add(index, pool_rows[place]):
                idle += 1
                continue
            for gone in mixture.settle():
                skipped[np.searchsorted(pool, gone)] = False
            idle = 0 if mixture.length < shortest * (1 - 1e-9) else idle + 1
            shortest = min(shortest, mixture.length)
        point = -mixture.gap[:-1]
        length = mixture.length
        finished = length <= ZERO or steps in (before, max_steps) or idle >= _PATIENCE
        if not finished:
            margins = signs * (rows @ point)
            finished = margins.min() > noise * length
        if finished:
            support = np.array(mixture.support, dtype=np.intp)
            return Nearest(point, support, mixture.weights, length)
