"""Time of the audit against SciPy's ``linprog(method="highs")`` on the whole linear program, in the same run.

``python -m benchmarks.audit`` makes its own layers. The contestants take turns, and times are medians:

(a) 8,921 labels in 50 random dimensions, 15 labels in each set, no set in reach: at least 20 times as fast.
(b) 8,921 labels in the 161 dimensions of a truncated Fourier matrix, all sets in reach: at least 5 times as fast.
(c) 1,000 sets of a layer of 4,000 labels in 100 dimensions, half random, half given by inputs: under five minutes.
(d) Every mode, on a layer like a trained one: signs, thresholds, a bias, the first k, a softmax: at least 20 times.
(e) 1,000 sets of a layer of 20,000 labels in 768 dimensions, with a bias and without: under ten minutes each.
(f) Each class of a softmax of 50,000 classes in 1,024 dimensions: under thirty minutes.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.child import peak_memory
from benchmarks.timing import verdict
from longtail.arrays import Array
from longtail.audit import Audit, LabelSets, OutputLayer, System, audit, audit_classes, solve_whole
from longtail.memory import format_bytes
from longtail.parallel import count_cores

MANY, ACTIVE = 8_921, 15
_CHECKED = 2_000  # proofs of a large audit


@dataclass(frozen=True)
class Sizes:
    """Labels in (a) and (b); labels, dimensions and number of sets in (c), (e) and (f); labels, dimensions in (d)."""

    labels: int = MANY
    frequencies: int = 80
    many_labels: int = 4_000
    many_dimensions: int = 100
    many_sets: int = 1_000
    mode_labels: int = MANY
    mode_dimensions: int = 50
    large_labels: int = 20_000
    large_dimensions: int = 768
    classes: int = 50_000
    class_dimensions: int = 1_024


def fourier(n_labels: int, frequencies: int) -> Array:
    """Columns 1, cos(jt) and sin(jt) for j up to `frequencies`, at equal steps of t."""
    angles = 2 * np.pi * np.outer(np.arange(n_labels), np.arange(1, frequencies + 1)) / n_labels
    return np.concatenate([np.ones((n_labels, 1)) / np.sqrt(2), np.cos(angles), np.sin(angles)], axis=1)


def sparse_sets(n_sets: int, n_labels: int, active: int, rng: np.random.Generator) -> Array:
    sets = np.zeros((n_sets, n_labels), dtype=np.int8)
    for row in sets:
        row[rng.choice(n_labels, active, replace=False)] = 1
    return sets


def trained_like(n_labels: int, width: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Weights in groups of about 20 similar labels, of lengths that vary, and a negative bias for each label."""
    centres = rng.normal(size=(max(2, n_labels // 20), width))
    weights = centres[rng.integers(0, len(centres), n_labels)] + 0.7 * rng.normal(size=(n_labels, width))
    weights *= np.exp(0.4 * rng.normal(size=(n_labels, 1))) / np.sqrt(width)
    return weights, -1 - 0.5 * np.abs(rng.normal(size=n_labels))


def against_linprog(title: str, W: Array, sets: Array, at_least: float, **mode: Any) -> bool:
    """Time both on the same label sets, one after the other; whether verdicts agree and the ratio is reached."""
    system = System.of(OutputLayer.of(W, **mode))
    ours: list[float] = []
    theirs: list[float] = []
    agree = True
    for members in sets:
        start = time.perf_counter()
        found = audit(W, members[None, :], **mode, n_jobs=1)
        ours.append(time.perf_counter() - start)
        signs = system.signs(members[None, :] > 0)[0]
        start = time.perf_counter()
        solution = solve_whole(system.rows, signs)
        theirs.append(time.perf_counter() - start)
        agree &= solution is not None and found.verdicts[0] == (1 if solution.lower > 0 else -1)
        agree &= bool(found.recheck().all())
    ratio = statistics.median(theirs) / statistics.median(ours)
    print(f"{title}; {len(sets)} label sets")
    print(f"  audit    {statistics.median(ours):9.3f} s ({min(ours):.3f} to {max(ours):.3f}) {found.names[0]}")
    print(f"  linprog  {statistics.median(theirs):9.3f} s ({min(theirs):.3f} to {max(theirs):.3f})")
    print(f"  same verdicts, proofs hold: {verdict(agree)}")
    print(f"  ratio    {ratio:9.1f}   at least {at_least:g}: {verdict(ratio >= at_least)}", flush=True)
    return agree and ratio >= at_least


def many_sets(sizes: Sizes, seed: int, minutes: float = 5) -> bool:
    """Half of the sets are random; the others are the labels that a layer with a bias gives to random inputs."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(sizes.many_labels, sizes.many_dimensions))
    bias = np.full(sizes.many_labels, -2.8 * np.sqrt(sizes.many_dimensions))
    inputs = rng.normal(size=(sizes.many_sets // 2, sizes.many_dimensions))
    given = (inputs @ W.T + bias > 0).astype(np.int8)
    drawn = sparse_sets(sizes.many_sets - len(given), sizes.many_labels, ACTIVE, rng)
    start = time.perf_counter()
    found = audit(W, np.concatenate([given, drawn]), bias)
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    stands = bool(found.recheck().all())
    print(f"(c) {sizes.many_labels:,} labels, {sizes.many_dimensions} dimensions and a bias, {count_cores()} cores")
    print(_indented(found))
    print(f"  proofs hold: {verdict(stands)}, checked in {time.perf_counter() - start:.1f} s")
    print(f"  audit    {seconds:9.1f} s   under {minutes:g} minutes: {verdict(seconds < 60 * minutes)}", flush=True)
    return stands and seconds < 60 * minutes


def every_mode(sizes: Sizes, repeat: int, seed: int) -> bool:
    """Compare with ``linprog`` in every mode: half of the sets are given by inputs, the others random."""
    rng = np.random.default_rng(seed)
    n, d = sizes.mode_labels, sizes.mode_dimensions
    W, bias = trained_like(n, d, rng)
    modes: dict[str, dict[str, Any]] = {
        "signs": {},
        "thresholds": {"threshold": 2.0},
        "a bias": {"bias": bias},
        "the first 5": {"bias": bias, "rule": "topk"},
        "a softmax": {"bias": bias, "rule": "topk"},
    }
    holds = True
    for name, mode in modes.items():
        drawn = sparse_sets(repeat - repeat // 2, n, 1 if name == "a softmax" else 5, rng)
        scores = 2 * rng.normal(size=(repeat // 2, d)) @ W.T + mode.get("bias", 0.0)
        if mode.get("rule") == "topk":
            k = int(drawn[0].sum())
            given = scores >= np.sort(scores, axis=1)[:, [-k]]
        else:
            given = scores > mode.get("threshold", 0.0)
        sets = np.concatenate([drawn, given.astype(np.int8)])
        holds &= against_linprog(f"(d) {n:,} labels, {d} dimensions, {name}", W, sets, 20, **mode)
    return holds


def large_layer(sizes: Sizes, seed: int, minutes: float = 10) -> bool:
    """Random sets of 1 to 8 labels of a layer like a trained one, with a bias and without."""
    rng = np.random.default_rng(seed)
    n, d = sizes.large_labels, sizes.large_dimensions
    W, bias = trained_like(n, d, rng)
    sets = [rng.choice(n, size, replace=False).tolist() for size in rng.integers(1, 9, sizes.many_sets)]
    holds = True
    for name, offsets in (("with a bias", bias), ("without a bias", None)):
        holds &= _timed(f"(e) {n:,} labels, {d} dimensions, {name}", minutes, lambda b=offsets: audit(W, sets, b))
    return holds


def large_softmax(sizes: Sizes, seed: int, minutes: float = 30) -> bool:
    """Each class of a softmax like a trained one; one class in 10,000 is the mean of others and never wins."""
    rng = np.random.default_rng(seed)
    n, d = sizes.classes, sizes.class_dimensions
    W, bias = trained_like(n, d, rng)
    never = np.arange(0, n, 10_000)
    for label in never:
        others = rng.choice(np.setdiff1d(np.arange(n), never), 5, replace=False)
        W[label], bias[label] = W[others].mean(axis=0), bias[others].mean() - 0.1
    return _timed(f"(f) softmax of {n:,} classes, {d} dimensions", minutes, lambda: audit_classes(W, bias))


def _timed(title: str, minutes: float, run: Callable[[], Audit]) -> bool:
    start = time.perf_counter()
    found = run()
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    few = np.linspace(0, len(found) - 1, min(len(found), _CHECKED)).astype(np.intp)
    stands = _part(found, few).recheck() == (found.verdicts[few] != 0)
    print(f"{title}, {count_cores()} cores")
    print(_indented(found))
    checked = f"{len(few):,} proofs checked in {time.perf_counter() - start:.1f} s"
    print(f"  proofs hold: {verdict(bool(stands.all()))}, {checked}")
    print(f"  peak memory {format_bytes(peak_memory())}")
    print(f"  audit    {seconds:9.1f} s   under {minutes:g} minutes: {verdict(seconds < 60 * minutes)}", flush=True)
    return bool(stands.all()) and seconds < 60 * minutes


def _part(found: Audit, places: Array) -> Audit:
    """Some of the sets of an audit that keeps witnesses."""
    assert found.witnesses is not None
    return replace(
        found,
        sets=LabelSets.each(found.sets.members[places]),
        verdicts=found.verdicts[places],
        witnesses=found.witnesses[places],
        certificates=tuple(found.certificates[place] for place in places.tolist()),
    )


def _indented(found: Audit) -> str:
    return "\n".join("  " + line for line in found.to_text().splitlines())


def main(arguments: Sequence[str] | None = None, sizes: Sizes | None = None) -> bool:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=tuple("abcdef"), help="run one of the comparisons")
    parser.add_argument("--repeat", type=int, default=5, help="label sets in (a)")
    parser.add_argument("--repeat-modes", type=int, default=4, help="label sets of each mode in (d)")
    parser.add_argument("--repeat-large", type=int, default=1, help="label sets in (b), up to a minute each")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    sizes = Sizes() if sizes is None else sizes
    rng = np.random.default_rng(options.seed)
    n, k = sizes.labels, sizes.frequencies
    print(f"{count_cores()} cores")
    holds = True
    if options.only in (None, "a"):
        W = rng.normal(size=(n, 50))
        sets = sparse_sets(options.repeat, n, ACTIVE, rng)
        holds &= against_linprog(f"(a) {n:,} labels, 50 random dimensions, out of reach", W, sets, 20)
    if options.only in (None, "b"):
        sets = sparse_sets(options.repeat_large, n, min(ACTIVE, k), rng)
        holds &= against_linprog(f"(b) {n:,} labels, {2 * k + 1} Fourier dimensions, in reach", fourier(n, k), sets, 5)
    if options.only in (None, "c"):
        holds &= many_sets(sizes, options.seed)
    if options.only in (None, "d"):
        holds &= every_mode(sizes, options.repeat_modes, options.seed)
    if options.only in (None, "e"):
        holds &= large_layer(sizes, options.seed)
    if options.only in (None, "f"):
        holds &= large_softmax(sizes, options.seed)
    return holds


if __name__ == "__main__":
    main()
