"""NumPy twin of the coordinate descent that represents labels as sparse combinations of others."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from longtail.arrays import Array
from longtail.parallel import check_stop

_FEWEST_JOINING = 16
_INNER_SHARE = 0.2
_SWEEPS_BETWEEN_LEAPS = 20
_MOST_LEAPS = 16
_RIDGE = 1e-10
_NOTHING_LEFT = 1e-12


def represent_labels(
    indptr: Array,
    indices: Array,
    data: Array,
    target_indptr: Array,
    target_indices: Array,
    target_data: Array,
    squares: Array,
    excluded: Array,
    alpha: float,
    tolerance: float,
    max_sweeps: int,
    counts: Array,
    sweeps: Array,
    norms: Array,
    objectives: Array,
    bounds: Array,
) -> tuple[Array, Array]:
    """Minimise |z|_1 + alpha |y - A z|_2 for each label y, to a relative duality gap of `tolerance`.

    The first three arrays are A'A, the next three A'y with one row per label; `squares` are y'y, and `excluded` is the
    column of A that a label may not use, or -1. Returns the columns of A in use and their coefficients, label by label.
    The last five arrays receive, for each label, the number of columns in use, the sweeps, the norm of the residual,
    the objective and a lower bound on the optimum.
    """
    n_labels = len(indptr) - 1
    gram = sparse.csr_array((data, indices, indptr), shape=(n_labels, n_labels))
    labels, coefficients = [np.zeros(0, dtype=np.int32)], [np.zeros(0)]
    for i, square in enumerate(squares.tolist()):
        entries = slice(target_indptr[i], target_indptr[i + 1])
        targets = np.zeros(n_labels)
        targets[target_indices[entries]] = target_data[entries]
        representation = _Representation(gram, targets, square, int(excluded[i]), alpha, tolerance)
        representation.solve(max_sweeps)
        used = np.flatnonzero(np.abs(representation.best) > _NOTHING_LEFT)
        labels.append(used.astype(np.int32))
        coefficients.append(representation.best[used])
        counts[i], sweeps[i] = len(used), representation.sweeps
        norms[i], objectives[i] = representation.norm, representation.objective
        bounds[i] = representation.bound
    return np.concatenate(labels), np.concatenate(coefficients)


class _Representation:
    """The problem of one label."""

    def __init__(self, gram: Any, targets: Array, square: float, excluded: int, alpha: float, tolerance: float) -> None:
        self.gram, self.targets, self.square = gram, targets, square
        self.alpha, self.tolerance = alpha, tolerance
        self.allowed = np.arange(len(targets)) != excluded
        self.z = np.zeros(len(targets))
        self.best = self.z
        self.products = targets.copy()
        self.members = np.zeros(0, dtype=np.int64)
        self.sweeps = 0
        self.norm = math.sqrt(square)
        self.objective = alpha * self.norm
        strongest = self._strongest()
        self.bound = min(self.objective, square / strongest) if strongest > 0 else self.objective
        self.floor = tolerance * self.bound / alpha

    def solve(self, max_sweeps: int) -> None:
        while self.sweeps < max_sweeps and self.objective - self.bound > self.tolerance * self.objective:
            self._extend()
            self._descend(_INNER_SHARE * (self.objective - self.bound), max_sweeps)
            self.products = self.targets - self.gram @ self.z
            norm, strongest = self._norm(self.products), self._strongest()
            self.bound = max(self.bound, self._lower_bound(norm, strongest))
            objective = float(np.abs(self.z).sum()) + self.alpha * norm
            if objective < self.objective:
                self.norm, self.objective, self.best = norm, objective, self.z.copy()

    def _strongest(self) -> float:
        return float(np.abs(self.products[self.allowed]).max(initial=0.0))

    def _norm(self, products: Array) -> float:
        return math.sqrt(max(self.square - float(self.z @ (self.targets + products)), 0.0))

    def _lower_bound(self, norm: float, strongest: float) -> float:
        with_target = self.square - float(self.z @ self.targets)
        return with_target / max(norm / self.alpha, self.floor / self.alpha, strongest)

    def _extend(self) -> None:
        outside = self.allowed.copy()
        outside[self.members] = False
        strength = np.abs(self.products)
        broken = np.flatnonzero(outside & (self.alpha * strength > max(self._norm(self.products), self.floor)))
        most = max(_FEWEST_JOINING, int(np.count_nonzero(self.z)))
        self.members = np.concatenate([self.members, broken[np.argsort(-strength[broken], kind="stable")[:most]]])

    def _descend(self, gap: float, max_sweeps: int) -> None:
        done = self.sweeps
        members, targets = self.members, self.targets[self.members]
        gram = self.gram[members][:, members].toarray()
        z, products = self.z[members], self.products[members]
        while self.sweeps < max_sweeps:
            left = max(self.square - float(z @ (targets + products)), 0.0)
            for i in range(len(members)):
                check_stop()
                step = self._minimiser(float(z[i]), float(products[i]), float(gram[i, i]), left) - z[i]
                if step:
                    left = max(left - step * (2 * products[i] - step * gram[i, i]), 0.0)
                    z[i] += step
                    products -= step * gram[i]
            self.sweeps += 1
            if (self.sweeps - done) % max(_SWEEPS_BETWEEN_LEAPS, int(np.count_nonzero(z)) // 3) == 0:
                for _ in range(_MOST_LEAPS):
                    if not self._leap(gram, targets, z, products):
                        break
            norm = math.sqrt(max(self.square - float(z @ (targets + products)), 0.0))
            self.z[members] = z
            reached = self._lower_bound(norm, float(np.abs(products).max(initial=0.0)))
            if np.abs(z).sum() + self.alpha * norm - reached <= gap:
                break

    def _minimiser(self, z: float, product: float, square: float, left: float) -> float:
        slope = self.alpha**2 * square - 1
        if slope <= 0:
            return 0.0
        centre, rest = z + product / square, max(left - product**2 / square, 0.0)
        shrink = math.sqrt(rest / (square * slope))
        if rest + square * shrink**2 < self.floor**2:
            shrink = self.floor / (self.alpha * square)
        return math.copysign(max(abs(centre) - shrink, 0.0), centre)

    def _leap(self, gram: Array, targets: Array, z: Array, products: Array) -> bool:
        """Move all nonzero coefficients at once, in place; return whether one of them became 0."""
        used = np.flatnonzero(z)
        squares = gram[np.ix_(used, used)]
        norm = math.sqrt(max(self.square - float(z @ (targets + products)), 0.0))
        downhill = products[used] - np.sign(z[used]) * max(norm, self.floor) / self.alpha
        ridge = _RIDGE * squares.diagonal().max(initial=0.0)
        direction = np.linalg.solve(squares + ridge * np.eye(len(used)), downhill)
        slope, curvature = float(downhill @ direction), float(direction @ squares @ direction)
        if not slope > 0:
            return False
        reach = slope / curvature if curvature > 0 else math.inf
        with np.errstate(divide="ignore"):
            until = -z[used] / direction
        until[~(until > 0)] = math.inf
        first = int(np.argmin(until))
        crossed = bool(until[first] < reach)
        reach = min(reach, float(until[first]))
        if not math.isfinite(reach):
            return False
        step = reach * direction
        if crossed:
            step[first] = -z[used[first]]
        z[used] += step
        products -= step @ gram[used]
        return crossed
