"""Plain NumPy twins of the steps of conjugate gradients, one label per column."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def cg_curvature(alphas: Array, direction: Array, image: Array, curvature: Array) -> None:
    """Add ``alphas * direction`` to `image`, then write the column-wise products of the two to `curvature`."""
    image += alphas * direction
    curvature[:] = np.einsum("ij,ij->j", direction, image)


def cg_descend(
    step: Array,
    diagonal: Array,
    alphas: Array,
    direction: Array,
    image: Array,
    solution: Array,
    residual: Array,
    squares: Array,
    energy: Array,
) -> None:
    """Take a step, then write the squared length of each residual, plain and preconditioned."""
    solution += step * direction
    residual -= step * image
    squares[:] = np.einsum("ij,ij->j", residual, residual)
    energy[:] = np.einsum("ij,ij->j", residual, residual / (diagonal[:, None] + alphas))


def cg_turn(turn: Array, diagonal: Array, alphas: Array, residual: Array, direction: Array) -> None:
    """The next direction: the preconditioned residual and `turn` times the last direction."""
    direction *= turn
    direction += residual / (diagonal[:, None] + alphas)
