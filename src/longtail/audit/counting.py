"""How many label sets a linear output layer can give, in exact integers.

The planes of `n` labels over `d` features in general position cut the space of inputs into regions, one for each label
set that some input gets. Their number depends only on `n` and `d` (Cover, 1965).
"""

from __future__ import annotations

import math

from longtail.validation import check_whole


def count_argmaxable(n: int, d: int, bias: bool = False) -> int:
    """The number of label sets that some input gets, out of all ``2**n``.

    It is ``2 * sum(comb(n - 1, i) for i < d)`` for `n` hyperplanes through the origin in general position, and no layer
    of this shape has more. With a free bias, hyperplanes need not pass through the origin: ``sum(comb(n, i) for i <=
    d)``.

    Parameters
    ----------
    n : int
        Number of labels.
    d : int
        The rank of the weights.
    bias : bool
        Whether each label has its own bias.

    Examples
    --------
    >>> count_argmaxable(3, 2), count_argmaxable(3, 2, bias=True), count_argmaxable(3, 3)
    (6, 7, 8)
    """
    check_whole("n", n, 1)
    check_whole("d", d, 0)
    if bias:
        return sum_of_binomials(n, d)
    return 2 * sum_of_binomials(n - 1, d - 1)


def share_argmaxable(n: int, d: int, bias: bool = False, *, log10: bool = False) -> float:
    """The share of all ``2**n`` label sets that some input gets, or its decimal logarithm, which does not underflow.

    Parameters
    ----------
    n, d, bias
        As for `count_argmaxable`.
    log10 : bool
        Whether to return the logarithm.

    Examples
    --------
    >>> share_argmaxable(1000, 500), share_argmaxable(3, 2)
    (0.5, 0.75)
    >>> round(share_argmaxable(100_000, 10, log10=True))
    -30063
    """
    count = count_argmaxable(n, d, bias)
    if not log10:
        return count / 2**n
    if not count:
        return -math.inf
    # The difference of two large logarithms would lose digits of a share close to 1.
    shared = max(0, count.bit_length() - 64)
    return math.log10(count >> shared) - (n - shared) * math.log10(2)


def dimensions_needed(k: int) -> int:
    """The number of dimensions in which every set of at most `k` labels can have an input: ``2 * k + 1``.

    They suffice for any number of labels if the weights are built for it, as `dft_matrix` is. Trained weights of that
    width have no guarantee.

    Examples
    --------
    >>> dimensions_needed(3)
    7
    """
    check_whole("k", k, 0)
    return 2 * k + 1


def sum_of_binomials(n: int, most: int) -> int:
    """``sum(comb(n, i) for i in range(most + 1))``, each binomial computed from the one before."""
    if most >= n:
        return 2**n
    total, binomial = 0, 1
    for i in range(most + 1):
        total += binomial
        binomial = binomial * (n - i) // (i + 1)
    return total
