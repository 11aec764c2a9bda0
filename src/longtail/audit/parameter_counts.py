"""How many trained parameters an output layer has, by its kind (Grivas et al., AAAI 2024, section 5.1).

In front of a narrow layer stands a projection of the features, with a bias. Labels have no biases.
"""

from __future__ import annotations

from longtail.validation import check_whole


def plain_parameters(n: int, e: int, bias: bool = True) -> int:
    """Of a layer from `e` features to `n` labels.

    Examples
    --------
    >>> plain_parameters(20_000, 768)
    15380000
    """
    return n * (e + bias)


def bottleneck_parameters(n: int, d: int, e: int) -> int:
    """Of a projection of `e` features to `d` numbers, and a layer from these to `n` labels.

    Examples
    --------
    >>> bottleneck_parameters(20_000, d=200, e=768)
    4153800
    """
    return (e + 1) * d + n * d


def dft_parameters(n: int, k: int, e: int, slack: int = 0) -> int:
    """Of a projection of `e` features to ``2 * k + 1 + slack`` numbers, and the slack columns of `n` labels.

    The other columns are fixed sines and cosines.

    Examples
    --------
    >>> dft_parameters(20_000, k=50, e=768, slack=100)
    2154569
    """
    return (e + 1) * (2 * k + 1 + slack) + n * slack


def slack_of_equal_size(n: int, k: int, e: int) -> int:
    """By how many slack columns a DFT layer must be narrower than a bottleneck, so that it is no larger.

    A column has `n` weights and `e` more, and a bias, in the projection. The paper counts the weights of labels only,
    which gives 10 in this example.

    Examples
    --------
    >>> slack_of_equal_size(8921, k=80, e=500)
    9
    >>> dft_parameters(8921, 80, 500, slack=100 - 9) <= bottleneck_parameters(8921, 100, 500)
    True
    """
    check_whole("n", n, 1)
    return -(-(e + 1) * (2 * k + 1) // (n + e + 1))
