"""Appendix F.2: are the regions of sines and cosines smaller than those of random weights of the same width?"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from longtail.arrays import Array
from longtail.audit import ARGMAXABLE, UNARGMAXABLE, Audit, audit, dft_matrix, random_members
from longtail.progress import task
from longtail_papers.common import Claim, Column, Context, Section, Table
from longtail_papers.sigmoid_bottleneck.checks import PAPER_UNITS, Proofs, proof_row
from longtail_papers.sigmoid_bottleneck.radii import as_sets

_SIZES = (50, 300, 1_000, 10_000)
_ACTIVE = (1, 3, 5)
_SETS = 400
_LAYERS = "sines and cosines", "random"


def random_layers(context: Context, proofs: Proofs) -> Iterator[Section]:
    """Both kinds of layers side by side: random sets of k labels, and the sets of random inputs."""
    found = list(measured(context))
    for each in found:
        for row in each["proofs"]:
            proofs.note(tuple(row))
    columns = (
        *(Column("k", "d"), Column("n", ",d"), Column("d", "d"), Column("layer")),
        *(Column("random sets in reach, %", ".1f"), Column("out of reach, %", ".1f")),
        *(Column("sets of random inputs: 1st percentile", ".2e"), Column("median radius", ".2e")),
        Column("median number of their labels", ".0f"),
    )
    rows = [(each["k"], each["n"], 2 * each["k"] + 1, layer, *each[layer]) for each in found for layer in _LAYERS]
    low, median = ([each[_LAYERS[1]][place] / each[_LAYERS[0]][place] for each in found] for place in (2, 3))
    context.claims.append(
        Claim(
            "Appendix F.2: small regions (1st percentile) are smaller in sines and cosines than in random layers.",
            f"random layers have {min(low):.2g} to {max(low):.2g} times the radius; medians {min(median):.2g} to "
            f"{max(median):.2g} times",
            min(low) > 1,
        )
    )
    yield Section(
        "Sines and cosines beside random layers",
        f"Both layers have d = 2k + 1 columns; the random one has normal weights, as a layer has at its start. First, "
        f"{_SETS} random sets of k labels: which share does each layer reach? Then {_SETS} sets that random normal "
        "inputs get, with their radii. Such sets have about half of all labels, so they are not what a layer is for, "
        "but both layers reach all of them.",
        [Table("Two kinds of layers of the same width", columns, rows)],
    )


def measured(context: Context) -> Iterator[dict[str, Any]]:
    """The records of all sizes, measured if they are not known."""
    sizes, active, n_sets = (_SIZES[:1], _ACTIVE[:1], 20) if context.quick else (_SIZES, _ACTIVE, _SETS)
    records = context.records("layers")
    with task("random layers", total=len(sizes) * len(active)) as advance:
        for k in active:
            for n in sizes:
                settings = {"n": n, "k": k, "sets": n_sets}
                yield records.measured(settings, partial(_measure, n, k, n_sets))
                advance(1)


def _measure(n: int, k: int, n_sets: int) -> dict[str, Any]:
    rng = np.random.default_rng(n + k)
    wanted = as_sets(random_members(n, k, n_sets, n + k), n)
    inputs = rng.normal(size=(n_sets, 2 * k + 1))
    found: dict[str, Any] = {"k": k, "n": n, "proofs": []}
    for layer, weights in zip(_LAYERS, (dft_matrix(n, k), rng.normal(size=(n, 2 * k + 1))), strict=True):
        sparse_sets = audit(weights, wanted, n_jobs=1)
        given = (inputs @ weights.T > 0).astype(np.int8)
        met = audit(weights, given, candidates=inputs, exact_radii=True, n_jobs=1)
        shares = [100 * sparse_sets.count(verdict) / n_sets for verdict in (ARGMAXABLE, UNARGMAXABLE)]
        radii = PAPER_UNITS * np.percentile(_radii(met), (1, 50))
        found[layer] = [*shares, *radii.tolist(), float(np.median(given.sum(axis=1)))]
        for audited, what in ((sparse_sets, "random sets"), (met, "sets of random inputs")):
            found["proofs"].append(proof_row(f"{layer}: n = {n:,}, k = {k}, {what}", audited))
    return found


def _radii(found: Audit) -> Array:
    return np.where(found.verdicts == ARGMAXABLE, found.radii, 0.0)
