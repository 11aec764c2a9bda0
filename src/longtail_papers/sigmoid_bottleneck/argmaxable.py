"""`reproduce argmaxable`: label sets that a linear output layer cannot predict (Grivas et al., AAAI 2024)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from longtail.audit import require_highspy, share_argmaxable
from longtail.pictures import Line, Panel, Picture
from longtail_papers.common import Column, Context, Experiment, Section, Table
from longtail_papers.sigmoid_bottleneck import radii, random_layers
from longtail_papers.sigmoid_bottleneck.checks import Proofs
from longtail_papers.sigmoid_bottleneck.layers import fourier_layers, truncated_ridge
from longtail_papers.sigmoid_bottleneck.plane import small_layers
from longtail_papers.sigmoid_bottleneck.sizes import parameters
from longtail_papers.sigmoid_bottleneck.widths import widths

_LABELS = 1000
_TABLED = (1, 10, 50, 100, 200, 300, 400, 450, 475, 500, 525, 550, 600, 700, 1000)


def counts(context: Context) -> Iterator[Section]:
    """Figure 2: the share of all label sets that a layer of n labels and d features can predict, counted exactly."""
    require_highspy()  # fail before the work: exact radii need it
    dimensions = [*range(1, _LABELS, 5), _LABELS]
    logarithms = [share_argmaxable(_LABELS, d, log10=True) for d in dimensions]
    percent = [100 * share_argmaxable(_LABELS, d) for d in dimensions]
    share = Line(f"n = {_LABELS:,} labels", dimensions, percent, marked=False)
    power = Line("", dimensions, logarithms, marked=False)
    panels = [
        Panel("Share of all label sets", "features d", "argmaxable, percent", [share]),
        Panel("The same on a logarithmic scale", "features d", "log10 of the share", [power]),
    ]
    columns = (Column("d", "d"), Column("log10 of the share", ".4g"), Column("percent", ".4g"))
    rows = [(d, share_argmaxable(_LABELS, d, log10=True), 100 * share_argmaxable(_LABELS, d)) for d in _TABLED]
    yield Section(
        "How many label sets there can be",
        f"Figure 2 of the paper. With any weights, a layer of {_LABELS:,} labels over d features without a bias can "
        f"predict at most `count_argmaxable({_LABELS}, d)` of the 2^{_LABELS} label sets. These are exact integers; "
        "nothing is sampled. It is half of them at d = n / 2, and almost none a little below.",
        [Table(f"Share of label sets that are argmaxable, n = {_LABELS:,}", columns, rows)],
        [Picture("argmaxable-counts.png", f"Share of argmaxable label sets for n = {_LABELS:,} against d", [panels])],
    )


def audits(context: Context) -> Iterator[Section]:
    """Verdicts on label sets, and the check of all their proofs."""
    proofs = Proofs()
    return chain(
        truncated_ridge(context.benchmarks, proofs, quick=context.quick),
        fourier_layers(context.benchmarks, proofs, quick=context.quick),
        widths(context),
        radii.radii(context, proofs),
        random_layers.random_layers(context, proofs),
        proofs.section(),
    )


EXPERIMENT = Experiment(
    name="argmaxable",
    module=__name__,
    title="Label sets out of reach",
    introduction=(
        "A label set is argmaxable if some input gets exactly these labels from the output layer (Grivas et al., AAAI "
        "2024). Every figure was measured in this run, except in the columns named *earlier run*: our own earlier runs "
        "of another implementation on the same stand-ins. The paper's own networks and data are not available. Radii "
        "are in the paper's units: inputs between -10,000 and 10,000."
    ),
    data_sets=("bibtex", "delicious"),
    quick_data_sets=("bibtex",),
    sections=(counts, small_layers, parameters, audits),
    parts={"radii": radii.measured, "widths": widths, "layers": random_layers.measured},
)
