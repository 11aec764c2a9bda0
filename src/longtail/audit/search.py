"""Search for the proof of each verdict, cheapest steps first: an input that gets the set, or labels that rule it out.

Many sets share the first steps: inputs that are given or drawn, reflections, a perceptron. Then each set is decided by
itself: the nearest point, then linear programs. Every proof is checked before it becomes a finding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from longtail.arrays import Array
from longtail.audit.finding import ARGMAXABLE, NOT_KNOWN, UNARGMAXABLE, Certificate, Finding
from longtail.audit.label_sets import LabelSets
from longtail.audit.nearest import ZERO, Nearest, nearest_point
from longtail.audit.program import solve_by_rows, solve_whole
from longtail.audit.proofs import (
    certificate_exactly,
    certificate_is_sure,
    certificate_residual,
    check_witness_exactly,
    check_witnesses,
)
from longtail.audit.records import Records
from longtail.audit.screens import has_few_regions, match_inputs, perceptron, reflect, sample_inputs
from longtail.audit.system import System, dense_layer
from longtail.audit.winners import decide_classes
from longtail.estimator import OutputLayer
from longtail.files import PathName
from longtail.parallel import blas_threads, map_blocks, resolve_jobs, split
from longtail.progress import task

_SAMPLES = 256
# Fewer label sets than this share too little work.
_FEW = 16
# Sets of a block, and their signs.
_SETS_AT_ONCE = 64
_CELLS = 2**22
# In this many dimensions, sets may share one proof. Below, each set has a proof with its own labels.
_WIDE = 200
# The linear program works to an absolute tolerance and adds nothing below this radius.
_SOLVER_REACH = 1e-9
# Weights this much smaller than the largest may be rounding.
_DUST = 1e-12


@dataclass(frozen=True, eq=False)
class Search:
    """A search with the options of `longtail.audit.audit`."""

    candidates: Array | None = None
    alternating: bool = False
    tolerance: float = 1e-12
    exact: bool = False
    n_jobs: int | None = None
    random_state: int = 0
    resume: PathName | None = None

    def decide(
        self, layer: OutputLayer, sets: LabelSets, advance: Callable[[int], None] | None = None
    ) -> list[Finding]:
        """A finding for each label set; scores must be strictly on one side, whatever the layer's rule for ties.

        Blocks of sets are decided by threads, each with one thread of BLAS, so no finding depends on their number.
        """
        if advance is None:
            with task("auditing label sets", total=len(sets)) as report:
                return self.decide(layer, sets, report)
        layer = dense_layer(replace(layer, at_least=None))
        known: list[Finding | None] = [None] * len(sets)
        records = None if self.resume is None else Records(self.resume, layer, sets, self._options())
        jobs = resolve_jobs(self.n_jobs)
        singles = np.flatnonzero(np.diff(sets.members.indptr) == 1)
        with blas_threads(1):
            if layer.rule == "topk" and self.candidates is None and len(singles) >= _FEW:
                classes = sets.members.indices[sets.members.indptr[singles]]
                found = decide_classes(layer, classes, self.tolerance, jobs, advance, records)
                for place, finding in zip(singles.tolist(), found, strict=True):
                    is_proof = finding is None or finding.certificate is None or not self.exact
                    known[place] = finding if is_proof else None
            left = np.array([place for place, finding in enumerate(known) if finding is None], dtype=np.intp)
            if not len(left):
                return [NOT_KNOWN if finding is None else finding for finding in known]
            system = System.of(layer)
            drawn = None
            if has_few_regions(system):
                drawn = sample_inputs(system, _SAMPLES, np.random.default_rng(self.random_state))
            size = min(_SETS_AT_ONCE, max(1, _CELLS // layer.n_labels), max(_FEW, -(-len(left) // _FEW)))

            def settle(case: tuple[int, slice]) -> list[Finding | None]:
                number, block = case
                done = None if records is None else records.load("sets", number)
                if done is None:
                    done = self._decide_block(system, sets.dense(left[block]), drawn)
                    if records is not None:
                        records.save("sets", number, done)
                return done

            blocks = split(len(left), size)
            for block, done in zip(blocks, map_blocks(settle, enumerate(blocks), jobs, blas=False), strict=True):
                for place, finding in zip(left[block].tolist(), done, strict=True):
                    known[place] = finding
                advance(len(done))
        return [NOT_KNOWN if finding is None else finding for finding in known]

    def _options(self) -> dict[str, Any]:
        options = {name: getattr(self, name) for name in ("candidates", "alternating", "tolerance", "exact")}
        return {**options, "random_state": self.random_state, "highspy": find_spec("highspy") is not None}

    def _decide_block(self, system: System, members: Array, drawn: Array | None) -> list[Finding | None]:
        shared = len(members) >= _FEW
        known: list[Finding | None] = [None] * len(members)
        guesses = self._screen(system, members, drawn, known, shared) if len(system.rows) else None
        if shared and system.layer.rule == "predict" and system.rows.shape[1] >= _WIDE:
            self._rule_out_together(system, members, known)
        for place, row in enumerate(members):
            known[place] = self._decide_one(system, row, known[place], None if guesses is None else guesses[place])
        return known

    def _rule_out_together(self, system: System, members: Array, known: list[Finding | None]) -> None:
        """Look for labels that are in none of the sets left and cannot all be missing: one proof for every set."""
        left = np.flatnonzero([finding is None for finding in known])
        if len(left) < 2:
            return
        free = system.labels < 0
        free[~free] = ~members[left][:, system.labels[~free]].any(axis=0)
        chosen = np.flatnonzero(free)
        if len(chosen) <= system.rows.shape[1]:
            return
        signs = system.signs(members[left[:1]])[0]
        attempt = _nearest_of(system.rows, signs, chosen)
        finding = None if attempt.length > ZERO else self._judge(system, members[left[0]], signs, attempt, "nearest")
        for place in left.tolist() if finding is not None else ():
            known[place] = finding

    def _screen(
        self, system: System, members: Array, drawn: Array | None, known: list[Finding | None], shared: bool
    ) -> Array | None:
        """Note cheap witnesses in `known`, checked; the other sets may start from the points returned."""
        signs = system.signs(members)

        def note(places: Array, inputs: Array, method: str) -> None:
            right = check_witnesses(system.layer, members[places], inputs)
            for place, x in zip(places[right].tolist(), inputs[right], strict=True):
                known[place] = Finding(ARGMAXABLE, method, witness=np.array(x))

        def left() -> Array:
            return np.flatnonzero([finding is None for finding in known])

        for method, inputs in (("candidates", self.candidates), ("samples", drawn)):
            places = left()
            if inputs is not None and len(places):
                match = match_inputs(system.layer, members[places], inputs)
                places, match = places[match >= 0], match[match >= 0]
                note(places, inputs[match], method)
        places = left()
        places = places[members[places].sum(axis=1) == 1]
        if system.layer.rule == "topk" and len(places):
            inputs, wins = reflect(system.layer, members[places].argmax(axis=1))
            note(places[wins], inputs[wins], "reflection")
        places = left()
        # For a few sets, the nearest point takes no longer than the start of the perceptron.
        if not shared or len(places) == 0:
            return None
        guesses = np.zeros((len(members), system.rows.shape[1]))
        guesses[places], right = perceptron(system.rows, signs[places], system.gram)
        note(places[right], system.to_inputs(guesses[places[right]]), "perceptron")
        return guesses

    def _decide_one(self, system: System, members: Array, known: Finding | None, guess: Array | None = None) -> Finding:
        """Decide one label set; `known` may have a witness already, `guess` may be a point that is nearly one."""
        if known is not None:
            return known
        signs = system.signs(members[None, :])[0]
        impossible = np.flatnonzero(system.empty & members)
        if len(impossible):
            proof = Certificate(impossible[:1], np.ones(1), 0.0)
            return Finding(UNARGMAXABLE, "zero", certificate=proof)
        if len(system.rows) == 0:
            return Finding(ARGMAXABLE, "zero", witness=np.zeros(system.layer.n_inputs))
        latest = None
        for method in ("alternation", "nearest", "rows", "program"):
            attempt = self._attempt(method, system.rows, signs, latest, guess)
            if attempt is None:
                continue
            finding = self._judge(system, members, signs, attempt, method)
            if finding is not None:
                return finding
            latest = attempt
        return NOT_KNOWN

    def _attempt(
        self, method: str, rows: Array, signs: Array, latest: Nearest | None, guess: Array | None
    ) -> Nearest | None:
        """A point to try as a witness, and rows with weights to try as a certificate."""
        if method == "alternation":
            turns = _alternating_rows(signs, rows.shape[1] + 1) if self.alternating else None
            return None if turns is None else _nearest_of(rows, signs, turns)
        if method == "nearest":
            return nearest_point(rows, signs, guess)
        # The solver's tolerance is coarser than what the nearest point has reached already.
        if latest is None or latest.length < _SOLVER_REACH:
            return None
        has_rows = find_spec("highspy") is not None
        if has_rows != (method == "rows"):
            return None
        solution = solve_by_rows(rows, signs, latest.support, latest.point) if has_rows else solve_whole(rows, signs)
        if solution is None:
            return None
        # Its weights are right only to that tolerance; the nearest point of the same rows is right to rounding.
        clean = _nearest_of(rows, signs, solution.support)
        return Nearest(solution.point, clean.support, clean.weights, solution.upper)

    def _judge(self, system: System, members: Array, signs: Array, attempt: Nearest, method: str) -> Finding | None:
        """The finding that the attempt proves, or None."""
        if attempt.length > ZERO:
            witness = _as_witness(system, members, signs, attempt.point, method, self.exact)
            if witness is not None:
                return witness
        support, weights = _without_dust(system.rows, signs, attempt)
        labels = system.labels[support]
        kept = np.flatnonzero((labels >= 0) & (weights > 0))
        if len(kept) == 0:
            return None
        kept = kept[np.argsort(labels[kept])]
        labels, weights = labels[kept], weights[kept] / weights[kept].sum()
        proof = (system.layer, members, labels, weights)
        residual = certificate_residual(*proof)
        if not residual <= self.tolerance:
            return None
        stands = certificate_exactly(*proof) is not None if self.exact else certificate_is_sure(*proof)
        if not stands:
            return None
        return Finding(UNARGMAXABLE, method, certificate=Certificate(labels, weights, residual))


def _nearest_of(rows: Array, signs: Array, chosen: Array) -> Nearest:
    found = nearest_point(rows[chosen], signs[chosen])
    return Nearest(found.point, chosen[found.support], found.weights, found.length)


def _alternating_rows(signs: Array, count: int) -> Array | None:
    """One row of each run of equal signs, spread over all runs; None if there are fewer than `count` runs."""
    borders = np.flatnonzero(np.diff(signs)) + 1
    runs = len(borders) + 1
    if runs < count:
        return None
    starts = np.concatenate([[0], borders])
    ends = np.concatenate([borders, [len(signs)]])
    middles = (starts + ends - 1) // 2
    # The chosen runs must alternate, so each is an odd number of runs after the one before.
    spare = (runs - count) // 2
    skips = 2 * (np.arange(count) * spare // max(1, count - 1))
    return np.asarray(middles[np.arange(count) + skips])


def _without_dust(rows: Array, signs: Array, attempt: Nearest) -> tuple[Array, Array]:
    """Rows and weights without those whose weight is only rounding, if the others cancel without them."""
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


def _as_witness(
    system: System, members: Array, signs: Array, point: Array, method: str, exact: bool = False
) -> Finding | None:
    """The finding that a point of the system proves, or None if it does not get the label set for certain."""
    x = system.to_inputs(point[None, :])
    right = bool(check_witnesses(system.layer, members[None, :], x)[0])
    if not right and exact:
        right = check_witness_exactly(system.layer, members, x[0])
    if not right:
        return None
    return Finding(ARGMAXABLE, method, witness=x[0])
