"""Pictures of results: lines and heat maps, in colours and marks that colour-blind readers can tell apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, BinaryIO, Literal, NamedTuple

Dash = Literal["solid", "dashed", "dotted"]

# The palette of Okabe and Ito without its yellow, which is too pale for lines.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_MARKERS = "osD^vPX"
_INK = "#333333"
_CHARACTER, _LINE = 0.018, 0.05  # width and height of a small letter, in fractions of the axes
_LONGEST_NAME = 28  # characters of a row or column of a heat map
_MOST_NUMBERS = 200  # cells of a heat map that show their numbers
_DASHES: dict[Dash, Any] = {"solid": "-", "dashed": (0, (4, 2)), "dotted": (0, (1, 2))}


@dataclass(frozen=True)
class Line:
    """Points joined by a line.

    `style` is the number of a colour and a mark, so that the same thing looks the same in every panel; `dash` and
    `marked` distinguish variants. `filled` colours the area inside the points. A line without a name is not in the
    legend.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    style: int = 0
    dash: Dash = "solid"
    marked: bool = True
    filled: bool = False


@dataclass(frozen=True)
class Panel:
    """One pair of axes; with `named_points`, names stand beside the last points and not in the legend.

    With `equal_axes`, a unit has the same length on both axes, so that circles are round.
    """

    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line]
    log_x: bool = False
    log_y: bool = False
    x_ticks: Sequence[float] = ()
    named_points: bool = False
    equal_axes: bool = False

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in inches."""
        return 4.0, 3.3

    def draw_on(self, axes: Any) -> list[tuple[str, Any]]:
        """Draw the lines, and return those of the legend with their names."""
        return _draw_panel(axes, self)


@dataclass(frozen=True)
class HeatMap:
    """A table of numbers as coloured cells, the darker the larger, with a name for each column and row.

    Small tables also show the numbers, in the Python format `format`.
    """

    title: str
    x_label: str
    y_label: str
    values: Sequence[Sequence[float]]
    x_names: Sequence[str]
    y_names: Sequence[str]
    format: str = ".2f"

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in inches."""
        longest = [min(_LONGEST_NAME, max(map(len, names))) for names in (self.y_names, self.x_names)]
        return 1.6 + 0.45 * len(self.x_names) + 0.08 * longest[0], 1.2 + 0.28 * len(self.y_names) + 0.06 * longest[1]

    def draw_on(self, axes: Any) -> list[tuple[str, Any]]:
        """Draw the cells; there is nothing for the legend."""
        _draw_heat_map(axes, self)
        return []


@dataclass(frozen=True)
class Picture:
    """Rows of panels with one legend below them."""

    file_name: str
    caption: str
    panels: Sequence[Sequence[Panel | HeatMap]]


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def draw(picture: Picture, file: BinaryIO) -> None:
    """Write the picture to `file` as a PNG."""
    from matplotlib.figure import Figure

    rows, columns = len(picture.panels), max(map(len, picture.panels))
    width = max(sum(panel.size[0] for panel in panel_row) for panel_row in picture.panels)
    height = sum(max(panel.size[1] for panel in panel_row) for panel_row in picture.panels)
    figure = Figure(figsize=(1.2 + width, 0.9 + height), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    handles: dict[str, Any] = {}
    for axes_row, panel_row in zip(grid, picture.panels, strict=True):
        for axes in axes_row[len(panel_row) :]:
            axes.set_visible(False)
        for axes, panel in zip(axes_row, panel_row, strict=False):
            for name, handle in panel.draw_on(axes):
                if name:
                    handles.setdefault(name, handle)
    if handles:
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
        if line.filled:
            axes.fill(line.x, line.y, color=handle.get_color(), alpha=0.15, linewidth=0)
    if panel.log_x:
        axes.set_xscale("log")
        _write_plainly(axes.xaxis)
    if panel.log_y:
        axes.set_yscale("log")
        _write_plainly(axes.yaxis)
    if panel.x_ticks:
        axes.set_xticks(panel.x_ticks)
    if panel.equal_axes:
        axes.set_aspect("equal", adjustable="box")
    axes.set_title(panel.title, loc="left", color=_INK, fontsize=11)
    axes.set_xlabel(panel.x_label, color=_INK)
    axes.set_ylabel(panel.y_label, color=_INK)
    axes.grid(color="#e5e5e5")
    axes.set_axisbelow(True)
    axes.tick_params(which="both", length=0, colors=_INK)
    axes.spines[["top", "right"]].set_visible(False)
    if panel.named_points:
        _write_names(axes, panel.lines)
        return []
    return drawn


def _draw_heat_map(axes: Any, panel: HeatMap) -> None:
    drawn = axes.imshow(panel.values, cmap="Blues", vmin=min(0.0, *map(min, panel.values)), aspect="auto")
    slanted = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    axes.set_xticks(range(len(panel.x_names)), [_short(name) for name in panel.x_names], **slanted)
    axes.set_yticks(range(len(panel.y_names)), [_short(name) for name in panel.y_names])
    if len(panel.x_names) * len(panel.y_names) <= _MOST_NUMBERS:
        middle = (drawn.norm.vmin + drawn.norm.vmax) / 2
        for row, values in enumerate(panel.values):
            for column, value in enumerate(values):
                colour = "white" if value > middle else _INK
                axes.text(column, row, format(value, panel.format), ha="center", va="center", fontsize=7, color=colour)
    axes.figure.colorbar(drawn, ax=axes).outline.set_visible(False)
    axes.set_title(panel.title, loc="left", color=_INK, fontsize=11)
    axes.set_xlabel(panel.x_label, color=_INK)
    axes.set_ylabel(panel.y_label, color=_INK)
    axes.tick_params(length=0, colors=_INK, labelsize=8)
    axes.spines[:].set_visible(False)


def _short(name: str) -> str:
    # A dollar sign would begin a formula.
    cut = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
    return cut.replace("$", r"\$")


def _write_names(axes: Any, lines: Sequence[Line]) -> None:
    """Write the name of each line beside its last point, where it covers no other name or point if possible."""
    axes.margins(x=0.15, y=0.1)
    axes.autoscale_view()  # otherwise the limits change after the places are computed
    to_fractions = axes.transData + axes.transAxes.inverted()
    points = to_fractions.transform([(line.x[-1], line.y[-1]) for line in lines])
    taken = [_Box(x - 0.01, y - 0.015, x + 0.01, y + 0.015) for x, y in points]
    for line, (x, y) in zip(lines, points, strict=True):
        width = _CHARACTER * len(line.name)
        boxes = [
            _Box(left, y + shift - _LINE / 2, left + width, y + shift + _LINE / 2)
            for shift in (0, _LINE, -_LINE, 2 * _LINE, -2 * _LINE)
            for left in (x + 0.02, x - 0.02 - width)
        ]
        free = [box for box in boxes if box.x0 > 0 and box.x1 < 1 and not any(map(box.overlaps, taken))]
        box = (free or boxes)[0]
        taken.append(box)
        on_the_right = box.x0 > x
        axes.text(
            box.x0 if on_the_right else box.x1,
            (box.y0 + box.y1) / 2,
            line.name,
            transform=axes.transAxes,
            ha="left" if on_the_right else "right",
            va="center",
            fontsize=7,
            color=_COLOURS[line.style % len(_COLOURS)],
        )


class _Box(NamedTuple):
    """A rectangle in fractions of the axes."""

    x0: float
    y0: float
    x1: float
    y1: float

    def overlaps(self, other: _Box) -> bool:
        return self.x0 < other.x1 and other.x0 < self.x1 and self.y0 < other.y1 and other.y0 < self.y1


def _write_plainly(axis: Any) -> None:
    """Write numbers such as 0.5 and 2,000 instead of powers of ten on a logarithmic axis."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    steps = (1.0, 2.0, 5.0) if high < 100 * low else (1.0, 3.0) if high < 2000 * low else (1.0,)
    axis.set_major_locator(LogLocator(subs=steps))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.set_minor_formatter(NullFormatter())
