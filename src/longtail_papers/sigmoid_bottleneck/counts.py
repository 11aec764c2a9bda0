"""Figure 2: the share of all label sets that a layer of n labels and d features can predict, counted exactly."""

from __future__ import annotations

from collections.abc import Iterator

from longtail.audit import share_argmaxable
from longtail.pictures import Line, Panel, Picture
from longtail_papers.common.tables import Column, Section, Table

_LABELS = 1000
_TABLED = (1, 10, 50, 100, 200, 300, 400, 450, 475, 500, 525, 550, 600, 700, 1000)


def counts() -> Iterator[Section]:
    """The share against d, whole and as a logarithm."""
    dimensions = [*range(1, _LABELS, 5), _LABELS]
    logarithms = [share_argmaxable(_LABELS, d, log10=True) for d in dimensions]
    percent = [100 * share_argmaxable(_LABELS, d) for d in dimensions]
    panels = [
        Panel(
            "Share of all label sets",
            "features d",
            "percent that is argmaxable",
            [Line(f"n = {_LABELS:,} labels", dimensions, percent, marked=False)],
        ),
        Panel(
            "The same as a power of ten",
            "features d",
            "decimal logarithm of the share",
            [Line("", dimensions, logarithms, marked=False)],
        ),
    ]
    columns = (Column("d", "d"), Column("log10 of the share", ".4g"), Column("percent", ".4g"))
    rows = [(d, share_argmaxable(_LABELS, d, log10=True), 100 * share_argmaxable(_LABELS, d)) for d in _TABLED]
    yield Section(
        "How many label sets there can be",
        f"Figure 2 of the paper. Whatever its weights, a layer of {_LABELS:,} labels over d features without a bias "
        f"can predict at most `count_argmaxable({_LABELS}, d)` of the 2^{_LABELS} label sets: exact integers, nothing "
        f"is sampled. Half of them at d = n / 2, and almost none a little below.",
        [Table(f"Share of label sets that are argmaxable, n = {_LABELS:,}", columns, rows)],
        [Picture("argmaxable-counts.png", f"Share of argmaxable label sets for n = {_LABELS:,} against d", [panels])],
    )
