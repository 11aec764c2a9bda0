"""One label set: the steps that may settle it, from the cheapest on, and the checks before anything is claimed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.util import find_spec

import numpy as np

from longtail.arrays import Array
from longtail.audit.finding import ARGMAXABLE, UNARGMAXABLE, UNDETERMINED, Certificate
from longtail.audit.nearest import ZERO, Nearest, nearest_point
from longtail.audit.program import are_close, radius_of, solve_by_rows, solve_whole
from longtail.audit.proofs import (
    certificate_exactly,
    certificate_is_sure,
    certificate_residual,
    check_witness_exactly,
    check_witnesses,
)
from longtail.audit.system import Layer

# Below this the linear program, whose solver works to an absolute tolerance, has nothing to add.
_SOLVER_REACH = 1e-9
# Weights this much smaller than the largest may be rounding.
_DUST = 1e-12


@dataclass(frozen=True, eq=False)
class Finding:
    """The verdict on one label set with its proof, and the point of the system that a witness comes from."""

    verdict: int
    method: str
    radius: float = float("nan")
    radius_is_exact: bool = False
    witness: Array | None = None
    certificate: Certificate | None = None
    point: Array | None = None


@dataclass(frozen=True)
class Settings:
    """What `decide` may do: how much a certificate may leave, and whether proofs and radii must be exact."""

    tolerance: float
    exact: bool
    exact_radii: bool
    alternating: bool


def decide(layer: Layer, members: Array, known: Finding | None, guess: Array | None, settings: Settings) -> Finding:
    """Settle one label set.

    Parameters
    ----------
    layer : Layer
    members : bool array of shape (n_labels,)
    known : Finding or None
        Where a witness is known already, only its exact radius is looked for.
    guess : array of shape (width,) or None
        A point of the system that is nearly a witness.
    settings : Settings
    """
    signs = layer.signs(members[None, :])[0]
    if known is not None:
        return _with_exact_radius(layer, members, signs, known) if settings.exact_radii else known
    if layer.semantics == "sign":
        impossible = np.flatnonzero(layer.empty & members)
        if len(impossible):
            proof = Certificate(impossible[:1], np.ones(1), 0.0)
            return Finding(UNARGMAXABLE, "zero", 0.0, True, certificate=proof)
        if len(layer.rows) == 0:
            return Finding(ARGMAXABLE, "zero", witness=np.zeros(layer.n_features))
    latest = None
    for method in ("alternation", "nearest", "rows", "program"):
        attempt = _attempt(method, layer.rows, signs, latest, guess, settings)
        if attempt is None:
            continue
        finding = _judge(layer, members, signs, attempt, method, settings)
        if finding is not None:
            wanting = finding.verdict == ARGMAXABLE and settings.exact_radii
            return _with_exact_radius(layer, members, signs, finding) if wanting else finding
        latest = attempt
    return Finding(UNDETERMINED, "none")


def _attempt(
    method: str, rows: Array, signs: Array, latest: Nearest | None, guess: Array | None, settings: Settings
) -> Nearest | None:
    """A point to try as a witness, and rows with weights to try as a certificate."""
    if method == "alternation":
        turns = alternating_rows(signs, rows.shape[1] + 1) if settings.alternating else None
        return None if turns is None else _nearest_of(rows, signs, turns)
    if method == "nearest":
        return nearest_point(rows, signs, guess)
    # A solver's tolerance is coarser than what the nearest point has met already.
    if latest is None or latest.length < _SOLVER_REACH:
        return None
    has_rows = find_spec("highspy") is not None
    if has_rows != (method == "rows"):
        return None
    solution = solve_by_rows(rows, signs, latest.support, latest.point) if has_rows else solve_whole(rows, signs)
    if solution is None:
        return None
    # Its weights are right to that tolerance only; the nearest point of the rows they name is right to rounding.
    clean = _nearest_of(rows, signs, solution.support)
    return Nearest(solution.point, clean.support, clean.weights, solution.upper)


def _nearest_of(rows: Array, signs: Array, chosen: Array) -> Nearest:
    found = nearest_point(rows[chosen], signs[chosen])
    return Nearest(found.point, chosen[found.support], found.weights, found.length)


def alternating_rows(signs: Array, count: int) -> Array | None:
    """Rows, one out of each run of equal signs, spread over all runs; None where the runs are fewer than `count`."""
    borders = np.flatnonzero(np.diff(signs)) + 1
    runs = len(borders) + 1
    if runs < count:
        return None
    starts = np.concatenate([[0], borders])
    ends = np.concatenate([borders, [len(signs)]])
    middles = (starts + ends - 1) // 2
    # Runs taken must alternate: one or any odd number further along each time.
    spare = (runs - count) // 2
    skips = 2 * (np.arange(count) * spare // max(1, count - 1))
    return np.asarray(middles[np.arange(count) + skips])


def _judge(
    layer: Layer,
    members: Array,
    signs: Array,
    attempt: Nearest,
    method: str,
    settings: Settings,
) -> Finding | None:
    """The finding that the attempt proves, or None."""
    if attempt.length > ZERO:
        witness = as_witness(layer, members, signs, attempt.point, method, settings.exact)
        if witness is not None:
            return witness
    support, weights = _without_dust(layer.rows, signs, attempt)
    labels = layer.labels[support]
    kept = np.flatnonzero((labels >= 0) & (weights > 0))
    if len(kept) == 0:
        return None
    kept = kept[np.argsort(labels[kept])]
    labels, weights = labels[kept], weights[kept] / weights[kept].sum()
    residual = certificate_residual(layer, members, labels, weights)
    if not residual <= settings.tolerance:
        return None
    if settings.exact:
        if certificate_exactly(layer, members, labels, weights) is None:
            return None
    elif not certificate_is_sure(layer, members, labels, weights):
        return None
    return Finding(UNARGMAXABLE, method, 0.0, True, certificate=Certificate(labels, weights, residual))


def _without_dust(rows: Array, signs: Array, attempt: Nearest) -> tuple[Array, Array]:
    """Rows and weights less those whose weight is 0 but for rounding, where the others do without them."""
    heavy = attempt.weights > _DUST * attempt.weights.max(initial=0)
    if heavy.all():
        return attempt.support, attempt.weights
    support = attempt.support[heavy]
    system = np.column_stack([signs[support, None] * rows[support], np.ones(len(support))]).T
    target = np.zeros(len(system))
    target[-1] = 1
    weights = np.linalg.lstsq(system, target, rcond=None)[0]
    if (weights > 0).all() and np.linalg.norm(system @ weights - target) < _DUST:
        return support, weights
    return attempt.support, attempt.weights


def as_witness(layer: Layer, members: Array, signs: Array, point: Array, method: str, exact: bool) -> Finding | None:
    """The finding that a point of the system proves, or None where it does not give the label set for certain."""
    x = layer.to_inputs(point[None, :])
    right = bool(check_witnesses(layer, members[None, :], x)[0])
    if not right and exact:
        right = check_witness_exactly(layer, members, x[0])
    if not right:
        return None
    radius = max(0.0, radius_of(layer.rows, signs, point))
    return Finding(ARGMAXABLE, method, radius, witness=x[0], point=point)


def _with_exact_radius(layer: Layer, members: Array, signs: Array, finding: Finding) -> Finding:
    """The same verdict with the radius of the linear program, and its better witness, where that passes the checks."""
    assert finding.point is not None
    solution = solve_by_rows(layer.rows, signs, np.zeros(0, dtype=np.intp), finding.point)
    if solution is None:
        return finding
    better = as_witness(layer, members, signs, solution.point, finding.method, exact=False)
    if better is None or better.radius < finding.radius:
        better = finding
    return replace(better, radius_is_exact=are_close(better.radius, solution.upper))
