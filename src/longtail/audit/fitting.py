"""Search for weights of a given width that reach given label sets, and an input for each set, which is the proof."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg, optimize

from longtail.arrays import Array
from longtail.audit.proofs import check_witnesses
from longtail.estimator import OutputLayer
from longtail.parallel import check_stop

_ROUNDS = 400
_MARGIN = 1e-3  # scores beyond this, where 1 is asked for, count as right


def fit_layer(members: Array, width: int) -> tuple[Array, Array] | None:
    """Weights and inputs whose scores have the signs of the label sets, or None if the search finds none.

    Both are learned together, by a squared hinge loss from the largest singular directions of the signs. That None is
    returned proves nothing.

    Parameters
    ----------
    members : bool array of shape (n_sets, n_labels)
    width : int

    Returns
    -------
    weights : array of shape (n_labels, width)
    inputs : array of shape (n_sets, width)
        Checked: each gets its set whatever the rounding errors.

    Examples
    --------
    >>> weights, inputs = fit_layer(np.eye(5, dtype=bool), 3)
    >>> bool(((inputs @ weights.T > 0) == np.eye(5)).all())
    True
    """
    signs = np.where(members, 1.0, -1.0)
    n_sets, n_labels = signs.shape
    left, values, right = linalg.svd(signs, full_matrices=False, lapack_driver="gesdd")
    roots = np.sqrt(values[:width])
    start = np.zeros((n_sets + n_labels, width))
    start[:n_sets, : len(roots)] = left[:, :width] * roots
    start[n_sets:, : len(roots)] = right[:width].T * roots
    # Equal rows would have equal gradients and never part.
    start += 0.01 * np.random.default_rng(0).normal(size=start.shape)

    def loss(flat: Array) -> tuple[float, Array]:
        inputs, weights = _parts(flat, n_sets, width)
        lack = np.maximum(0.0, 1 - signs * (inputs @ weights.T))
        slope = -2 * lack * signs
        return float(np.square(lack).sum()), np.concatenate([slope @ weights, slope.T @ inputs]).ravel()

    def stop(intermediate_result: Any) -> None:
        check_stop()
        inputs, weights = _parts(intermediate_result.x, n_sets, width)
        if (signs * (inputs @ weights.T)).min() > _MARGIN:
            raise StopIteration

    found = optimize.minimize(
        loss, start.ravel(), jac=True, method="L-BFGS-B", callback=stop, options={"maxiter": _ROUNDS, "maxfun": 10_000}
    )
    inputs, weights = _parts(found.x, n_sets, width)
    right_ones = check_witnesses(OutputLayer.of(weights), members, inputs)
    return (weights, inputs) if right_ones.all() else None


def _parts(flat: Array, n_sets: int, width: int) -> tuple[Array, Array]:
    both = flat.reshape(-1, width)
    return both[:n_sets], both[n_sets:]
