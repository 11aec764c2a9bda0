"""Draw a report: ranking metrics on the left, recall by label frequency on the right."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from longtail.errors import InvalidInput, Unavailable
from longtail.files import whole_file

if TYPE_CHECKING:
    from longtail.metrics.report import Report

_BLUES = ("#1b4965", "#62b6cb", "#cae0ea")
_INK = "#333333"


def save_picture(report: Report, path: str | PathLike[str]) -> None:
    """Draw `report` and write it to `path` as a PNG."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise Unavailable(
            "drawing needs matplotlib, which is not installed; install it with: pip install 'longtail[plots]'"
        ) from None
    target = Path(path)
    if target.suffix.lower() != ".png":
        raise InvalidInput(f"the picture is a PNG, but the path is {str(target)!r}; end it in .png")

    with_truth = [group for group in report.groups if group.n_true_labels]
    figure = Figure(figsize=(11 if with_truth else 6, 4.2), layout="constrained")
    left, *right = figure.subplots(1, 2 if with_truth else 1, squeeze=False)[0]

    names = [name for name in ("P", "nDCG", "PSP") if name in report.metrics]
    _draw_bars(left, report, names, [report.metrics[name] for name in names])
    left.set_title(f"Ranking metrics at k ({report.n_rows:,} rows)", loc="left", color=_INK)
    if right:
        ticks = [
            f"{group.name}\n{group.n_labels:,} label{'s' if group.n_labels > 1 else ''}\n"
            f"{100 * group.truth_share:.0f}% of truth"
            for group in with_truth
        ]
        _draw_bars(right[0], report, ticks, [group.metrics["R"] for group in with_truth])
        right[0].set_title("Recall by label frequency in training", loc="left", color=_INK)

    with whole_file(target) as file:
        figure.savefig(file, format="png", dpi=150)


def _draw_bars(axes: Any, report: Report, ticks: Sequence[str], values: Sequence[dict[int, float]]) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    shades = LinearSegmentedColormap.from_list("blues", _BLUES)(np.linspace(0, 1, max(len(report.ks), 2)))
    centres = np.arange(len(ticks))
    width = min(0.8 / len(report.ks), 0.3)
    for number, k in enumerate(report.ks):
        offset = (number - (len(report.ks) - 1) / 2) * width
        heights = [100 * value[k] for value in values]
        bars = axes.bar(centres + offset, heights, width * 0.92, color=shades[number], label=f"k = {k}")
        if len(report.ks) * len(ticks) <= 12:
            axes.bar_label(bars, fmt="%.1f", fontsize=8, padding=2, color=_INK)
    axes.set_xticks(centres, ticks, color=_INK)
    # Leave room for a number above a full bar, and for the legend above that.
    axes.set_ylim(0, 118)
    axes.set_yticks(range(0, 101, 20))
    axes.set_ylabel("percent", color=_INK)
    axes.legend(frameon=False, ncols=min(len(report.ks), 5), loc="upper right", fontsize=8)
    axes.grid(axis="y", color="#e5e5e5")
    axes.set_axisbelow(True)
    axes.tick_params(length=0, colors=_INK)
    axes.spines[["top", "right", "left"]].set_visible(False)
