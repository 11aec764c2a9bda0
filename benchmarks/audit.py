"""Time of the audit against SciPy's ``linprog(method="highs")`` on the whole linear program, in the same run.

``python -m benchmarks.audit`` makes its own layers. Three comparisons of medians; the contestants take turns:

(a) 8,921 labels in 50 random dimensions, 15 labels in each set, no set in reach: at least 20 times as fast.
(b) 8,921 labels in the 161 dimensions of a truncated Fourier matrix, all sets in reach: at least 5 times as fast.
(c) 1,000 sets of a layer of 4,000 labels in 100 dimensions, half random, half given by inputs: under five minutes.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.timing import verdict
from longtail.arrays import Array
from longtail.audit import Audit, OutputLayer, System, audit, solve_whole
from longtail.parallel import count_cores

MANY, ACTIVE = 8_921, 15


@dataclass(frozen=True)
class Sizes:
    """Labels in (a) and (b); labels, dimensions and number of sets in (c)."""

    labels: int = MANY
    frequencies: int = 80
    many_labels: int = 4_000
    many_dimensions: int = 100
    many_sets: int = 1_000


def fourier(n_labels: int, frequencies: int) -> Array:
    """Columns 1, cos(jt) and sin(jt) for j up to `frequencies`, at equal steps of t."""
    angles = 2 * np.pi * np.outer(np.arange(n_labels), np.arange(1, frequencies + 1)) / n_labels
    return np.concatenate([np.ones((n_labels, 1)) / np.sqrt(2), np.cos(angles), np.sin(angles)], axis=1)


def sparse_sets(n_sets: int, n_labels: int, active: int, rng: np.random.Generator) -> Array:
    sets = np.zeros((n_sets, n_labels), dtype=np.int8)
    for row in sets:
        row[rng.choice(n_labels, active, replace=False)] = 1
    return sets


def against_linprog(title: str, W: Array, sets: Array, at_least: float) -> bool:
    """Time both on the same label sets, one after the other; whether verdicts agree and the ratio is reached."""
    system = System.of(OutputLayer.of(W))
    ours: list[float] = []
    theirs: list[float] = []
    agree = True
    for members in sets:
        start = time.perf_counter()
        found = audit(W, members[None, :], n_jobs=1)
        ours.append(time.perf_counter() - start)
        signs = np.where(members > 0, 1.0, -1.0)
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


def _indented(found: Audit) -> str:
    return "\n".join("  " + line for line in found.to_text().splitlines())


def main(arguments: Sequence[str] | None = None, sizes: Sizes | None = None) -> bool:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("a", "b", "c"), help="run one of the three comparisons")
    parser.add_argument("--repeat", type=int, default=5, help="label sets in (a)")
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
    return holds


if __name__ == "__main__":
    main()
