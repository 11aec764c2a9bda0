"""Measure the radii of all label sets of an audit: lower bounds at their witnesses, or exact by linear programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from longtail.arrays import Array
from longtail.audit.balls import Ball, balls_at, largest_ball
from longtail.audit.box import Box
from longtail.audit.finding import ARGMAXABLE, UNARGMAXABLE, Finding, Radii
from longtail.audit.label_sets import LabelSets
from longtail.estimator import OutputLayer
from longtail.parallel import map_blocks, resolve_jobs, split

_MOST_KEPT = 2**24  # entries of centres
_AT_ONCE = 100  # label sets whose scores are computed together


class Ruler:
    """The balls of label sets in one box.

    Parameters
    ----------
    layer : OutputLayer
    sets : LabelSets
    box : Box
    n_jobs : int or None
        Number of threads.
    """

    def __init__(self, layer: OutputLayer, sets: LabelSets, box: Box, n_jobs: int | None = None) -> None:
        self._jobs = n_jobs
        self._layer = layer
        self._sets = sets
        self._box = box
        self._balls: dict[int, Ball] = {}
        self._keeps_centres = len(sets) * box.n_features <= _MOST_KEPT

    def note(self, places: Sequence[int], witnesses: Sequence[Array] | Array) -> None:
        """Take the radii of some label sets at inputs that get them."""

        def measure(block: slice) -> list[Ball]:
            return balls_at(self._layer, self._sets.dense(places[block]), np.array(witnesses[block]), self._box)

        blocks = split(len(places), _AT_ONCE)
        for block, balls in zip(blocks, map_blocks(measure, blocks, resolve_jobs(self._jobs)), strict=True):
            for place, ball in zip(places[block], balls, strict=True):
                self._balls[place] = ball if self._keeps_centres else replace(ball, centre=self._box.centre)

    def improve(self) -> None:
        """Solve the linear program of each label set that has a witness."""

        def solve(place: int) -> Ball:
            return largest_ball(self._layer, self._sets.dense([place])[0], self._box, self._balls[place])

        places = sorted(self._balls)
        found = map_blocks(solve, places, resolve_jobs(self._jobs), blas=False)
        self._balls.update(zip(places, found, strict=True))

    def radii(self, findings: Sequence[Finding]) -> Radii:
        """The radius of each label set: 0 if no input gets it, nan if that is not known."""
        values, exact = np.full(len(findings), np.nan), np.zeros(len(findings), dtype=bool)
        for place, finding in enumerate(findings):
            if finding.verdict == UNARGMAXABLE:
                values[place], exact[place] = 0.0, True
            elif finding.verdict == ARGMAXABLE and place in self._balls:
                ball = self._balls[place]
                values[place], exact[place] = ball.radius, ball.is_largest
        return Radii(values, exact, self._box)
