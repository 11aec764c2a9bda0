"""Exact linear algebra on floats: every float is a fraction, and elimination needs whole numbers only."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction


def whole_numbers(values: Iterable[Fraction | float]) -> list[int]:
    """The values times a positive factor that makes them whole numbers.

    Examples
    --------
    >>> whole_numbers([0.5, -1.25])
    [2, -5]
    """
    exact = [Fraction(value) for value in values]
    factor = math.lcm(*(value.denominator for value in exact))
    return [int(value * factor) for value in exact]


def eliminate(matrix: list[list[int]]) -> tuple[list[int], int]:
    """Bring whole numbers into row echelon form, in place, by fraction-free elimination (Bareiss).

    Returns
    -------
    pivots : list of int
        The column of each pivot.
    sign : int
        -1 if the number of exchanged rows is odd, else 1.

    Examples
    --------
    >>> matrix = [[0, 1], [2, 3]]
    >>> eliminate(matrix), matrix
    (([0, 1], -1), [[2, 3], [0, 2]])
    """
    pivots: list[int] = []
    sign = previous = 1
    for column in range(len(matrix[0])):
        top = len(pivots)
        found = next((index for index in range(top, len(matrix)) if matrix[index][column]), None)
        if found is None:
            continue
        if found != top:
            matrix[top], matrix[found] = matrix[found], matrix[top]
            sign = -sign
        head = matrix[top]
        pivot = head[column]
        for line in matrix[top + 1 :]:
            factor = line[column]
            # The division leaves no remainder, because every entry is a minor of the matrix.
            line[column + 1 :] = [
                (pivot * value - factor * above) // previous
                for value, above in zip(line[column + 1 :], head[column + 1 :], strict=True)
            ]
            line[column] = 0
        previous = pivot
        pivots.append(column)
        if len(pivots) == len(matrix):
            break
    return pivots, sign
