"""NumPy twins of the steps of conjugate gradients, with one label per column."""

from __future__ import annotations

import numpy as np

from longtail.arrays import Array


def cg_curvature(alphas: Array, direction: Array, image: Array, curvature: Array) -> None:
    """Add ``alphas * direction`` to `image`, then write the column-wise dot products of the two to `curvature`."""
    image += alphas * direction
    curvature[:] = np.einsum("ij,ij->j", direction, image)


def cg_descend(
    step: Array,
    inverse: Array,
    direction: Array,
    image: Array,
    solution: Array,
    residual: Array,
    energy: Array,
) -> None:
    """Take a step, then write the squared length of each residual, weighted by `inverse`."""
    solution += step * direction
    residual -= step * image
    energy[:] = np.einsum("i,ij,ij->j", inverse, residual, residual)


def cg_turn(turn: Array, inverse: Array, residual: Array, correction: Array, direction: Array) -> None:
    """The next direction: the preconditioned residual plus `turn` times the last direction."""
    direction *= turn
    direction += inverse[:, None] * residual
    direction += correction
