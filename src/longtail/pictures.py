"""Pictures of results: panels of lines, in colours and marks that colour-blind readers can tell apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, BinaryIO, Literal

Dash = Literal["solid", "dashed", "dotted"]

# The palette of Okabe and Ito without its yellow, which is too pale for lines.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_MARKERS = "osD^vPX"
_INK = "#333333"
_DASHES: dict[Dash, Any] = {"solid": "-", "dashed": (0, (4, 2)), "dotted": (0, (1, 2))}


@dataclass(frozen=True)
class Line:
    """Points joined by a line.

    `style` is the number of a colour and a mark, so that the same thing looks the same in every panel; `dash` and
    `marked` distinguish variants. A line without a name is not in the legend.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    style: int = 0
    dash: Dash = "solid"
    marked: bool = True


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line]
    log_x: bool = False
    log_y: bool = False
    x_ticks: Sequence[float] = ()


@dataclass(frozen=True)
class Picture:
    """Rows of panels with one legend below them."""

    file_name: str
    caption: str
    panels: Sequence[Sequence[Panel]]


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def draw(picture: Picture, file: BinaryIO) -> None:
    """Write the picture to `file` as a PNG."""
    from matplotlib.figure import Figure

    rows, columns = len(picture.panels), max(map(len, picture.panels))
    figure = Figure(figsize=(1.2 + 4.0 * columns, 0.9 + 3.3 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    handles: dict[str, Any] = {}
    for axes_row, panel_row in zip(grid, picture.panels, strict=True):
        for axes in axes_row[len(panel_row) :]:
            axes.set_visible(False)
        for axes, panel in zip(axes_row, panel_row, strict=False):
            for name, handle in _draw_panel(axes, panel):
                if name:
                    handles.setdefault(name, handle)
    figure.legend(
        handles.values(),
        handles.keys(),
        loc="outside lower center",
        ncols=min(len(handles), 1 + 2 * columns),
        frameon=False,
        fontsize=9,
        labelcolor=_INK,
        handlelength=3,
    )
    figure.savefig(file, format="png", dpi=130)


def _draw_panel(axes: Any, panel: Panel) -> list[tuple[str, Any]]:
    drawn = []
    for line in panel.lines:
        [handle] = axes.plot(
            line.x,
            line.y,
            color=_COLOURS[line.style % len(_COLOURS)],
            marker=_MARKERS[line.style % len(_MARKERS)] if line.marked else None,
            markersize=5,
            markerfacecolor=None if line.dash == "solid" else "white",
            linestyle=_DASHES[line.dash],
            linewidth=1.6,
        )
        drawn.append((line.name, handle))
    if panel.log_x:
        axes.set_xscale("log")
        _write_plainly(axes.xaxis)
    if panel.log_y:
        axes.set_yscale("log")
        _write_plainly(axes.yaxis)
    if panel.x_ticks:
        axes.set_xticks(panel.x_ticks)
    axes.set_title(panel.title, loc="left", color=_INK, fontsize=11)
    axes.set_xlabel(panel.x_label, color=_INK)
    axes.set_ylabel(panel.y_label, color=_INK)
    axes.grid(color="#e5e5e5")
    axes.set_axisbelow(True)
    axes.tick_params(which="both", length=0, colors=_INK)
    axes.spines[["top", "right"]].set_visible(False)
    return drawn


def _write_plainly(axis: Any) -> None:
    """Write numbers such as 0.5 and 2,000 instead of powers of ten on a logarithmic axis."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    steps = (1.0, 2.0, 5.0) if high < 100 * low else (1.0, 3.0) if high < 2000 * low else (1.0,)
    axis.set_major_locator(LogLocator(subs=steps))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.set_minor_formatter(NullFormatter())
