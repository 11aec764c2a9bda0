"""Figures 1a, 2 (right) and 3: layers over two features, their regions of label sets drawn from the geometry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from longtail.arrays import Array
from longtail.audit import ARGMAXABLE, Audit, OutputLayer, audit, general_position, require_highspy, vandermonde_matrix
from longtail.pictures import Line, Panel, Picture
from longtail_papers.common import Cell, Column, Context, Section, Table

_SIDE = 1.0  # the centres of balls lie between minus and plus this number
_DRAWN = 2.0  # the regions are drawn beyond it, so that they hold the balls
_CIRCLE = np.linspace(0, 2 * np.pi, 73)


@dataclass(frozen=True, eq=False)
class Drawing:
    """A layer of two features with all its label sets.

    Parameters
    ----------
    title : str
    layer : OutputLayer
    paper : int
        How many label sets the paper says it gives.
    """

    title: str
    layer: OutputLayer
    paper: int
    found: Audit = field(init=False)

    def __post_init__(self) -> None:
        sets = np.array(list(product([1, 0], repeat=self.layer.n_labels)))
        found = audit(self.layer.weights, sets, self.layer.offsets, exact_radii=True, box=_SIDE, n_jobs=1)
        object.__setattr__(self, "found", found)

    def names(self, verdict: int | None = None) -> list[str]:
        """The label sets as signs, such as +-+; those with a verdict, or all."""
        members = self.found.sets.dense(slice(None))
        return [
            signs(row) for row, is_so in zip(members, self.found.verdicts, strict=True) if verdict in (None, int(is_so))
        ]

    def panel(self) -> Panel:
        """The regions with the names of their label sets, and the largest ball inside each."""
        lines: list[Line] = []
        members = self.found.sets.dense(slice(None))
        reached = np.flatnonzero(self.found.verdicts == ARGMAXABLE).tolist()
        for style, place in enumerate(reached):
            corners = region(self.layer, members[place], _DRAWN)
            around = np.vstack([corners, corners[:1]])
            lines.append(Line("", around[:, 0].tolist(), around[:, 1].tolist(), style=style, marked=False, filled=True))
            radius = float(self.found.radii[place])
            centre = ball_centre(self.layer, members[place], radius)
            circle = centre + radius * np.stack([np.cos(_CIRCLE), np.sin(_CIRCLE)], axis=1)
            lines.append(Line("", circle[:, 0].tolist(), circle[:, 1].tolist(), style=style, marked=False))
            name = signs(members[place]).replace("-", "\N{MINUS SIGN}")
            lines.append(Line(name, [float(centre[0])], [float(centre[1])], style=style))
        return Panel(self.title, "feature 1", "feature 2", lines, named_points=True, equal_axes=True)

    def row(self) -> tuple[Cell, ...]:
        """The counts beside those of the paper and of Cover."""
        position = general_position(self.layer)
        return (
            *(self.title, self.layer.n_labels, len(self.found), self.paper, self.found.count(ARGMAXABLE)),
            *(position.label_sets, "yes" if position.holds else "no", ", ".join(self.names(-1))),
            float(self.found.radii[self.found.verdicts == ARGMAXABLE].min()),
        )


def signs(members: Array) -> str:
    """
    >>> signs(np.array([True, False, True]))
    '+-+'
    """
    return "".join("+" if member else "-" for member in members)


def region(layer: OutputLayer, members: Array, side: float = _SIDE) -> Array:
    """The corners of the inputs in the square that get a label set, in order; none if there is no such input.

    Examples
    --------
    >>> region(OutputLayer.of([[1.0, 0.0]]), np.array([True])).tolist()
    [[0.0, -1.0], [1.0, -1.0], [1.0, 1.0], [0.0, 1.0]]
    """
    corners = np.array([[-side, -side], [side, -side], [side, side], [-side, side]])
    for weights, offset, member in zip(layer.weights, layer.offsets, members, strict=True):
        if not len(corners):
            break
        inside = (1 if member else -1) * (corners @ weights + offset)
        after, next_inside = np.roll(corners, -1, axis=0), np.roll(inside, -1)
        kept = []
        for corner, value, follower, next_value in zip(corners, inside, after, next_inside, strict=True):
            if value >= 0:
                kept.append(corner)
            if value * next_value < 0:
                kept.append(corner + (follower - corner) * value / (value - next_value))
        corners = np.array(kept).reshape(-1, 2)
    return corners


def ball_centre(layer: OutputLayer, members: Array, radius: float, side: float = _SIDE) -> Array:
    """An input of the square that is farthest from all planes, to a hundredth: the middle of what the ball allows."""
    shrunk = OutputLayer.of(
        layer.weights, layer.offsets - np.where(members, 1, -1) * 0.999 * radius * np.linalg.norm(layer.weights, axis=1)
    )
    return np.asarray(region(shrunk, members, side).mean(axis=0))


def drawings() -> list[Drawing]:
    """The layers of the figures, and that of figure 1 with a bias (the paper's footnote 1)."""
    angles = np.radians([100, 160, 220])
    three = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return [
        Drawing("Figure 1a: three labels", OutputLayer.of(three), 6),
        Drawing("Footnote 1: with a bias", OutputLayer.of(three, [0.3, -0.2, 0.3]), 7),
        Drawing("Figure 3: minors above 0", OutputLayer.of(vandermonde_matrix([-2.0, -0.4, 0.4, 2.0], 2)), 8),
    ]


def small_layers(context: Context) -> Iterator[Section]:
    """The pictures of small layers, and their label sets counted."""
    require_highspy()
    drawn = drawings()
    columns = (
        *(Column("layer"), Column("labels", "d"), Column("label sets", "d"), Column("paper: in reach", "d")),
        *(Column("measured: in reach", "d"), Column("Cover's count", "d"), Column("in general position")),
        *(Column("out of reach"), Column("smallest radius", ".3f")),
    )
    yield Section(
        "Layers in the plane",
        "Figures 1a, 2 (right) and 3 of the paper, drawn from layers over two features. Every label set is audited, "
        "and every region is cut out of a square of inputs by the planes of its labels. The largest ball of each "
        "region, with its centre between -1 and 1, is that of the linear program. In figure 3 all maximal minors are "
        "positive. Then a set is in reach exactly if it changes at most once along the labels.",
        [Table("Layers over two features", columns, [drawing.row() for drawing in drawn])],
        [
            Picture(
                "argmaxable-plane.png",
                "Regions of label sets, and the largest ball in each (figures 1a, 2 right and 3)",
                [[drawing.panel() for drawing in drawn]],
            )
        ],
    )
