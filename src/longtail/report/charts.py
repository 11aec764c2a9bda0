"""The charts of a report as inline SVG. The style sheet sets their colours, for light and dark."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from longtail.checking import Bin
from longtail.metrics import Band, Cutoff, Interval, Reliability
from longtail.printable import counted
from longtail.report.markup import Markup, element, join
from longtail.report.text import span

_SIDE = 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 14, 14, 44
# Width of a character of a tick label, and minimum distance between two of them.
_CHARACTER, _APART = 7.0, 2.0


def metric_bar(interval: Interval) -> Markup:
    """A bar from 0 to 1, with a whisker for the interval."""
    width, height = 140.0, 14.0
    middle = height / 2
    return element(
        "svg",
        element("rect", x=0, y=3, width=width, height=height - 6, rx=2, class_="track"),
        element("rect", x=0, y=3, width=width * interval.value, height=height - 6, rx=2, class_="bar"),
        element("line", x1=width * interval.low, x2=width * interval.high, y1=middle, y2=middle, class_="whisker"),
        *(
            element("line", x1=width * end, x2=width * end, y1=middle - 3, y2=middle + 3, class_="whisker")
            for end in (interval.low, interval.high)
        ),
        viewBox=f"0 0 {width:g} {height:g}",
        width=width,
        height=height,
        aria_hidden="true",
        class_="metric",
    )


def reliability_diagram(found: Reliability) -> Markup:
    """The share of correct labels against the mean score, a dot for each bin."""
    low = min(0.0, *(each.mean_score for each in found.bins))
    high = max(1.0, *(each.mean_score for each in found.bins))
    inner = _SIDE - _LEFT - _RIGHT

    def x(value: float) -> float:
        return _LEFT + inner * (value - low) / (high - low)

    def y(value: float) -> float:
        return _TOP + (_SIDE - _TOP - _BOTTOM) * (1 - value)

    parts = [*_horizontal_grid(y, _LEFT, _SIDE - _RIGHT)]
    for tick in _ticks(low, high):
        parts.append(element("text", f"{tick:g}", x=x(tick), y=_SIDE - _BOTTOM + 16, class_="tick middle"))
    parts.append(element("line", x1=x(0.0), y1=y(0.0), x2=x(1.0), y2=y(1.0), class_="diagonal"))
    points = [(x(each.mean_score), y(each.share_right)) for each in found.bins]
    parts.append(_line(points, "accent"))
    for each, (across, down) in zip(found.bins, points, strict=True):
        scores = f"scores {each.low:.3f} to {each.high:.3f}: mean {each.mean_score:.3f}, {each.share_right:.1%} correct"
        title = f"{counted(each.count, 'label')} with {scores}"
        parts.append(element("circle", element("title", title), cx=across, cy=down, r=4.5, class_="dot accent"))
    parts.append(element("text", "score", x=_LEFT + inner / 2, y=_SIDE - 8, class_="axis middle"))
    parts.append(_upright("share of correct labels", 12.0, _TOP + (_SIDE - _TOP - _BOTTOM) / 2))
    return _picture(_SIDE, _SIDE, f"Reliability diagram of {len(found.bins)} bins", parts)


def cutoff_chart(cutoffs: Sequence[Cutoff], threshold: float | None) -> Markup:
    """Precision, recall and F1 against the cut-off; a dashed line at the threshold of the model."""
    inner = _SIDE - _LEFT - _RIGHT

    def x(value: float) -> float:
        return _LEFT + inner * value

    def y(value: float) -> float:
        return _TOP + (_SIDE - _TOP - _BOTTOM) * (1 - value)

    parts = [*_horizontal_grid(y, _LEFT, _SIDE - _RIGHT)]
    for tick in _ticks(0.0, 1.0):
        parts.append(element("text", f"{tick:g}", x=x(tick), y=_SIDE - _BOTTOM + 16, class_="tick middle"))
    if threshold is not None:
        parts.append(element("line", x1=x(threshold), y1=y(0.0), x2=x(threshold), y2=y(1.0), class_="diagonal"))
    for kind, values in (
        ("precision", [each.precision for each in cutoffs]),
        ("recall", [each.recall for each in cutoffs]),
        ("f1", [each.f1 for each in cutoffs]),
    ):
        parts.append(_line([(x(each.cutoff), y(value)) for each, value in zip(cutoffs, values, strict=True)], kind))
    parts.append(element("text", "cut-off", x=_LEFT + inner / 2, y=_SIDE - 8, class_="axis middle"))
    return _picture(_SIDE, _SIDE, "Precision, recall and F1 by cut-off", parts)


def band_chart(bands: Sequence[Band]) -> Markup:
    """Precision and recall by label frequency, with the number of labels of each band as a grey bar.

    If the ranges of the bands are too long for the axis, it shows their lower ends, or every other one.
    """
    width, height = 720, 320
    step = (width - _LEFT - _RIGHT) / len(bands)
    bottom = height - _BOTTOM - 4
    names = [span(band.low, band.high) for band in bands]
    ticks, axis = names, "training rows of a label"
    if not _fit(ticks, step):
        ticks = [_brief(band.low) for band in bands]
        axis += f" ({ticks[-1]} stands for {names[-1]})"
    every = 1 if _fit(ticks, step) else 2

    def y(value: float) -> float:
        return _TOP + (bottom - _TOP) * (1 - value)

    most = max(band.n_labels for band in bands)
    parts = [*_horizontal_grid(y, _LEFT, width - _RIGHT)]
    lines: dict[str, list[tuple[float, float, str]]] = {"precision": [], "recall": []}
    for number, band in enumerate(bands):
        centre = _LEFT + step * (number + 0.5)
        shown = f"{names[number]} training row{'s' * (band.high != 1)}"
        tall = 0.9 * (bottom - _TOP) * band.n_labels / most
        parts.append(
            element(
                "rect",
                element("title", f"{counted(band.n_labels, 'label')} with {shown}"),
                x=centre - min(22.0, step * 0.36),
                y=bottom - tall,
                width=2 * min(22.0, step * 0.36),
                height=tall,
                class_="ghost",
            )
        )
        if (len(bands) - 1 - number) % every == 0:
            parts.append(element("text", ticks[number], x=centre, y=bottom + 16, class_="tick middle"))
        for name, value in (("precision", band.precision), ("recall", band.recall)):
            if value is not None:
                title = f"{name} {value:.1%} of labels with {shown}"
                lines[name].append((centre, y(value), title))
    for name, points in lines.items():
        parts.append(_line([point[:2] for point in points], name))
        for across, down, title in points:
            parts.append(element("circle", element("title", title), cx=across, cy=down, r=4, class_=f"dot {name}"))
    middle = _LEFT + (width - _LEFT - _RIGHT) / 2
    parts.append(element("text", axis, x=middle, y=height - 6, class_="axis middle"))
    return _picture(width, height, "Precision and recall by label frequency", parts)


def bar_chart(bins: Sequence[Bin], axis: str, what: str) -> Markup:
    """A bar for each range of numbers, with the number of things in it; `what` names one thing.

    If the ranges are too long for the axis, it shows their lower ends.
    """
    width, height = 720, 240
    step = (width - _LEFT - _RIGHT) / len(bins)
    ticks = [each.name for each in bins]
    if not _fit(ticks, step):
        ticks = [f"{_brief(each.low)}{'+' * (each.high > each.low)}" for each in bins]
    bottom = height - _BOTTOM - 4
    most = max(1, *(each.count for each in bins))
    wide = min(52.0, 0.7 * step)
    parts = [element("line", x1=_LEFT, x2=width - _RIGHT, y1=bottom, y2=bottom, class_="grid")]
    for number, (tick, each) in enumerate(zip(ticks, bins, strict=True)):
        centre = _LEFT + step * (number + 0.5)
        tall = (bottom - _TOP - 14) * each.count / most
        title = element("title", f"{counted(each.count, what)} with {each.name}")
        parts.append(
            element("rect", title, x=centre - wide / 2, y=bottom - tall, width=wide, height=tall, class_="bar")
        )
        parts.append(element("text", f"{each.count:,}", x=centre, y=bottom - tall - 4, class_="tick middle"))
        parts.append(element("text", tick, x=centre, y=bottom + 16, class_="tick middle"))
    middle = _LEFT + (width - _LEFT - _RIGHT) / 2
    parts.append(element("text", axis, x=middle, y=height - 6, class_="axis middle"))
    return _picture(width, height, f"Number of {what}s by {axis}", parts)


def _fit(ticks: Sequence[str], step: float) -> bool:
    return _CHARACTER * max(map(len, ticks)) + _APART <= step


def _brief(count: int) -> str:
    return f"{count}" if count < 1000 else f"{count / 1000:.0f}k" if count < 10**6 else f"{count / 10**6:.0f}M"


def legend(*entries: tuple[str, str]) -> Markup:
    """The meaning of the colours: pairs of class and text."""
    return element("p", *(element("span", text, class_=f"key {kind}") for kind, text in entries), class_="legend")


def _horizontal_grid(y: Callable[[float], float], left: float, right: float) -> list[Markup]:
    parts = []
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(element("line", x1=left, x2=right, y1=y(tick), y2=y(tick), class_="grid"))
        parts.append(element("text", f"{100 * tick:.0f}%", x=left - 6, y=y(tick) + 4, class_="tick end"))
    return parts


def _ticks(low: float, high: float) -> list[float]:
    step = 0.25 if high - low <= 1.5 else 0.5 if high - low <= 3 else float(max(1, round((high - low) / 6)))
    first = -int(-low // step) if low < 0 else 0
    return [step * number for number in range(int(first), int(high / step + 1e-9) + 1)]


def _line(points: Sequence[tuple[float, float]], kind: str) -> Markup:
    return element("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in points), class_=f"line {kind}")


def _upright(text: str, x: float, y: float) -> Markup:
    return element("text", text, x=x, y=y, transform=f"rotate(-90 {x:.0f} {y:.0f})", class_="axis middle")


def _picture(width: int, height: int, label: str, parts: Sequence[Markup]) -> Markup:
    return element(
        "svg", join(parts), viewBox=f"0 0 {width} {height}", role="img", aria_label=label, style=f"max-width:{width}px"
    )
