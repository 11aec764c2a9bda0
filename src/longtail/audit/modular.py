"""Minors of float matrices modulo a prime: a remainder other than 0 proves that the minor is not 0.

Floats are whole numbers times powers of two, so they have remainders. Many minors are eliminated at once.
"""

from __future__ import annotations

import numpy as np

from longtail.arrays import Array

PRIME = 2**31 - 1  # products of two remainders fit into 64 bits


def remainders(values: Array) -> Array:
    """Finite floats modulo the prime, where halves are powers of the inverse of 2.

    Examples
    --------
    >>> found = remainders(np.array([3.0, -1.0, 0.5]))
    >>> found[:2].tolist(), int(2 * found[2] % PRIME)
    ([3, 2147483646], 1)
    """
    mantissas, exponents = np.frexp(values)
    whole = np.ldexp(mantissas, 53).astype(np.int64) % PRIME
    # The order of 2 modulo this prime is 31.
    powers = np.int64(1) << ((exponents - 53) % 31)
    return np.asarray(whole * (powers % PRIME) % PRIME)


def are_regular(matrices: Array) -> Array:
    """Which square matrices of remainders have a determinant other than 0, modulo the prime.

    Parameters
    ----------
    matrices : int64 array of shape (n_matrices, width, width)

    Examples
    --------
    >>> are_regular(np.array([[[1, 2], [3, 4]], [[1, 2], [2, 4]], [[0, 1], [1, 0]]])).tolist()
    [True, False, True]
    """
    work = matrices.copy()
    regular = np.ones(len(work), dtype=bool)
    every = np.arange(len(work))
    for place in range(work.shape[1]):
        candidates = work[:, place:, place] != 0
        pivot = place + candidates.argmax(axis=1)
        regular &= candidates.any(axis=1)
        swapped = work[every, pivot]
        work[every, pivot] = work[:, place]
        work[:, place] = swapped
        head = swapped * _inverses(swapped[:, place])[:, None] % PRIME
        below = work[:, place + 1 :, place, None] * head[:, None, place:] % PRIME
        work[:, place + 1 :, place:] = (work[:, place + 1 :, place:] - below) % PRIME
    return regular


def _inverses(values: Array) -> Array:
    """Inverses modulo the prime, by Fermat's little theorem; 0 stays 0."""
    found, power, left = np.ones_like(values), values % PRIME, PRIME - 2
    while left:
        if left & 1:
            found = found * power % PRIME
        power = power * power % PRIME
        left >>= 1
    return found
