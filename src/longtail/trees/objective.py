"""`Objective`: what the classifiers of a tree minimise, and when their training stops."""

from __future__ import annotations

from typing import NamedTuple

from longtail.trees.examples import Block


class Objective(NamedTuple):
    """What the classifiers minimise, and when training stops.

    Parameters
    ----------
    loss : {"squared_hinge", "logistic"}
    cost : float
        C: the cost of accepting a negative row.
    tolerance : float
        Gap between primal and dual value of a node's classifiers, relative to the primal, at which training stops.
    max_sweeps : int
    smallest : float
        Weights up to this magnitude are dropped.
    top : int
        Number of weights to keep of each classifier; 0 keeps all.
    seed : int
    precision : int
        Bits of a stored weight.
    """

    loss: str
    cost: float
    tolerance: float
    max_sweeps: int
    smallest: float
    top: int
    seed: int
    precision: int

    def seed_of(self, block: Block) -> int:
        """The seed of a block depends on its position, not on when it is trained."""
        return ((self.seed * 1_000_003 + block.node) * 65_537 + block.first) % 2**64
