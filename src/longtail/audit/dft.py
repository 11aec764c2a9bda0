"""The output layer of sines and cosines, which can give every set of at most `k` labels.

The columns are 1, cos t, sin t, ..., cos kt, sin kt at increasing points t of one period. All their maximal minors have
one sign, so `2k + 1` inputs suffice for any number of labels (Grivas et al., AAAI 2024).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from longtail.arrays import Array
from longtail.audit.counting import dimensions_needed
from longtail.audit.proofs import check_witness_exactly
from longtail.audit.structure import add_slack
from longtail.errors import InvalidInput
from longtail.estimator import OutputLayer
from longtail.validation import check_whole

# Strengths a of the factors 1 + a cos(t - c) that flatten a witness; below 1, so that no factor has a zero.
_STRENGTHS = (0.3, 0.6, 0.8, 0.9, 0.95, 0.98, 0.99)


def dft_matrix(n: int, k: int, slack: int = 0, random_state: int | np.random.Generator = 0) -> Array:
    """Orthonormal sines and cosines up to frequency `k` at `n` points, and `slack` more columns.

    Parameters
    ----------
    n : int
        Number of labels; more than ``2 * k``.
    k : int
        Every set of at most `k` labels is guaranteed to have an input.
    slack : int
        Number of random columns, see `add_slack`; they make the regions of label sets larger.
    random_state : int or Generator
        Random seed of these columns.

    Returns
    -------
    W : float64 array of shape (n, 2 * k + 1 + slack)

    Examples
    --------
    >>> W = dft_matrix(8, 2)
    >>> W.shape, bool(np.allclose(W.T @ W, np.eye(5)))
    ((8, 5), True)
    """
    return add_slack(_columns(n, k, np.float64), slack, random_state)


def _columns(n: int, k: int, dtype: Any) -> Array:
    _check_sizes(n, k)
    # The angle jt, up to whole turns, is one of the n points again: n sines and cosines serve all columns.
    points = np.outer(np.arange(n), np.arange(1, k + 1)) % n
    circle = np.arange(n, dtype=dtype) * (2 * _pi() / n).astype(dtype)
    W = np.empty((n, 2 * k + 1), dtype=dtype)
    W[:, 0] = 1 / np.sqrt(dtype(n))
    W[:, 1::2] = (np.sqrt(dtype(2) / n) * np.cos(circle))[points]
    W[:, 2::2] = (np.sqrt(dtype(2) / n) * np.sin(circle))[points]
    return W


def dft_product(x: Any, n: int) -> Array:
    """``x @ dft_matrix(n, k).T`` by the fast Fourier transform, without the matrix.

    Parameters
    ----------
    x : array of shape (2 * k + 1,) or (n_rows, 2 * k + 1)
    n : int
        Number of labels.

    Returns
    -------
    scores : array of shape (n,) or (n_rows, n)

    Examples
    --------
    >>> x = np.arange(5.0)
    >>> bool(np.allclose(dft_product(x, 9), dft_matrix(9, 2) @ x))
    True
    """
    inputs = np.asarray(x, dtype=np.float64)
    width = inputs.shape[-1] if inputs.ndim in (1, 2) else 0
    if width % 2 == 0:
        raise InvalidInput(f"x has shape {inputs.shape}; expected 2k + 1 values, or rows of 2k + 1 values")
    k = width // 2
    _check_sizes(n, k)
    spectrum = np.zeros((*inputs.shape[:-1], n), dtype=np.complex128)
    spectrum[..., 0] = inputs[..., 0]
    spectrum[..., 1 : k + 1] = np.sqrt(2) * (inputs[..., 1::2] - 1j * inputs[..., 2::2])
    return np.asarray(np.fft.ifft(spectrum, norm="ortho").real)


def initial_bias(n: int, k: int, mean_active: float | None = None) -> Array:
    """The input at which every label has the probability ``k / n``: a bias to start training from.

    Parameters
    ----------
    n, k : int
        As for `dft_matrix`.
    mean_active : float or None
        Use the probability ``mean_active / n`` instead. The mean number of labels of a row is usually a better start.

    Returns
    -------
    x : array of shape (2 * k + 1,)

    Examples
    --------
    >>> scores = dft_product(initial_bias(100, 5), 100)
    >>> bool(np.allclose(1 / (1 + np.exp(-scores)), 5 / 100))
    True
    """
    _check_sizes(n, k)
    active = k if mean_active is None else mean_active
    if not 0 < active < n:
        raise InvalidInput(f"{active} active labels of {n}; expected more than 0 and fewer than {n}")
    x = np.zeros(2 * k + 1)
    x[0] = np.sqrt(n) * np.log(active / (n - active))
    return x


def dft_witness(y: Any, k: int) -> Array | None:
    """An input that gets the label set `y` from ``dft_matrix(n, k)``, in closed form.

    The scores are a product of ``sin((t - c) / 2)`` with a zero `c` between each two neighbours of different sign; the
    last and the first label are neighbours too. Unused frequencies go into positive factors that flatten the product.
    The signs are checked, in exact arithmetic where rounding could change them.

    Parameters
    ----------
    y : sequence of 0/1, bool or -1/+1 of length n
    k : int

    Returns
    -------
    x : float64 array of shape (2 * k + 1,), or None
        None if no input of this form has the right signs in 64-bit floats: many active labels side by side push the
        smallest score below rounding. `longtail.audit.audit` may still decide the set.

    Raises
    ------
    InvalidInput
        If `y` changes sign more than ``2 * k`` times around the circle, so that no input gets it.

    Examples
    --------
    >>> y = [0, 1, 0, 0, 1, 1, 0, 0, 0]
    >>> x = dft_witness(y, 2)
    >>> (dft_matrix(9, 2) @ x > 0).astype(int).tolist() == y
    True
    """
    signs = np.where(np.asarray(y) > 0, 1, -1)
    if signs.ndim != 1:
        raise InvalidInput(f"y has shape {signs.shape}; expected one label set")
    n = len(signs)
    _check_sizes(n, k)
    changes = np.flatnonzero(signs != np.roll(signs, -1))
    if len(changes) > 2 * k:
        raise InvalidInput(
            f"y changes between active and inactive {len(changes)} times around the circle; {dimensions_needed(k)} "
            f"dimensions allow {2 * k} changes, so no input gets it"
        )
    # With extended precision, if the platform has it, only the result is rounded to float64.
    points = np.arange(n, dtype=np.longdouble) * (2 * _pi() / n)
    zeros = (changes + 0.5) * (2 * _pi() / n)
    magnitudes = np.zeros(n, dtype=np.longdouble)
    for zero in zeros:
        magnitudes += np.log(np.abs(np.sin((points - zero) / 2)))
    magnitudes = _flatten(magnitudes, points, k - len(changes) // 2)
    scores = signs * np.exp(magnitudes - magnitudes.max())
    x = (_columns(n, k, np.longdouble).T @ scores).astype(np.float64)
    x /= np.abs(x).max()
    layer = OutputLayer.of(dft_matrix(n, k))
    return x if check_witness_exactly(layer, signs > 0, x) else None


def _pi() -> Any:
    return 4 * np.arctan(np.longdouble(1))


def _flatten(magnitudes: Array, points: Array, spare: int) -> Array:
    """Logarithms of scores times up to `spare` factors ``1 + a cos(t - c)`` that flatten them.

    Each round puts several equal factors where the smallest score is, as long as that helps.
    """

    def flatness(values: Array) -> float:
        return float(values.min() - values.max())

    while spare > 0:
        angles = np.cos(points - points[int(np.argmin(magnitudes))])
        halves = sorted({max(1, spare >> shift) for shift in range(4)})
        tried = [(magnitudes + n * np.log1p(a * angles), n) for n in halves for a in _STRENGTHS]
        best, used = max(tried, key=lambda each: flatness(each[0]))
        if flatness(best) <= flatness(magnitudes):
            break
        magnitudes, spare = best, spare - used
    return magnitudes


def _check_sizes(n: int, k: int) -> None:
    check_whole("k", k, 0)
    check_whole("n", n, 1)
    if n <= 2 * k:
        raise InvalidInput(f"{n} labels for k = {k}; sines and cosines up to frequency k need more than 2k labels")
