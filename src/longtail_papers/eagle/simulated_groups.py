"""When does it help to assign the outputs of a group to its members? Two simulations (Shen et al., ICML 2020).

Linear regression (section 5) and classification (appendix B.1), where the outputs of a group are known, but not which
member each belongs to. All seeds are computed at once: arrays begin with the axes seeds, groups, members.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from longtail.arrays import Array

Norm = Literal["spectral", "frobenius"]

N_GROUPS, GROUP_SIZE, N_FEATURES, N_OUTPUTS = 100, 10, 10, 5
TEST_GROUPS = 1000


class Estimates(NamedTuple):
    """Coefficients by what is known or done, each of shape (seeds, n_features, n_outputs).

    Parameters
    ----------
    oracle : array
        Least squares with the true member of each output.
    no_assignment : array
        Least squares of sums of outputs on sums of members (NoAS in the paper).
    nearest : array
        Least squares after each output went to the member with the nearest prediction of `no_assignment`; a member may
        get several (AS, equation 3).
    matched : array
        The same with one output for each member, by the assignment of the smallest sum of squared distances.
    """

    oracle: Array
    no_assignment: Array
    nearest: Array
    matched: Array


class Simulated(NamedTuple):
    """Groups and the truth about them.

    Parameters
    ----------
    members : array of shape (seeds, n_groups, group_size, n_features)
    outputs : array of shape (seeds, n_groups, group_size, n_outputs)
        In the order of the members, which only the oracle may use.
    coefficients : array of shape (seeds, n_features, n_outputs)
    """

    members: Array
    outputs: Array
    coefficients: Array


def estimate(members: Array, outputs: Array) -> Estimates:
    """Fit in all four ways.

    Examples
    --------
    A group has two outputs; without noise every way finds the coefficient.

    >>> members = np.array([[[[1.0], [2.0]], [[3.0], [5.0]]]])
    >>> [float(found.round(6).item()) for found in estimate(members, 2 * members)]
    [2.0, 2.0, 2.0, 2.0]
    """
    whole = _least_squares(members.sum(axis=2), outputs.sum(axis=2))
    predictions = members @ whole[:, None]
    distances = np.square(outputs[:, :, :, None] - predictions[:, :, None]).sum(axis=-1)
    matches = np.empty(outputs.shape[:3], dtype=np.int64)
    for place in np.ndindex(*distances.shape[:2]):
        matches[place] = linear_sum_assignment(distances[place])[1]
    return Estimates(
        _fit_rows(members, outputs),
        whole,
        *(
            _fit_rows(np.take_along_axis(members, owners[..., None], axis=2), outputs)
            for owners in (distances.argmin(axis=-1), matches)
        ),
    )


def _fit_rows(members: Array, outputs: Array) -> Array:
    seeds = len(members)
    return _least_squares(members.reshape(seeds, -1, members.shape[-1]), outputs.reshape(seeds, -1, outputs.shape[-1]))


def _least_squares(X: Array, Z: Array) -> Array:
    transposed = np.swapaxes(X, -1, -2)
    return np.linalg.solve(transposed @ X, transposed @ Z)


def regression_groups(
    deviation: float,
    seeds: Iterable[int],
    *,
    noise: float = 1.0,
    scale: Norm = "spectral",
    n_groups: int = N_GROUPS,
    group_size: int = GROUP_SIZE,
) -> Simulated:
    """Groups of Gaussian rows around Gaussian centres, with linear outputs plus noise.

    Parameters
    ----------
    deviation : float
        Standard deviation of members from their centre: the paper's sigma2.
    seeds : iterable of int
    noise : float
        Standard deviation of the noise of outputs: sigma_e. That of the centres, sigma1, is 1.
    scale : {"spectral", "frobenius"}
        The norm in which the coefficients have length 1.
    n_groups, group_size : int
    """
    drawn = []
    for seed in seeds:
        generator = np.random.default_rng(seed)
        coefficients = generator.normal(size=(N_FEATURES, N_OUTPUTS))
        coefficients /= np.linalg.norm(coefficients, 2 if scale == "spectral" else "fro")
        centres = generator.normal(size=(n_groups, 1, N_FEATURES))
        members = centres + deviation * generator.normal(size=(n_groups, group_size, N_FEATURES))
        outputs = members @ coefficients + noise * generator.normal(size=(n_groups, group_size, N_OUTPUTS))
        drawn.append((members, outputs, coefficients))
    return _stacked(drawn)


def regression_errors(
    deviation: float, seeds: Iterable[int], norm: Norm = "frobenius", scale: Norm = "spectral"
) -> dict[str, Array]:
    """How far each way of `Estimates` is from the true coefficients: name to an array with one entry per seed."""
    simulated = regression_groups(deviation, seeds, scale=scale)
    order: Any = 2 if norm == "spectral" else "fro"
    return {
        name: np.linalg.norm(found - simulated.coefficients, order, axis=(1, 2))
        for name, found in estimate(simulated.members, simulated.outputs)._asdict().items()
    }


def classification_groups(
    skew: float, seeds: Iterable[int], *, noise: float = 0.1, n_groups: int = N_GROUPS
) -> tuple[Simulated, Simulated]:
    """Groups of rows around label vectors, whose outputs are one-hot, for training; and others for testing.

    Parameters
    ----------
    skew : float
        How much a group prefers one label, which is exp(skew) times as likely as any other: the paper's sigma2. 0 draws
        all labels evenly; test groups always use it.
    seeds : iterable of int
    noise : float
        Standard deviation of rows from their label's vector, which has length 1: sigma1. A row has the label whose
        vector has the largest product with it.
    n_groups : int
        Number of groups for training.
    """
    train: list[tuple[Array, Array, Array]] = []
    test: list[tuple[Array, Array, Array]] = []
    for seed in seeds:
        generator = np.random.default_rng(seed)
        vectors = generator.normal(size=(N_OUTPUTS, N_FEATURES))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        for drawn, preference, count in ((train, skew, n_groups), (test, 0.0, TEST_GROUPS)):
            drawn.append(_labelled_rows(generator, vectors, preference, noise, (count, GROUP_SIZE)))
    return _stacked(train), _stacked(test)


def _stacked(drawn: list[tuple[Array, Array, Array]]) -> Simulated:
    return Simulated(*(np.stack(each) for each in zip(*drawn, strict=True)))


def _labelled_rows(
    generator: np.random.Generator, vectors: Array, skew: float, noise: float, shape: tuple[int, int]
) -> tuple[Array, Array, Array]:
    n_labels = len(vectors)
    preferred = generator.integers(n_labels, size=shape[0])
    # The share of rows that are drawn for the preferred label alone; all others are drawn evenly.
    alone = np.expm1(skew) / (n_labels + np.expm1(skew))
    evenly = generator.integers(n_labels, size=shape)
    origins = np.where(generator.random(shape) < alone, preferred[:, None], evenly)
    members = vectors[origins] + noise * generator.normal(size=(*shape, vectors.shape[1]))
    return members, np.eye(n_labels)[(members @ vectors.T).argmax(axis=-1)], vectors.T


class ClassificationErrors(NamedTuple):
    """Errors on test rows by way of `Estimates`, one entry per seed.

    Parameters
    ----------
    wrong : dict
        Share of rows whose largest output is not that of their label.
    distance : dict
        Root mean square of the difference from one-hot outputs.
    """

    wrong: dict[str, Array]
    distance: dict[str, Array]


def classification_errors(skew: float, seeds: Iterable[int], noise: float = 0.1) -> ClassificationErrors:
    """What each way of `Estimates` gets wrong on test rows."""
    train, test = classification_groups(skew, seeds, noise=noise)
    errors = ClassificationErrors({}, {})
    truth = test.outputs.argmax(axis=-1)
    for name, found in estimate(train.members, train.outputs)._asdict().items():
        predictions = test.members @ found[:, None]
        errors.wrong[name] = (predictions.argmax(axis=-1) != truth).mean(axis=(1, 2))
        errors.distance[name] = np.sqrt(np.square(predictions - test.outputs).mean(axis=(1, 2, 3)))
    return errors
