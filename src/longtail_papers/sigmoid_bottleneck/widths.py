"""How wide must a layer be for the label sets of real test rows: any layer, sines and cosines, and cut-down ridge."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from longtail.audit import LabelSets, OutputLayer, dimensions_needed, truncation_needed, width_needed
from longtail.ridge import Ridge
from longtail_papers.common import Benchmark, Cell, Column, Context, Section, Table, tracked
from longtail_papers.sigmoid_bottleneck.layers import ALPHA, sampled_sets


def widths(context: Context) -> Iterator[Section]:
    """Bounds with proofs for the label sets of random test rows."""
    columns = (
        *(Column("data"), Column("labels", ",d"), Column("label sets", "d"), Column("k", "d")),
        *(Column("no layer of width", "d"), Column("a layer of width", "d"), Column("2k + 1", "d")),
        *(Column("ridge above 0: fails at rank", "d"), Column("reaches at rank", "d")),
        *(Column("ridge at its own rule: fails at rank", "d"), Column("reaches all at rank", "d")),
        Column("proofs hold"),
    )
    rows: list[tuple[Cell, ...]] = []
    for benchmark in tracked("widths", context.benchmarks):
        found = context.records("widths").measured(
            {"data": benchmark.name, "quick": context.quick},
            partial(_measure, benchmark, context.quick),
        )
        rows.append((benchmark.title, *(found[name] for name in _NAMES), "yes" if found["holds"] else "no"))
    if not rows:
        return
    yield Section(
        "How wide a layer must be",
        "For the label sets of random test rows. *No layer of width* is proved by counting: on some labels these sets "
        "have more patterns than any layer of that width without a bias can give. *A layer of width* is proved by "
        "weights that were found, and an input for each set. Both are about some layer; 2k + 1 is enough for all sets "
        "of up to k labels at once. The other columns are about one layer only, ridge cut down to a rank as above: the "
        "largest rank with a proof that a set is out of reach, and the smallest at which all sets have an input.",
        [Table("Widths", columns, rows)],
    )


_NAMES = ("labels", "sets", "k", "none", "some", "enough", "fails", "reaches", "own fails", "own reaches")


def _measure(benchmark: Benchmark, quick: bool) -> dict[str, Any]:
    sets = LabelSets.of(sampled_sets(benchmark, quick))
    found = width_needed(sets)
    k = int(np.diff(sets.members.indptr).max())
    train, _ = benchmark.features("as published")
    layer = Ridge(ALPHA).fit(train, benchmark.train.labels).output_layer()
    plain = truncation_needed(OutputLayer.of(layer.weights), sets)
    own = truncation_needed(OutputLayer.of(layer.weights, layer.offsets), sets)
    proofs = [each.proof for each in (plain, own) if each.proof is not None]
    holds = found.recheck(sets.members) and all(
        each.recheck()[each.verdicts != 0].all() for each in proofs if each.witnesses is not None
    )
    return {
        "labels": benchmark.train.n_labels,
        "sets": len(sets),
        "k": k,
        "none": found.lower - 1,
        "some": found.upper,
        "enough": dimensions_needed(k),
        "fails": plain.fails,
        "reaches": plain.reaches,
        "own fails": own.fails,
        "own reaches": own.reaches,
        "holds": bool(holds),
    }
